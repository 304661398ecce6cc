//! eMMC (JESD84-B51): the commands that are sent, and what a device says of itself.

mod boot_area;
mod ext_csd;

pub use boot_area::BootArea;
pub(crate) use boot_area::boot_areas;
pub use ext_csd::{ExtCsd, LENGTH};

use std::time::Duration;

/// Index of SANITIZE_START in the EXT_CSD.
const SANITIZE_START: u32 = 165;

// Responses and command types of `linux/mmc/core.h`, each with its SPI form.
const R1: u32 = 0x15 | 0x80;
const R1B: u32 = 0x1d | 0x480;
const WITH_DATA: u32 = 1 << 5;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// CMD number.
    pub opcode: u32,
    /// Argument.
    pub arg: u32,
    /// Response and type, as the kernel wants them.
    pub flags: u32,
    /// Bytes that the device sends, 0 for none.
    pub length: u32,
    /// How long it may take; zero for the kernel's own limit.
    pub timeout: Duration,
}

impl Command {
    /// CMD8, SEND_EXT_CSD: [`LENGTH`] bytes.
    pub const SEND_EXT_CSD: Command =
        Command { opcode: 8, arg: 0, flags: R1 | WITH_DATA, length: 512, timeout: Duration::ZERO };

    /// CMD31, SEND_WRITE_PROT_TYPE: 8 bytes, two bits for each of the 32 groups from this sector on.
    pub fn write_protection(sector: u32) -> Command {
        Command { opcode: 31, arg: sector, flags: R1 | WITH_DATA, length: 8, timeout: Duration::ZERO }
    }

    /// CMD35, CMD36 and CMD38: erase all groups from that of the sector `first` to that of the sector `last`.
    pub fn erase(first: u32, last: u32, timeout: Duration) -> [Command; 3] {
        let none = Duration::ZERO;
        [
            Command { opcode: 35, arg: first, flags: R1, length: 0, timeout: none },
            Command { opcode: 36, arg: last, flags: R1, length: 0, timeout: none },
            Command { opcode: 38, arg: 0, flags: R1B, length: 0, timeout },
        ]
    }

    /// CMD6, SWITCH: SANITIZE_START. Nothing that is not mapped any more stays.
    pub fn sanitize(timeout: Duration) -> Command {
        let arg = 3 << 24 | SANITIZE_START << 16 | 1 << 8 | 1;
        Command { opcode: 6, arg, flags: R1B, length: 0, timeout }
    }
}

/// Returns the fault in the device status of a response (R1; 6.13). Bits that report no fault are ignored.
pub fn complaint(status: u32) -> Option<&'static str> {
    let faults = [
        (31, "address out of range"),
        (30, "misaligned address"),
        (28, "erase commands out of order"),
        (27, "wrong erase groups"),
        (26, "write protected"),
        (25, "the device is locked by a password"),
        (22, "it does not know the command"),
        (20, "controller error"),
        (19, "general error"),
        (15, "groups that are write protected were left"),
        (13, "the erase was called off"),
        (7, "it refuses the switch"),
    ];
    faults.into_iter().find(|(bit, _)| status & (1 << bit) != 0).map(|(_, text)| text)
}

/// How many groups are write protected, of those in an answer to [`Command::write_protection`].
pub fn protected_groups(answer: [u8; 8]) -> u32 {
    let pairs = u64::from_be_bytes(answer);
    // A pair that is not 00 protects, until the power goes or for good.
    ((pairs | pairs >> 1) & 0x5555_5555_5555_5555).count_ones()
}

/// What an eMMC says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Emmc {
    /// Its registers.
    pub registers: ExtCsd,
    /// Groups of its sectors that are write protected.
    pub protected: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_commands() {
        let second = Duration::from_secs(1);
        let sanitize = Command::sanitize(second);
        assert_eq!((sanitize.opcode, sanitize.arg, sanitize.flags), (6, 0x03a5_0101, 0x49d));
        let erase = Command::erase(0x1000, 0x1fff, second);
        let words = erase.map(|command| (command.opcode, command.arg, command.flags));
        assert_eq!(words, [(35, 0x1000, 0x95), (36, 0x1fff, 0x95), (38, 0, 0x49d)]);
        assert_eq!(erase.map(|command| command.timeout.as_secs()), [0, 0, 1]);
        assert_eq!(Command::SEND_EXT_CSD.flags, 0xb5);
        let protection = Command::write_protection(0x8000);
        assert_eq!((protection.arg, protection.flags, protection.length), (0x8000, 0xb5, 8));
    }

    #[test]
    fn statuses_and_protection_are_read() {
        assert_eq!(complaint(0x0000_0900), None, "ready, in the transfer state");
        assert_eq!(complaint(0x0000_8900), Some("groups that are write protected were left"));
        assert_eq!(complaint(0x0000_0980), Some("it refuses the switch"));
        assert_eq!(complaint(0x0400_0000), Some("write protected"));
        assert_eq!(protected_groups([0; 8]), 0);
        assert_eq!(protected_groups([0xc0, 0, 0, 0, 0, 0, 0, 0b1001]), 3);
    }
}
