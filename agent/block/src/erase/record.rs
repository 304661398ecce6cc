//! How the erase of a disk went.

use crate::fault::{Fault, chain};
use crate::method::Method;
use crate::target::Target;
use crate::verify::Verification;

/// What was done to a disk, and what was seen afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// How it ended.
    pub ending: Ending,
    /// The method that erased the disk, or the last one that was tried.
    pub method: Option<Method>,
    /// Methods tried before, each with why it was given up.
    pub fallbacks: Vec<(Method, String)>,
    /// Bytes that `method` has erased, those before the interruption included; when it was stopped in one of several
    /// passes, those of that pass.
    pub bytes_erased: u64,
    /// Where `method` went on after an interruption; `None`: it began at 0.
    pub resumed_from: Option<u64>,
    /// What the last read-back saw.
    pub verification: Option<Verification>,
}

/// How work on a disk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Done, and the read-back agreed.
    Erased,
    /// Not done, and why, with the byte offset where there is one. The caller knows which disk it is.
    Failed(String),
    /// Stopped on request; the disk is half erased.
    Cancelled,
}

/// How one method went: bytes erased, and the fault that ended it.
pub(super) type Attempt = (u64, Result<(), Fault>);

/// The same of the drive's own method, with what its log reports.
pub(super) type DriveAttempt = (u64, Result<Option<&'static str>, Fault>);

/// The record of an erase for which no method was given.
pub(super) fn untried() -> Record {
    Record {
        ending: Ending::Failed("no erase method was given".to_owned()),
        method: None,
        fallbacks: Vec::new(),
        bytes_erased: 0,
        resumed_from: None,
        verification: None,
    }
}

/// The ending that a fault leads to; one on a disk that is gone becomes [`Fault::Vanished`].
pub(crate) fn ending(target: &dyn Target, fault: &Fault) -> Ending {
    match fault {
        Fault::Cancelled => Ending::Cancelled,
        fault if !target.present() && !matches!(fault, Fault::Vanished(_)) => {
            Ending::Failed(Fault::Vanished(chain(fault)).to_string())
        }
        fault => Ending::Failed(chain(fault)),
    }
}
