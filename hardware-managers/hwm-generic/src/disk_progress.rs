//! The progress of a disk, as heartbeats have it.

use agent_protocol::progress::{DiskProgress, Phase};
use block::Disk;

/// A disk that waits for its turn.
pub(crate) fn pending(disk: &Disk) -> DiskProgress {
    DiskProgress {
        device: disk.path.to_string_lossy().into_owned(),
        serial: disk.serial.clone(),
        phase: Phase::Pending,
        method: None,
        bytes_done: 0,
        bytes_total: disk.size,
        rate: 0,
        eta: None,
        stalled_since: None,
    }
}

/// Take over the progress of a disk.
pub(crate) fn advance(entry: &mut DiskProgress, progress: block::Progress) {
    entry.phase = match progress.phase {
        block::Phase::Sampling => Phase::Sampling,
        block::Phase::Erasing => Phase::Erasing,
        block::Phase::Verifying => Phase::Verifying,
    };
    entry.method = progress.method.map(|method| method.as_str().to_owned());
    entry.bytes_done = progress.done;
    entry.bytes_total = progress.total;
    entry.rate = progress.rate;
    entry.eta = progress.eta.map(|eta| eta.as_secs());
}
