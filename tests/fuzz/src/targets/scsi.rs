//! SCSI: what the probe asks, SANITIZE and FORMAT UNIT, and sense data, on a disk that may say anything. And what an eMMC may
//! say.

use crate::oracle::{Oracle, Tape, work, work_of};
use block::Probe;
use block::capabilities;
use block::drive::{emmc_sanitize, scsi_format, scsi_sanitize};
use block::mmc::ExtCsd;
use block::sanitize::Operation;
use block::scsi::sense::Sense;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let mut tape = Tape(input);
    let Some(choice) = tape.byte() else { return };
    let oracle = Oracle::new(tape.0);
    match choice % 8 {
        0 => drop(work(&oracle, |work| scsi_sanitize::run(work, Operation::Crypto).map(drop))),
        1 => drop(work(&oracle, |work| scsi_sanitize::run(work, Operation::Block).map(drop))),
        2 => drop(work(&oracle, |work| scsi_sanitize::run(work, Operation::Overwrite).map(drop))),
        3 => drop(work(&oracle, scsi_format::run)),
        4 => {
            if let Some(sense) = Sense::parse(tape.0) {
                assert!(!sense.to_string().is_empty());
            }
        }
        5 => {
            if let Ok(Some(mmc)) = capabilities::mmc(&oracle) {
                let probe = Probe { mmc: Some(mmc), ..Probe::default() };
                let _ = work_of(&oracle, &probe, emmc_sanitize::run);
            }
        }
        6 => drop(ExtCsd::parse(tape.0)),
        _ => drop(capabilities::scsi(&oracle)),
    }
}
