//! What the stages have in common, and what they have done in the end.

use super::progress::{Meter, Phase, Watch};
use crate::checkpoint::Checkpoint;
use crate::digest::LeafSum;
use crate::error::ImageError;
use crate::format::Format;
use crate::hold::Held;
use crate::unpack::Compression;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the stages have done together.
pub(super) struct Streamed {
    pub(super) digest: String,
    pub(super) downloaded: u64,
    pub(super) format: Format,
    pub(super) compression: Compression,
    pub(super) size: u64,
    pub(super) written: u64,
    pub(super) held: Held,
    pub(super) sum: LeafSum,
}

/// What the stages report to the thread that waits for them.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) cancelled: AtomicBool,
    pub(super) received: AtomicU64,
    pub(super) length: Mutex<Option<u64>>,
    pub(super) written: AtomicU64,
    pub(super) notes: Mutex<Vec<String>>,
    checkpoints: Mutex<Option<Checkpoint>>,
}

impl Shared {
    pub(super) fn stopped(&self) -> Result<(), ImageError> {
        if self.cancelled.load(Ordering::Acquire) { Err(ImageError::Cancelled) } else { Ok(()) }
    }

    pub(super) fn checkpoint(&self, checkpoint: Checkpoint) {
        *self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner) = Some(checkpoint);
    }

    /// Reports what is new.
    pub(super) fn report(&self, watch: &dyn Watch, meter: &mut Meter) {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        notes.iter().for_each(|note| watch.note(note));
        let checkpoint = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner).take();
        checkpoint.into_iter().for_each(|checkpoint| watch.checkpoint(checkpoint));
        let (received, done) = (self.received.load(Ordering::Acquire), self.written.load(Ordering::Acquire));
        let length = *self.length.lock().unwrap_or_else(PoisonError::into_inner);
        watch.progress(meter.progress(Phase::Writing, (received, done), received, length));
        if watch.cancelled() {
            self.cancelled.store(true, Ordering::Release);
        }
    }
}
