//! The places of streams of one kind: there are so many and no more. Each stream holds one while it is open, and hears of changes.

use std::fmt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// The places.
pub struct StreamPlaces {
    free: Arc<Semaphore>,
    stop: CancellationToken,
}

/// One of them, free again when it is dropped.
pub struct Place {
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

/// One stream's part: it holds a place, and hears of changes.
pub struct Listener<T> {
    heard: watch::Receiver<T>,
    place: Place,
}

impl StreamPlaces {
    /// So many places, of streams that end with `stop`.
    pub fn new(streams: usize, stop: CancellationToken) -> Self {
        Self { free: Arc::new(Semaphore::new(streams)), stop }
    }

    /// Take a place; `None`: there are as many streams as there may be.
    pub fn take(&self) -> Option<Place> {
        let permit = self.free.clone().try_acquire_owned().ok()?;
        Some(Place { stop: self.stop.clone(), _permit: permit })
    }

    /// Ends the streams.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

impl fmt::Debug for StreamPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamPlaces").field(&self.free.available_permits()).finish()
    }
}

impl Place {
    /// The stream in this place hears of what is sent here from now on.
    pub fn hearing<T>(self, heard: watch::Receiver<T>) -> Listener<T> {
        Listener { heard, place: self }
    }
}

impl<T: Copy> Listener<T> {
    /// Waits for a change after the last that was seen; false: no more are heard of, since the controller stops.
    pub async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.heard.changed() => changed.is_ok(),
            () = self.place.stop.cancelled() => false,
        }
    }

    /// All changes until now are seen; the last of them.
    pub fn seen(&mut self) -> T {
        *self.heard.borrow_and_update()
    }

    /// The last change was not seen after all.
    pub fn again(&mut self) {
        self.heard.mark_changed();
    }
}
