//! SCSI: commands and replies. SCSI Primary Commands 6 (SPC-6), SCSI Block Commands 4 (SBC-4). Bytes only; the ioctl
//! is in `sys`.

pub mod capabilities;
pub mod sense;

pub use capabilities::{Capabilities, Reservation};

use crate::sanitize::Operation;
use sense::Sense;

/// What became of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// SCSI status: 0 good, 2 check condition, 8 busy, 18h reservation conflict.
    pub status: u8,
    /// What the host adapter says, 0 for nothing (`DID_OK`).
    pub host: u16,
    /// Sense data, empty where there is none.
    pub sense: Vec<u8>,
    /// Bytes that came back or went out.
    pub transferred: usize,
}

impl Reply {
    /// Whether the command succeeded without a word.
    pub fn good(&self) -> bool {
        self.status == 0 && self.host == 0
    }

    /// Sense data, parsed.
    pub fn sense(&self) -> Option<Sense<'_>> {
        Sense::parse(&self.sense)
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SCSI status {:#04x}", self.status)?;
        if self.host != 0 {
            write!(f, ", host adapter error {:#04x}", self.host)?;
        }
        match self.sense() {
            Some(sense) => write!(f, ", {sense}"),
            None => Ok(()),
        }
    }
}

/// INQUIRY (SPC-6 6.7) of a page of vital product data.
pub fn inquiry(page: u8, length: u16) -> [u8; 6] {
    let [high, low] = length.to_be_bytes();
    [0x12, 1, page, high, low, 0]
}

/// MODE SENSE (10) (SPC-6 6.15) of the header alone: all pages, no block descriptors.
pub fn mode_sense(length: u16) -> [u8; 10] {
    let [high, low] = length.to_be_bytes();
    [0x5a, 0x08, 0x3f, 0, 0, 0, 0, high, low, 0]
}

/// READ CAPACITY (16) (SBC-4 5.20).
pub fn read_capacity(length: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x9e, 0x10);
    cdb[10..14].copy_from_slice(&length.to_be_bytes());
    cdb
}

/// REPORT SUPPORTED OPERATION CODES (SPC-6 6.36) of one operation code, with its service action where it has one.
pub fn report_operation(code: u8, service_action: Option<u8>, length: u32) -> [u8; 12] {
    let [a, b, c, d] = length.to_be_bytes();
    let (options, action) = service_action.map_or((1, 0), |action| (2, action));
    [0xa3, 0x0c, options, code, 0, action, a, b, c, d, 0, 0]
}

/// PERSISTENT RESERVE IN (SPC-6 6.16): READ KEYS.
pub fn read_keys(length: u16) -> [u8; 10] {
    persistent_reserve_in(0, length)
}

/// PERSISTENT RESERVE IN: READ RESERVATION.
pub fn read_reservation(length: u16) -> [u8; 10] {
    persistent_reserve_in(1, length)
}

fn persistent_reserve_in(action: u8, length: u16) -> [u8; 10] {
    let [high, low] = length.to_be_bytes();
    [0x5e, action, 0, 0, 0, 0, 0, high, low, 0]
}

/// REQUEST SENSE (SPC-6 6.42) in fixed format: what the drive is busy with, and how far it is.
pub const REQUEST_SENSE: [u8; 6] = [0x03, 0, 0, 0, 252, 0];

/// TEST UNIT READY (SPC-6 6.52).
pub const TEST_UNIT_READY: [u8; 6] = [0; 6];

/// SANITIZE (SBC-4 5.30), answered at once (IMMED), in restricted completion mode (AUSE = 0). An overwrite takes
/// [`OVERWRITE_PARAMETERS`].
pub fn sanitize(operation: Operation) -> [u8; 10] {
    let (action, parameters) = match operation {
        Operation::Overwrite => (0x01, OVERWRITE_PARAMETERS.len()),
        Operation::Block => (0x02, 0),
        Operation::Crypto => (0x03, 0),
    };
    let parameters = u8::try_from(parameters).unwrap_or(0);
    [0x48, 0x80 | action, 0, 0, 0, 0, 0, 0, parameters, 0]
}

/// One pass of a four-byte pattern of zeroes.
pub const OVERWRITE_PARAMETERS: [u8; 8] = [0x01, 0, 0, 4, 0, 0, 0, 0];

/// The service action of a sanitize operation, for REPORT SUPPORTED OPERATION CODES.
pub fn sanitize_action(operation: Operation) -> u8 {
    sanitize(operation)[1] & 0x1f
}

/// FORMAT UNIT (SBC-4 5.4) with the protection information that the disk has (`type`, 0..=3), and its parameters: the
/// initialisation pattern of zeroes also goes to reassigned blocks (SI), answered at once (IMMED).
pub fn format_unit(protection: u8) -> ([u8; 6], [u8; 12]) {
    // FMTPINFO 10b is type 1, 11b types 2 and 3; PROTECTION FIELD USAGE 001b distinguishes type 3 from type 2.
    let (information, usage) = match protection {
        1 => (0b10, 0),
        2 => (0b11, 0),
        3 => (0b11, 1),
        _ => (0, 0),
    };
    let format_data = 1 << 4;
    // FOV, IP, IMMED; no defect list; the pattern: SI, repeated, four bytes of zero.
    ([0x04, information << 6 | format_data, 0, 0, 0, 0], [usage, 0x8a, 0, 0, 0x20, 0x01, 0, 4, 0, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_bytes_of_questions() {
        assert_eq!(inquiry(0xb2, 64), [0x12, 0x01, 0xb2, 0, 64, 0]);
        assert_eq!(mode_sense(8), [0x5a, 0x08, 0x3f, 0, 0, 0, 0, 0, 8, 0]);
        assert_eq!(read_capacity(32), [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]);
        assert_eq!(report_operation(0x48, Some(3), 32), [0xa3, 0x0c, 2, 0x48, 0, 3, 0, 0, 0, 32, 0, 0]);
        assert_eq!(report_operation(0x04, None, 32), [0xa3, 0x0c, 1, 0x04, 0, 0, 0, 0, 0, 32, 0, 0]);
        assert_eq!(read_keys(512), [0x5e, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
        assert_eq!(read_reservation(24), [0x5e, 1, 0, 0, 0, 0, 0, 0, 24, 0]);
    }

    #[test]
    fn frozen_bytes_of_sanitize() {
        assert_eq!(sanitize(Operation::Overwrite), [0x48, 0x81, 0, 0, 0, 0, 0, 0, 8, 0]);
        assert_eq!(sanitize(Operation::Block), [0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sanitize(Operation::Crypto), [0x48, 0x83, 0, 0, 0, 0, 0, 0, 0, 0]);
        // One pass (OVERWRITE COUNT 1), a pattern of four bytes.
        assert_eq!(OVERWRITE_PARAMETERS, [1, 0, 0, 4, 0, 0, 0, 0]);
    }

    #[test]
    fn frozen_bytes_of_format_unit() {
        let list = |usage| [usage, 0x8a, 0, 0, 0x20, 1, 0, 4, 0, 0, 0, 0];
        assert_eq!(format_unit(0), ([0x04, 0x10, 0, 0, 0, 0], list(0)));
        assert_eq!(format_unit(1), ([0x04, 0x90, 0, 0, 0, 0], list(0)));
        assert_eq!(format_unit(2), ([0x04, 0xd0, 0, 0, 0, 0], list(0)));
        assert_eq!(format_unit(3), ([0x04, 0xd0, 0, 0, 0, 0], list(1)));
    }
}
