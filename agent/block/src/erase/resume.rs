//! Going on with an overwrite that was interrupted: by a reboot, a power cut, the death of the process.

use super::record::{Record, ending, untried};
use super::{erase_requiring, work};
use crate::aligned::{Aligned, is_zero};
use crate::checkpoint::Checkpoint;
use crate::fault::Fault;
use crate::method::Method;
use crate::progress::Watch;
use crate::sample::Samples;
use crate::target::{Target, read_exact};
use crate::verify::RequiredVerification;

/// Methods that were tried and given up before the interruption say so.
const BEFORE: &str = "given up before the interruption";
/// How far below the offset it is looked whether all is as written, and in how many places.
const REACH: u64 = 1 << 30;
const PLACES: u64 = 16;
/// Bytes read in each place.
const WINDOW: u64 = 64 << 10;

/// As [`crate::erase_requiring()`], from a checkpoint of the same disk on; which disk it is the caller has to know for certain.
/// Whatever speaks against the checkpoint (it does not fit the disk or the methods, or what is below it is not as it was
/// written) makes it begin at 0. The read-back is of the whole disk either way.
pub fn resume(
    target: &dyn Target,
    methods: &[Method],
    required: RequiredVerification,
    from: &Checkpoint,
    watch: &dyn Watch,
) -> Record {
    let place = methods.iter().position(|method| *method == from.method);
    let Some(place) = place.filter(|_| fits(target, from)) else {
        tracing::warn!(
            device = target.name(),
            offset = from.offset,
            "the checkpoint does not fit: from the beginning"
        );
        return erase_requiring(target, methods, required, watch);
    };
    match is_as_written(target, from.offset, watch) {
        Ok(true) => {}
        Ok(false) => {
            tracing::warn!(
                device = target.name(),
                offset = from.offset,
                "what is below the checkpoint is not as it was written: from the beginning"
            );
            return erase_requiring(target, methods, required, watch);
        }
        Err(fault) => return Record { ending: ending(target, &fault), ..untried() },
    }
    tracing::info!(device = target.name(), offset = from.offset, "going on from the checkpoint");
    let samples = Samples::again(target, &from.samples);
    let mut record = work(target, &methods[place..], required, &samples, Some(from.offset), watch);
    let before = methods[..place].iter().map(|method| (*method, BEFORE.to_owned()));
    record.fallbacks = before.chain(record.fallbacks).collect();
    record
}

fn fits(target: &dyn Target, from: &Checkpoint) -> bool {
    let overwrites = matches!(from.method, Method::ZeroOut | Method::Overwrite);
    let whole = from.offset.is_multiple_of(u64::from(target.logical_block())) || from.offset == target.size();
    overwrites && whole && from.offset > 0 && from.offset <= target.size()
}

/// Whether a few places near the end of what was written read as zeroes. One that cannot be read does not.
fn is_as_written(target: &dyn Target, offset: u64, watch: &dyn Watch) -> Result<bool, Fault> {
    let sector = u64::from(target.logical_block());
    let (reach, window) = (REACH.min(offset), WINDOW.min(offset));
    let mut buffer = Aligned::new(usize::try_from(window).unwrap_or(0));
    for place in 0..PLACES {
        if watch.cancelled() {
            return Err(Fault::Cancelled);
        }
        // From the offset downwards, on sectors.
        let at = (offset - window - (reach - window) * place / PLACES) / sector * sector;
        match read_exact(target, &mut buffer, at) {
            Ok(()) if is_zero(&buffer) => {}
            Err(fault) if !target.present() => return Err(Fault::Vanished(fault.to_string())),
            Ok(()) | Err(_) => return Ok(false),
        }
    }
    Ok(true)
}
