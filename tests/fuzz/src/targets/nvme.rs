//! NVMe: what the probe asks, and Sanitize, on a controller that may say anything.

use crate::oracle::{Oracle, Tape, work};
use block::capabilities;
use block::drive::nvme_sanitize;
use block::sanitize::Operation;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let mut tape = Tape(input);
    let Some(choice) = tape.byte() else { return };
    let oracle = Oracle::new(tape.0);
    let operation = match choice % 4 {
        0 => Operation::Crypto,
        1 => Operation::Block,
        2 => Operation::Overwrite,
        _ => {
            let _ = capabilities::nvme(&oracle, u32::from(choice));
            return;
        }
    };
    if work(&oracle, |work| nvme_sanitize::run(work, operation)).is_ok() {
        // Sanitize log page, bytes 2 and 3: SSTAT; 1 and 4 are the two kinds of success.
        let log = oracle.last_returned(|asked| asked[0] == 0x02).expect("no success without a log");
        assert!(matches!(log[2] & 7, 1 | 4), "believed a log of status {:#x}", log[2]);
    }
}
