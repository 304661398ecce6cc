//! How commands reach a drive. The real way are the ioctls of [`crate::sys`]; tests answer with bytes.

use crate::mmc::Command;
use crate::nvme::{Completion, NvmeCommand};
use crate::opal::{Psid, Status};
use crate::scsi::Reply;
use std::io;
use std::time::Duration;

/// How long a question to a drive may take; a spinning disk may have to wake up first.
pub const QUESTION: Duration = Duration::from_secs(30);

/// Something that takes commands and answers with bytes.
pub trait Transport: Sync {
    /// Run an NVMe command. The data, if any, goes into or comes out of `data`, as the command says.
    ///
    /// # Errors
    /// When the command did not reach the controller, or has not ended within `timeout`.
    fn nvme(&self, _command: &NvmeCommand, _data: &mut [u8], _timeout: Duration) -> io::Result<Completion> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Run a SCSI command.
    ///
    /// # Errors
    /// When the command did not reach the drive, or has not ended within `timeout`.
    fn scsi(&self, _cdb: &[u8], _data: Data<'_>, _timeout: Duration) -> io::Result<Reply> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What the kernel knows of the drive as a TCG Opal one.
    ///
    /// # Errors
    /// When the kernel was built without, or it is no such drive: most are none.
    fn opal_status(&self) -> io::Result<Status> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// TCG Opal revert with the PSID. The status of the method: 0 when it succeeded, else see
    /// [`crate::opal::status_text`].
    ///
    /// # Errors
    /// When the drive was not reached, or does not follow the protocol.
    fn opal_revert(&self, _psid: &Psid) -> io::Result<i32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Send eMMC commands, with no other in between. What one of them asks for fills `data`. The device status of each
    /// response; see [`crate::mmc::complaint`].
    ///
    /// # Errors
    /// When it is no eMMC, or one of the commands was not answered.
    fn mmc(&self, _commands: &[Command], _data: &mut [u8]) -> io::Result<Vec<u32>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Wait between two questions. The time that passes is the drive's, so that a simulated one has its own.
    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// Data of a SCSI command.
#[derive(Debug)]
pub enum Data<'a> {
    /// None.
    None,
    /// From the drive.
    In(&'a mut [u8]),
    /// To the drive.
    Out(&'a [u8]),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A way to no drive.
    struct Nowhere;

    impl Transport for Nowhere {}

    #[test]
    fn a_way_that_does_not_know_a_kind_of_command_says_so() {
        let psid = Psid::parse("P").unwrap();
        let answers = [
            Nowhere.nvme(&NvmeCommand::identify(1, 0), &mut [], QUESTION).err(),
            Nowhere.scsi(&[0; 6], Data::None, QUESTION).err(),
            Nowhere.opal_status().err(),
            Nowhere.opal_revert(&psid).err(),
            Nowhere.mmc(&[], &mut []).err(),
        ];
        for answer in answers {
            assert_eq!(answer.map(|error| error.kind()), Some(io::ErrorKind::Unsupported));
        }
    }
}
