//! What a machine's firmware is known by, and how it differs from what it was.

use crate::digest::Digest;
use crate::pcr::Pcrs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// PCRs of firmware, option ROMs and Secure Boot: what was recorded of them must not change by itself.
const RECORDED: [u8; 4] = [0, 2, 3, 7];

/// Measurements that only recording them makes expected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurements {
    /// PCRs 0, 2, 3 and 7.
    pub pcrs: BTreeMap<u8, Digest>,
    /// Digests of programs that the firmware started besides the signed ramdisk, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Digest>,
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A PCR has another value.
    Pcr {
        /// Which.
        pcr: u8,
        /// What was recorded; nothing was before PCRs were.
        was: Option<Digest>,
        /// What it is now.
        is: Digest,
    },
    /// The firmware started a program that was not recorded.
    Program {
        /// Its digest in PCR 4.
        digest: Digest,
    },
}

impl Measurements {
    pub(crate) fn new(pcrs: &Pcrs, programs: Vec<Digest>) -> Self {
        Self { pcrs: RECORDED.map(|pcr| (pcr, pcrs.value(pcr))).into(), programs }
    }

    /// What of `now` is not as in these. Programs that are missing now are no difference.
    pub fn changes(&self, now: &Self) -> Vec<Change> {
        let pcrs = now.pcrs.iter().filter_map(|(pcr, is)| {
            let was = self.pcrs.get(pcr).copied();
            (was != Some(*is)).then_some(Change::Pcr { pcr: *pcr, was, is: *is })
        });
        pcrs.chain(self.new_programs(now)).collect()
    }

    /// Programs of `now` that are not among these.
    pub(crate) fn new_programs(&self, now: &Self) -> Vec<Change> {
        let new = now.programs.iter().filter(|digest| !self.programs.contains(digest));
        new.map(|digest| Change::Program { digest: *digest }).collect()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Pcr { pcr, was, is } => {
                let what = match pcr {
                    0 => "firmware",
                    2 => "option ROMs",
                    3 => "settings of option ROMs",
                    7 => "Secure Boot",
                    _ => "another one",
                };
                write!(formatter, "PCR {pcr} ({what}) is {is}")?;
                match was {
                    Some(was) => write!(formatter, ", was {was}"),
                    None => Ok(()),
                }
            }
            Self::Program { digest } => {
                write!(formatter, "the firmware started a program with the digest {digest}")
            }
        }
    }
}
