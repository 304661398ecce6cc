//! What happened: every stored write is counted, or goes into one hash where a test compares two worlds; in a replay everything is
//! printed.
//!
//! Ids that the real code draws from the operating system (of runs, events, requests) differ from one run of a
//! seed to the next, and so do the keys of agents and the digests of what they sign. They are only names: the hash
//! knows them by the order in which they appear.

use crate::held;
use room::SimClock;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Length of an id in text.
const ID: usize = 36;
/// Hexadecimal digits of a key or a digest.
const KEY: usize = 64;

/// What becomes of the writes of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// They are counted.
    Count,
    /// They are counted and hashed.
    Hash,
    /// Everything that happens is printed.
    Print,
}

impl Detail {
    /// Of a world that is looked at, or only counted.
    pub fn printed(loud: bool) -> Self {
        if loud { Self::Print } else { Self::Count }
    }
}

/// The trace of one world.
pub struct Trace {
    clock: Arc<SimClock>,
    detail: Detail,
    sum: Mutex<Sum>,
}

struct Sum {
    hasher: DefaultHasher,
    ids: HashMap<Vec<u8>, usize>,
    writes: u64,
    bytes: Vec<u8>,
}

impl Trace {
    /// An empty trace.
    pub fn new(clock: Arc<SimClock>, detail: Detail) -> Self {
        let sum = Sum { hasher: DefaultHasher::new(), ids: HashMap::new(), writes: 0, bytes: Vec::new() };
        Self { clock, detail, sum: Mutex::new(sum) }
    }

    /// Whether the writes are hashed.
    pub fn hashes(&self) -> bool {
        self.detail == Detail::Hash
    }

    /// Add a line; it is formatted only if the trace is used.
    pub fn note(&self, line: impl FnOnce() -> String) {
        if self.detail == Detail::Print {
            let stdout = std::io::stdout();
            // A closed pipe (`| head`) ends the printing and not the world.
            let _ = writeln!(stdout.lock(), "{:>10.3} {}", self.clock.seconds(), line());
        }
    }

    /// A stored write.
    pub fn write(&self, what: &impl Serialize) {
        let mut sum = held(&self.sum);
        let Sum { hasher, ids, writes, bytes } = &mut *sum;
        *writes += 1;
        if !self.hashes() {
            return;
        }
        bytes.clear();
        if let Err(error) = serde_json::to_writer(&mut *bytes, what) {
            bytes.extend(error.to_string().into_bytes());
        }
        let mut from = 0;
        let mut at = 0;
        while at < bytes.len() {
            let Some(length) = name(&bytes[at..]) else {
                at += 1;
                continue;
            };
            hasher.write(&bytes[from..at]);
            let next = ids.len();
            hasher.write_usize(*ids.entry(bytes[at..at + length].to_vec()).or_insert(next));
            at += length;
            from = at;
        }
        hasher.write(&bytes[from..]);
        hasher.write(self.clock.seconds().to_bits().to_le_bytes().as_slice());
    }

    /// The hash of all writes, if they are hashed, and how many they were.
    pub fn sum(&self) -> (Option<u64>, u64) {
        let sum = held(&self.sum);
        (self.hashes().then(|| sum.hasher.finish()), sum.writes)
    }
}

/// Length of the name that `bytes` begin with, if they begin with one: a UUID, or a key, digest or signature in
/// hexadecimal digits.
fn name(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits >= KEY {
        return Some(digits);
    }
    let id = bytes.get(..ID)?;
    let dashes = id.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    dashes.then_some(ID)
}
