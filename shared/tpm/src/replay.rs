//! What a log says that PCRs hold.

use crate::digest::Digest;
use crate::event_log::EventLog;

/// The value of a PCR that all events of the log have extended, from zeros on.
///
/// For PCR 0 that is wrong where the firmware's first code was started at another locality; nothing here asks for it.
pub fn replay(log: &EventLog, pcr: u8) -> Digest {
    log.of(pcr).fold(Digest::ZERO, |value, event| value.extended(event.digest))
}
