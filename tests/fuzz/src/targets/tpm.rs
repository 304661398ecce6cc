//! What an agent says of its TPM: the event log, keys, quotes and their signatures, certificates; and a signed ramdisk's file.

use tpm::{AttestationKey, EndorsementKey, parse_event_log, predict, replay};

/// Reads one input; panics when a promise does not hold.
pub fn run(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    match which % 5 {
        0 => {
            if let Ok(log) = parse_event_log(bytes) {
                // An event has at least its header: no log makes more of itself than it has bytes.
                assert!(log.0.len() * 12 <= bytes.len());
                for pcr in tpm::PCRS {
                    replay(&log, pcr);
                }
            }
        }
        1 => {
            if let Ok(key) = EndorsementKey::parse(bytes) {
                assert_eq!(key.public(), bytes);
                key.is_certified_by(bytes);
            }
        }
        2 => {
            if let Ok(key) = AttestationKey::parse(bytes) {
                assert_eq!(key.public(), bytes);
            }
        }
        3 => tpm::fuzz(bytes),
        _ => {
            let _ = predict(bytes);
        }
    }
}
