//! SANITIZE DEVICE (ACS-4 7.36).

use super::{Command, Error, Protocol, Registers};
use crate::sanitize::{Operation, State};

impl Command {
    /// SANITIZE STATUS EXT (7.36.8). It leaves everything as it is.
    pub const SANITIZE_STATUS: Command = sanitize(0x0000, 0, 0);

    /// The same, and an operation that failed is forgotten where the drive allows it (CLEAR SANITIZE OPERATION
    /// FAILED).
    pub const SANITIZE_CLEAR_FAILURE: Command = sanitize(0x0000, 1, 0);

    /// CRYPTO SCRAMBLE EXT (7.36.3), BLOCK ERASE EXT (7.36.2), OVERWRITE EXT (7.36.5) with one pass of zeroes. The
    /// LBA field holds what keeps the command from being sent by chance: "Cryp", "BkEr", "OW".
    pub const fn sanitize(operation: Operation) -> Command {
        match operation {
            Operation::Crypto => sanitize(0x0011, 0, 0x4372_7970),
            Operation::Block => sanitize(0x0012, 0, 0x426b_4572),
            Operation::Overwrite => sanitize(0x0014, 1, 0x4f57 << 32),
        }
    }
}

const fn sanitize(features: u16, count: u16, lba: u64) -> Command {
    Command { code: 0xb4, features, count, lba, extend: true, protocol: Protocol::NonData }
}

/// What a drive answered to SANITIZE STATUS EXT or to the beginning of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Where the last operation stands.
    pub state: State,
    /// The last operation ended well (SANITIZE OPERATION SUCCEEDED). It may be one of long ago.
    pub succeeded: bool,
}

impl Status {
    /// From the registers (7.36.1): COUNT bits 15 (succeeded), 14 (in progress), 13 (frozen), LBA bits 15:0 the
    /// progress. An aborted status says why in LBA bits 7:0: 01h failed before, 03h frozen.
    ///
    /// # Errors
    /// [`Error`] when the drive does not know the command, or its registers did not come back whole.
    pub fn of(registers: Result<Registers, Error>) -> Result<Status, Error> {
        match registers {
            Ok(registers) if registers.truncated => {
                Err(Error::NoAnswer("it keeps half of the registers to itself".to_owned()))
            }
            Ok(registers) => {
                let bit = |bit: u32| registers.count & (1 << bit) != 0;
                let state = if bit(14) {
                    State::Running(u16::try_from(registers.lba & 0xffff).unwrap_or(0))
                } else if bit(13) {
                    State::Frozen
                } else {
                    State::Idle
                };
                Ok(Status { state, succeeded: bit(15) })
            }
            Err(Error::Aborted(registers)) => match registers.lba & 0xff {
                1 => Ok(Status { state: State::Failed, succeeded: false }),
                3 => Ok(Status { state: State::Frozen, succeeded: false }),
                _ => Err(Error::Aborted(registers)),
            },
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_bytes_of_sanitize_device() {
        let head = [0x85, 0x07, 0x20, 0x00];
        let bytes = |rest: [u8; 12]| [&head[..], &rest].concat();
        // FEATURE low, COUNT, then LBA bytes in the order 31:24, 7:0, 39:32, 15:8, 47:40, 23:16.
        let crypto = bytes([0x11, 0, 0, 0x43, 0x70, 0, 0x79, 0, 0x72, 0x40, 0xb4, 0]);
        assert_eq!(Command::sanitize(Operation::Crypto).pass_through().to_vec(), crypto);
        let block = bytes([0x12, 0, 0, 0x42, 0x72, 0, 0x45, 0, 0x6b, 0x40, 0xb4, 0]);
        assert_eq!(Command::sanitize(Operation::Block).pass_through().to_vec(), block);
        let overwrite = bytes([0x14, 0, 1, 0, 0, 0x57, 0, 0x4f, 0, 0x40, 0xb4, 0]);
        assert_eq!(Command::sanitize(Operation::Overwrite).pass_through().to_vec(), overwrite);
        let status = bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xb4, 0]);
        assert_eq!(Command::SANITIZE_STATUS.pass_through().to_vec(), status);
        let clear = bytes([0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xb4, 0]);
        assert_eq!(Command::SANITIZE_CLEAR_FAILURE.pass_through().to_vec(), clear);
    }

    #[test]
    fn every_status_of_the_standard() {
        let with = |count, lba| Status::of(Ok(Registers { count, lba, ..Registers::default() })).unwrap();
        assert_eq!(with(0, 0), Status { state: State::Idle, succeeded: false });
        assert_eq!(with(0x8000, 0xffff), Status { state: State::Idle, succeeded: true });
        assert_eq!(with(0x4000, 0x7fff).state, State::Running(0x7fff));
        assert_eq!(with(0x2000, 0).state, State::Frozen);
        let aborted = |lba| Status::of(Err(Error::Aborted(Registers { lba, ..Registers::default() })));
        assert_eq!(aborted(1).unwrap().state, State::Failed);
        assert_eq!(aborted(3).unwrap().state, State::Frozen);
        assert!(aborted(0).is_err() && aborted(2).is_err(), "no reason, or not supported");
        let half = Registers { truncated: true, ..Registers::default() };
        assert!(Status::of(Ok(half)).is_err());
    }
}
