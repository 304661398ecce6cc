//! What a SCSI disk says it can do (SPC-6, SBC-4).

use crate::identity::payload;
use crate::sanitize::{Operation, State, Support};

/// What a disk can do about its content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// SANITIZE, with the state from REQUEST SENSE.
    pub sanitize: Support,
    /// FORMAT UNIT is supported.
    pub format_unit: bool,
    /// UNMAP or WRITE SAME with UNMAP is supported (page B2h).
    pub unmap: bool,
    /// WRITE SAME (16) is supported.
    pub write_same: bool,
    /// Protection information type, 0 when there is none (READ CAPACITY (16)).
    pub protection: u8,
    /// The disk is write protected (MODE SENSE, WP).
    pub write_protected: bool,
    /// Claims of other hosts to it.
    pub reservation: Reservation,
}

/// Persistent reservations of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Registered keys.
    pub keys: u32,
    /// Type of the reservation, 0 when there is none.
    pub kind: u8,
}

impl Reservation {
    /// From READ KEYS and READ RESERVATION (SPC-6 6.16.2, 6.16.3).
    pub fn parse(keys: &[u8], reservation: &[u8]) -> Option<Self> {
        let length = |data: &[u8]| Some(u32::from_be_bytes(data.get(4..8)?.try_into().ok()?));
        let kind = match length(reservation)? {
            0 => 0,
            // A reservation whose type did not come along is one all the same.
            _ => reservation.get(21).map_or(0xf, |byte| byte & 0xf).max(1),
        };
        Some(Reservation { keys: length(keys)? / 8, kind })
    }
}

/// Whether an operation code is supported as the standard has it, from REPORT SUPPORTED OPERATION CODES
/// (SPC-6 6.36.3): SUPPORT 011b. "In a vendor's way" (101b) is not good enough.
pub fn operation_supported(report: &[u8]) -> bool {
    report.len() >= 4 && report[1] & 7 == 3
}

/// WP of the mode parameter header (10) (SBC-4 6.5.1).
pub fn write_protected(mode: &[u8]) -> bool {
    mode.get(3).is_some_and(|parameter| parameter & 0x80 != 0)
}

/// Protection type of READ CAPACITY (16) (SBC-4 5.20.2): P_TYPE + 1 when PROT_EN.
pub fn protection(capacity: &[u8]) -> u8 {
    capacity.get(12).map_or(0, |&byte| if byte & 1 != 0 { ((byte >> 1) & 7) + 1 } else { 0 })
}

/// LBPU and LBPWS of page B2h (SBC-4 6.6.7).
pub fn unmaps(page: &[u8]) -> bool {
    payload(page, 0xb2).and_then(|body| body.get(1)).is_some_and(|flags| flags & 0xc0 != 0)
}

impl Support {
    /// From one REPORT SUPPORTED OPERATION CODES for each operation and the sense data of REQUEST SENSE.
    pub fn scsi(reports: impl Fn(Operation) -> bool, sense: &[u8]) -> Self {
        let state = match super::sense::Sense::parse(sense) {
            Some(sense) if sense.is(0x04, 0x1b) => Some(State::Running(sense.progress.unwrap_or(0))),
            Some(sense) if sense.is(0x31, 0x03) => Some(State::Failed),
            // Anything else than "not ready" is old news about something else; QEMU keeps the last error.
            Some(sense) if sense.key != 2 => Some(State::Idle),
            _ => None,
        };
        Support {
            crypto: reports(Operation::Crypto),
            block: reports(Operation::Block),
            overwrite: reports(Operation::Overwrite),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn support_as_the_standard_has_it_and_nothing_else() {
        for (support, expected) in [(0, false), (1, false), (3, true), (5, false), (0x83, true)] {
            assert_eq!(operation_supported(&[0, support, 0, 10, 0x48]), expected, "{support:#x}");
        }
        assert!(!operation_supported(&[0, 3]));
    }

    #[test]
    fn pages_and_headers() {
        assert!(write_protected(&[0, 6, 0, 0x90, 0, 0, 0, 0]));
        assert!(!write_protected(&[0, 6, 0, 0x10, 0, 0, 0, 0]));
        let mut capacity = [0u8; 32];
        assert_eq!(protection(&capacity), 0);
        capacity[12] = 0b0000_0101;
        assert_eq!(protection(&capacity), 3);
        assert!(unmaps(&[0, 0xb2, 0, 4, 0, 0x80, 0, 0]) && unmaps(&[0, 0xb2, 0, 4, 0, 0x40, 0, 0]));
        assert!(!unmaps(&[0, 0xb2, 0, 4, 0, 0x20, 0, 0]) && !unmaps(&[0, 0xb0, 0, 4, 0, 0x80, 0, 0]));
    }

    #[test]
    fn keys_and_reservations() {
        let keys = [&[0, 0, 0, 9, 0, 0, 0, 16][..], &[1; 16]].concat();
        let mut held = vec![0, 0, 0, 9, 0, 0, 0, 16];
        held.extend([0; 13]);
        held.push(0x05); // LU scope, write exclusive registrants only
        assert_eq!(Reservation::parse(&keys, &held), Some(Reservation { keys: 2, kind: 5 }));
        let none = [0, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(Reservation::parse(&none, &none), Some(Reservation { keys: 0, kind: 0 }));
        assert_eq!(Reservation::parse(&none, &held[..8]), Some(Reservation { keys: 0, kind: 15 }));
    }

    #[test]
    fn the_state_is_what_request_sense_says() {
        let state = |key, code, qualifier| {
            Support::scsi(
                |_| true,
                &[0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0x80, 1, 0],
            )
            .state
        };
        assert_eq!(state(2, 0x04, 0x1b), Some(State::Running(256)));
        assert_eq!(state(3, 0x31, 0x03), Some(State::Failed));
        assert_eq!(state(0, 0, 0), Some(State::Idle));
        assert_eq!(state(5, 0x20, 0), Some(State::Idle));
        assert_eq!(state(2, 0x04, 0x04), None, "a format: something else is going on");
        assert!(!Support::scsi(|_| true, &[]).takes(Operation::Block));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(
            a in prop::collection::vec(any::<u8>(), 0..64), b in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let _ = (operation_supported(&a), write_protected(&a), protection(&a), unmaps(&a));
            let _ = (Reservation::parse(&a, &b), Support::scsi(|_| true, &a));
        }
    }
}
