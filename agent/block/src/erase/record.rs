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
        Fault::Vanished(_) => Ending::Failed(chain(fault)),
        fault if fault.is_of_gone_disk() || !target.present() => {
            Ending::Failed(Fault::Vanished(chain(fault)).to_string())
        }
        fault => Ending::Failed(chain(fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeDisk;
    use std::io;

    /// Seen on a busy machine: the kernel answers ENODEV while sysfs still has the disk.
    #[test]
    fn a_disk_of_which_the_kernel_says_that_it_is_gone_vanished() {
        let disk = FakeDisk::new(vec![0; 4096], 512, Vec::new());
        let failed = |errno: i32| {
            let source = io::Error::from_raw_os_error(errno);
            ending(&disk, &Fault::Write { offset: 0, length: 512, source })
        };
        for (errno, vanished) in [(libc::ENODEV, true), (libc::EIO, false)] {
            let Ending::Failed(reason) = failed(errno) else { panic!("it failed") };
            assert_eq!(reason.starts_with("the disk vanished: write of 512 bytes"), vanished, "{reason}");
        }
    }
}
