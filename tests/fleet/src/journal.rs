//! What happened at the nodes, in order: every call that a BMC and every command that an agent got, with its time and its sender.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Microseconds since 1970, when it began.
    pub at: i64,
    /// The node's number.
    pub node: u32,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The BMC got a request.
    Bmc {
        /// Its sender.
        from: IpAddr,
        /// The header User-Agent, if there was one.
        user_agent: Option<String>,
        /// `GET`, `PATCH …`, `POST …` with what was asked for.
        call: String,
        /// Status of the answer.
        status: u16,
    },
    /// The agent got a command.
    Command {
        /// Its sender.
        from: IpAddr,
        /// Name with its extension.
        name: String,
        /// The id that the controller chose.
        id: Option<String>,
        /// The lease that it was sent under.
        epoch: Option<u64>,
        /// Status of the answer: 412 to an old epoch.
        status: u16,
    },
    /// The agent began a step.
    Step {
        /// `interface.step`.
        step: String,
        /// Id of its command.
        id: String,
        /// It may be run again.
        idempotent: bool,
    },
    /// The agent died in a step.
    Died,
    /// Power went on.
    On {
        /// It boots from the network.
        network: bool,
    },
    /// Power went off.
    Off,
    /// The firmware got a boot script.
    Script {
        /// From this controller.
        server: String,
    },
    /// Heartbeats go to another controller from here on.
    Turned {
        /// That one.
        to: String,
    },
}

/// All lines of a run.
#[derive(Debug)]
pub enum Journal {
    /// Kept in memory.
    Memory(Mutex<Vec<Entry>>),
    /// Written to a file, as lines of JSON.
    File(Mutex<BufWriter<File>>),
    /// Not kept.
    Nowhere,
}

/// Microseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl Journal {
    /// One in memory.
    pub fn memory() -> Self {
        Self::Memory(Mutex::default())
    }

    /// One that goes to a file.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn file(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Ok(Self::File(Mutex::new(BufWriter::new(file))))
    }

    /// Notes what happened at `at`.
    pub fn note(&self, at: i64, node: u32, what: What) {
        let entry = Entry { at, node, what };
        match self {
            Self::Memory(entries) => room::held(entries).push(entry),
            Self::File(file) => {
                let mut line = serde_json::to_vec(&entry).unwrap_or_default();
                line.push(b'\n');
                if let Err(error) = room::held(file).write_all(&line) {
                    eprintln!("anneal-fleet: journal: {error}");
                }
            }
            Self::Nowhere => {}
        }
    }

    /// The lines in memory, which are forgotten.
    pub fn take(&self) -> Vec<Entry> {
        match self {
            Self::Memory(entries) => std::mem::take(&mut *room::held(entries)),
            Self::File(_) | Self::Nowhere => Vec::new(),
        }
    }

    /// What is on its way to the file gets there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&self) -> Result<()> {
        match self {
            Self::File(file) => Ok(room::held(file).flush()?),
            Self::Memory(_) | Self::Nowhere => Ok(()),
        }
    }
}
