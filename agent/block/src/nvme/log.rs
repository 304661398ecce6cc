//! Log pages and reports of an NVMe controller (NVM Express Base Specification 2.0).

use crate::sanitize::State;
use std::time::Duration;

/// Log page of SMART and health information (5.16.1.3), of which 512 bytes are read.
pub const HEALTH: u8 = 0x02;
/// Log page of the sanitize status (5.16.1.25), of which 512 bytes are read.
pub const SANITIZE: u8 = 0x81;
/// Bytes read of either.
pub const LENGTH: usize = 512;
/// Bytes read of a reservation report: its head.
pub const RESERVATION_LENGTH: usize = 64;

/// The sanitize status log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SanitizeLog {
    /// Where the last operation stands; `None` for a value that the specification does not have.
    pub state: Option<State>,
    /// Whether the last operation ended, and well (SSTAT 001b or 100b). It may be one of long ago.
    pub succeeded: bool,
    /// Nothing was written since the last operation that ended well (Global Data Erased).
    pub untouched_since: bool,
    /// Dword 10 of the command that began the last operation (SCDW10).
    pub command: u32,
    /// Estimates.
    pub times: Times,
}

/// How long the drive takes for its sanitize operations, where it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// One overwrite pass.
    pub overwrite: Option<Duration>,
    /// Block erase.
    pub block: Option<Duration>,
    /// Cryptographic erase.
    pub crypto: Option<Duration>,
}

impl SanitizeLog {
    /// From the page; `None` when it is too short.
    pub fn parse(page: &[u8]) -> Option<Self> {
        let page = page.get(..32)?;
        let half = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        let time =
            |at: usize| Some(word(at)).filter(|&s| s != u32::MAX).map(|s| Duration::from_secs(s.into()));
        let state = match half(2) & 7 {
            0 | 1 | 4 => Some(State::Idle),
            2 => Some(State::Running(half(0))),
            3 => Some(State::Failed),
            _ => None,
        };
        Some(SanitizeLog {
            state,
            succeeded: matches!(half(2) & 7, 1 | 4),
            untouched_since: half(2) & (1 << 8) != 0,
            command: word(4),
            times: Times { overwrite: time(8), block: time(12), crypto: time(16) },
        })
    }
}

/// What a drive says of its health.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Share of its life that is used, in percent; 255 and more read as 255.
    pub used: u8,
    /// Temperature in degrees Celsius.
    pub celsius: i32,
    /// The medium is read-only or the drive unreliable (critical warning bits 2 and 3).
    pub failing: bool,
}

impl Health {
    /// From the page; `None` when it is too short.
    pub fn parse(page: &[u8]) -> Option<Self> {
        let page = page.get(..LENGTH)?;
        let kelvin = i32::from(u16::from_le_bytes([page[1], page[2]]));
        Some(Health { used: page[5], celsius: kelvin - 273, failing: page[0] & 0b1100 != 0 })
    }
}

/// Claims of other hosts to a namespace, from a reservation report (7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Reservation type, 0 when there is none.
    pub kind: u8,
    /// Hosts that have registered.
    pub registrants: u16,
}

impl Reservation {
    /// From the report; `None` when it is too short.
    pub fn parse(report: &[u8]) -> Option<Self> {
        let report = report.get(..24)?;
        Some(Reservation { kind: report[4], registrants: u16::from_le_bytes([report[5], report[6]]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(progress: u16, status: u16) -> Vec<u8> {
        let mut page = vec![0u8; LENGTH];
        page[0..2].copy_from_slice(&progress.to_le_bytes());
        page[2..4].copy_from_slice(&status.to_le_bytes());
        page[4] = 0x02;
        page[8..12].copy_from_slice(&[0xff; 4]);
        page[12..16].copy_from_slice(&120u32.to_le_bytes());
        page[16..20].copy_from_slice(&2u32.to_le_bytes());
        page
    }

    #[test]
    fn every_sanitize_status_of_the_specification() {
        // Bit 8 is Global Data Erased, bits 7:3 count overwrite passes: neither is the status.
        for (status, state, succeeded) in [
            (0x0000, Some(State::Idle), false),
            (0x0101, Some(State::Idle), true),
            (0x000a, Some(State::Running(655)), false),
            (0x0003, Some(State::Failed), false),
            (0x0104, Some(State::Idle), true),
            (0x0005, None, false),
        ] {
            let log = SanitizeLog::parse(&page(655, status)).unwrap();
            assert_eq!((log.state, log.succeeded), (state, succeeded), "{status:#06x}");
        }
        let log = SanitizeLog::parse(&page(0xffff, 1)).unwrap();
        assert_eq!(log.command, 2);
        assert_eq!(log.times.overwrite, None, "FFFFFFFFh: no time is reported");
        assert_eq!(log.times.block, Some(Duration::from_secs(120)));
        assert_eq!(log.times.crypto, Some(Duration::from_secs(2)));
    }

    #[test]
    fn health_and_reservations_as_the_figures_have_them() {
        let mut smart = vec![0u8; LENGTH];
        smart[0] = 0b1000; // read-only
        smart[1..3].copy_from_slice(&313u16.to_le_bytes());
        smart[5] = 87;
        assert_eq!(Health::parse(&smart), Some(Health { used: 87, celsius: 40, failing: true }));
        let mut report = vec![0u8; RESERVATION_LENGTH];
        report[4] = 1; // write exclusive
        report[5..7].copy_from_slice(&2u16.to_le_bytes());
        assert_eq!(Reservation::parse(&report), Some(Reservation { kind: 1, registrants: 2 }));
    }

    proptest! {
        #[test]
        fn no_page_makes_the_parsers_panic(page in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = (SanitizeLog::parse(&page), Health::parse(&page), Reservation::parse(&page));
        }
    }
}
