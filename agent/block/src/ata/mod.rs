//! ATA: commands, and how they travel in SCSI ones. ATA Command Set 4 (ACS-4), SCSI/ATA Translation 4 (SAT-4).
//! Bytes only; the ioctl is in `sys`.

pub mod capabilities;
pub mod identify;
pub mod sanitize;
pub mod security;

pub use capabilities::{Capabilities, HiddenArea, HiddenAreaQuestions, Security};
pub use identify::Identify;

use crate::scsi::Reply;
use crate::scsi::sense::Sense;

/// Bytes of every data transfer that this crate makes.
pub const SECTOR: usize = 512;

/// How a command moves data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Not at all.
    #[default]
    NonData,
    /// 512 bytes from the drive (PIO).
    In,
    /// 512 bytes to the drive (PIO).
    Out,
}

/// A command as the drive's registers get it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Command {
    /// Command code.
    pub code: u8,
    /// FEATURE field.
    pub features: u16,
    /// COUNT field.
    pub count: u16,
    /// LBA field, 48 bits.
    pub lba: u64,
    /// A 48-bit command: the upper bytes of the fields count.
    pub extend: bool,
    /// How it moves data.
    pub protocol: Protocol,
}

impl Command {
    /// IDENTIFY DEVICE (ACS-4 7.13).
    pub const IDENTIFY: Command =
        Command { code: 0xec, count: 1, protocol: Protocol::In, ..Command::simple(0xec) };
    /// READ NATIVE MAX ADDRESS EXT (ACS-2 7.35): the last sector without a host protected area.
    pub const READ_NATIVE_MAX: Command = Command { extend: true, ..Command::simple(0x27) };
    /// GET NATIVE MAX ADDRESS EXT (ACS-4 7.2.2), of the accessible max address configuration.
    pub const GET_NATIVE_MAX: Command = Command { extend: true, ..Command::simple(0x78) };
    /// DEVICE CONFIGURATION IDENTIFY (ACS-2 7.8.2).
    pub const CONFIGURATION_IDENTIFY: Command =
        Command { features: 0xc2, count: 1, protocol: Protocol::In, ..Command::simple(0xb1) };

    /// DEVICE CONFIGURATION RESTORE (ACS-2 7.8.4).
    pub const CONFIGURATION_RESTORE: Command = Command { features: 0xc0, ..Command::simple(0xb1) };

    /// SET MAX ADDRESS EXT (ACS-2 7.56), to the last sector that shall be addressed, also after power off. Counts only
    /// directly after [`Command::READ_NATIVE_MAX`].
    pub const fn set_max(lba: u64) -> Command {
        Command { count: 1, lba, extend: true, ..Command::simple(0x37) }
    }

    /// SET ACCESSIBLE MAX ADDRESS EXT (ACS-4 7.2.3), to the last sector that shall be addressed.
    pub const fn set_accessible_max(lba: u64) -> Command {
        Command { features: 1, lba, extend: true, ..Command::simple(0x78) }
    }

    const fn simple(code: u8) -> Command {
        Command { code, features: 0, count: 0, lba: 0, extend: false, protocol: Protocol::NonData }
    }

    /// The command as ATA PASS-THROUGH (16) (SAT-4 12.2.2). One without data asks for the registers afterwards
    /// (CK_COND). One with data does not: libata looks at the status before the data is over, takes DRQ for an error,
    /// and answers a good command with "aborted".
    pub fn pass_through(&self) -> [u8; 16] {
        let [.., features_high, features_low] = self.features.to_be_bytes();
        let [count_high, count_low] = self.count.to_be_bytes();
        let [_, _, lba5, lba4, lba3, lba2, lba1, lba0] = self.lba.to_be_bytes();
        let (protocol, transfer) = match self.protocol {
            Protocol::NonData => (3, 0x20),
            // T_DIR in, BYT_BLOK blocks, T_LENGTH in the COUNT field.
            Protocol::In => (4, 0x08 | 0x04 | 0x02),
            Protocol::Out => (5, 0x04 | 0x02),
        };
        [
            0x85,
            protocol << 1 | u8::from(self.extend),
            transfer,
            features_high,
            features_low,
            count_high,
            count_low,
            lba3,
            lba0,
            lba4,
            lba1,
            lba5,
            lba2,
            // DEVICE bit 6: the LBA field holds an LBA and no cylinder, head and sector.
            u8::from(self.extend) << 6,
            self.code,
            0,
        ]
    }
}

