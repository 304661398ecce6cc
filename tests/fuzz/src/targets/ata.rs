//! ATA behind SCSI pass-through: what the probe asks, Sanitize, and the secure erase, on a drive that may say anything.

use crate::oracle::{Oracle, Tape, work};
use block::Probe;
use block::capabilities;
use block::drive::{Drive, ata_sanitize, ata_security};
use block::sanitize::Operation;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let mut tape = Tape(input);
    let Some(choice) = tape.byte() else { return };
    let oracle = Oracle::new(tape.0);
    match choice % 7 {
        0 => drop(work(&oracle, |work| ata_sanitize::run(work, Operation::Crypto))),
        1 => drop(work(&oracle, |work| ata_sanitize::run(work, Operation::Block))),
        2 => drop(work(&oracle, |work| ata_sanitize::run(work, Operation::Overwrite))),
        enhanced @ (3 | 4) => {
            if work(&oracle, |work| ata_security::run(work, enhanced == 4)).is_ok() {
                // IDENTIFY DEVICE, word 128, bit 1: a password is set. A drive is never left with one in silence.
                let identify = oracle.last_returned(|_| true).expect("no success without an answer");
                assert_eq!(identify[256] & 2, 0, "left with a password");
            }
        }
        5 => {
            let probe = Probe::default();
            let _ = ata_security::rescue(&Drive { transport: &oracle, probe: &probe });
        }
        _ => drop(capabilities::ata(&oracle)),
    }
}
