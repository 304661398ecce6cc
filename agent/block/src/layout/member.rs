//! What a disk is a member of.

use std::collections::{BTreeMap, BTreeSet};

/// Where so many bytes are.
pub(super) type Piece = (u64, Vec<u8>);

/// What one disk is a member of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What.
    pub(super) whole: Whole,
    /// Which of its parts this disk is.
    pub(super) part: String,
    /// What is written back: byte offset on the disk, and bytes.
    pub(super) pieces: Vec<Piece>,
}

/// An array or group as one of its members describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whole {
    /// `md` or `lvm`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) uuid: String,
    /// Which version of the description it is; members that disagree belong to different moments.
    pub(super) version: u64,
    /// All parts that have to be there.
    pub(super) parts: BTreeSet<String>,
}

impl Member {
    /// Whether both are parts of one array or group.
    pub fn is_with(&self, other: &Member) -> bool {
        self.whole.uuid == other.whole.uuid
    }

    /// What is written: whole sectors, zero where nothing was kept.
    pub(super) fn sectors(&self, block: u64) -> Vec<Piece> {
        let mut sectors: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (offset, bytes) in &self.pieces {
            for (at, byte) in (*offset..).zip(bytes) {
                let sector =
                    sectors.entry(at / block).or_insert_with(|| vec![0; usize::try_from(block).unwrap_or(0)]);
                sector[usize::try_from(at % block).unwrap_or(0)] = *byte;
            }
        }
        let mut joined: Vec<Piece> = Vec::new();
        for (number, bytes) in sectors {
            match joined.last_mut() {
                Some((start, before)) if *start + before.len() as u64 == number * block => {
                    before.extend(bytes);
                }
                _ => joined.push((number * block, bytes)),
            }
        }
        joined
    }
}