/// The registers after a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// ERROR field.
    pub error: u8,
    /// STATUS field.
    pub status: u8,
    /// COUNT field.
    pub count: u16,
    /// LBA field.
    pub lba: u64,
    /// The upper bytes of COUNT and LBA are not known: the sense data had no room for them.
    pub truncated: bool,
}

/// Why the registers of a command are not known, or bad.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The drive aborted the command.
    #[error("the drive aborted the command (ATA status {:#04x}, error {:#04x})", .0.status, .0.error)]
    Aborted(Registers),
    /// The controller does not hand ATA commands through, or not what became of them.
    #[error("the controller does not hand ATA commands through: {0}")]
    NoAnswer(String),
}

/// Sense key of a command that the drive aborted.
const ABORTED_COMMAND: u8 = 0xb;

impl Registers {
    /// What became of a command without data that went by [`Command::pass_through`]: ATA Status Return, or the fixed format
    /// (SAT-4 12.2.2.6, 12.2.2.7).
    ///
    /// # Errors
    /// [`Error`] when the drive aborted the command, or its registers did not come back.
    pub fn of(reply: &Reply) -> Result<Registers, Error> {
        let no_answer = || Error::NoAnswer(reply.to_string());
        let sense = Sense::parse(&reply.sense).ok_or_else(no_answer)?;
        if sense.descriptor(0x09).is_none() && sense.key == ABORTED_COMMAND {
            // libata's fixed format has the registers of a failure in places that changed between its versions.
            return Err(Error::Aborted(Registers { error: 0x04, status: 0x51, ..Registers::default() }));
        }
        let registers = match (sense.descriptor(0x09), &reply.sense[..]) {
            (Some(&[_, _, extend, error, c1, c0, l3, l0, l4, l1, l5, l2, _, status, ..]), _) => {
                let upper = |byte: u8| if extend & 1 != 0 { byte } else { 0 };
                Registers {
                    error,
                    status,
                    count: u16::from_be_bytes([upper(c1), c0]),
                    lba: u64::from_be_bytes([0, 0, upper(l5), upper(l4), upper(l3), l2, l1, l0]),
                    truncated: false,
                }
            }
            (None, &[code, _, _, error, status, _, count, _, flags, l0, l1, l2, ..])
                if matches!(code & 0x7f, 0x70) && sense.is(0x00, 0x1d) =>
            {
                Registers {
                    error,
                    status,
                    count: count.into(),
                    lba: u64::from_be_bytes([0, 0, 0, 0, 0, l2, l1, l0]),
                    // COUNT UPPER NONZERO, LBA UPPER NONZERO.
                    truncated: flags & 0x60 != 0,
                }
            }
            _ => return Err(no_answer()),
        };
        // ERR, and DF: device fault.
        if registers.status & 0x21 != 0 { Err(Error::Aborted(registers)) } else { Ok(registers) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sense data with an ATA Status Return descriptor, as libata builds it.
    fn status_return(tail: [u8; 12]) -> Reply {
        let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 0x0c];
        sense.extend(tail);
        Reply { status: 2, sense, ..Reply::default() }
    }

    #[test]
    fn frozen_bytes_of_pass_through() {
        let identify = [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0];
        assert_eq!(Command::IDENTIFY.pass_through(), identify);
        let native = [0x85, 0x07, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x27, 0];
        assert_eq!(Command::READ_NATIVE_MAX.pass_through(), native);
        let set_max = [0x85, 0x07, 0x20, 0, 0, 0, 1, 4, 1, 5, 2, 6, 3, 0x40, 0x37, 0];
        assert_eq!(Command::set_max(0x0605_0403_0201).pass_through(), set_max);
        let set_accessible = [0x85, 0x07, 0x20, 0, 1, 0, 0, 4, 1, 5, 2, 6, 3, 0x40, 0x78, 0];
        assert_eq!(Command::set_accessible_max(0x0605_0403_0201).pass_through(), set_accessible);
        let restore = [0x85, 0x06, 0x20, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb1, 0];
        assert_eq!(Command::CONFIGURATION_RESTORE.pass_through(), restore);
        let accessible = [0x85, 0x07, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x78, 0];
        assert_eq!(Command::GET_NATIVE_MAX.pass_through(), accessible);
        let configuration = [0x85, 0x08, 0x0e, 0, 0xc2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xb1, 0];
        assert_eq!(Command::CONFIGURATION_IDENTIFY.pass_through(), configuration);
        let all = Command {
            code: 0xb4,
            features: 0x0102,
            count: 0x0304,
            lba: 0x0506_0708_090a,
            extend: true,
            protocol: Protocol::Out,
        };
        let expected = [0x85, 0x0b, 0x06, 1, 2, 3, 4, 0x07, 0x0a, 0x06, 0x09, 0x05, 0x08, 0x40, 0xb4, 0];
        assert_eq!(all.pass_through(), expected);
    }

    #[test]
    fn registers_come_back_in_both_formats_of_sense() {
        let reply = status_return([0x01, 0x00, 0x80, 0x01, 0x04, 0x01, 0x05, 0x02, 0x06, 0x03, 0x40, 0x50]);
        let expected =
            Registers { status: 0x50, count: 0x8001, lba: 0x0605_0403_0201, ..Registers::default() };
        assert_eq!(Registers::of(&reply), Ok(expected));

        let mut fixed = vec![0u8; 18];
        (fixed[0], fixed[2], fixed[3], fixed[4], fixed[5], fixed[6]) = (0x70, 0x01, 0, 0x50, 0x40, 0x01);
        (fixed[7], fixed[8], fixed[9], fixed[10], fixed[11], fixed[13]) = (10, 0x40, 1, 2, 3, 0x1d);
        let reply = Reply { status: 2, sense: fixed, ..Reply::default() };
        let registers = Registers::of(&reply).unwrap();
        assert_eq!((registers.lba, registers.count, registers.truncated), (0x03_0201, 1, true));
    }

    #[test]
    fn an_aborted_command_and_a_silent_controller_are_distinguished() {
        let reply = status_return([0, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x51]);
        assert!(matches!(Registers::of(&reply), Err(Error::Aborted(registers)) if registers.error == 4));
        // ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE: no translation layer there.
        let sense = vec![0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];
        let reply = Reply { status: 2, sense, ..Reply::default() };
        assert!(matches!(Registers::of(&reply), Err(Error::NoAnswer(_))));
        assert!(
            matches!(Registers::of(&Reply::default()), Err(Error::NoAnswer(_))),
            "good, but no registers"
        );
    }

    #[test]
    fn what_linux_6_1_answered_over_ahci() {
        // Of an IDENTIFY with CK_COND that QEMU's drive had answered well: why data commands do without it.
        let sense = vec![0x70, 0, 0x0b, 0, 0, 0, 0, 0x0a, 0, 0x58, 0, 1, 0, 0, 0, 0, 0, 0];
        let reply = Reply { status: 2, sense, ..Reply::default() };
        assert!(matches!(Registers::of(&reply), Err(Error::Aborted(_))));
        // Of a SANITIZE STATUS EXT, which QEMU does not know: ERROR and STATUS are in bytes 8 and 9.
        let sense = vec![0x70, 0, 0x0b, 0, 0, 0, 0, 0x0a, 0x04, 0x41, 0, 0, 0, 0, 0, 0, 0x80, 0];
        let reply = Reply { status: 2, sense, ..Reply::default() };
        assert!(matches!(Registers::of(&reply), Err(Error::Aborted(_))));
        // Of a READ NATIVE MAX ADDRESS EXT that it answered.
        let reply = status_return([1, 0, 0, 0, 0, 0x20, 0, 0x82, 0, 0, 0, 0x50]);
        assert_eq!(Registers::of(&reply).map(|registers| registers.lba), Ok(0x8220));
    }

    proptest! {
        #[test]
        fn no_sense_makes_the_parser_panic(sense in prop::collection::vec(any::<u8>(), 0..80), status: u8) {
            let _ = Registers::of(&Reply { status, sense, ..Reply::default() });
        }
    }
}
