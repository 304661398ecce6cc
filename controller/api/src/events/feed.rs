//! Wakes streams when there are new events. One task looks for all of them, when the bell rings: it rings for every heartbeat too,
//! and each stream would ask the database then.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::ApiStore;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// Rings within this time cause one look.
const PAUSE: Duration = Duration::from_millis(100);
/// Without a ring it looks so often: those of other controllers are lost while the database is out of reach.
const LOOK: Duration = Duration::from_secs(5);

/// The streams of events of this controller.
#[derive(Clone)]
pub struct EventFeed(Arc<Inner>);

struct Inner {
    /// Number of the newest event.
    newest: watch::Sender<u64>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
    /// Whether the task runs.
    runs: Mutex<bool>,
}

/// One stream's part: it holds a place, and hears of new events.
pub struct Listener {
    heard: watch::Receiver<u64>,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl EventFeed {
    /// Most streams at once, unless the configuration says otherwise.
    pub const STREAMS: usize = 256;

    /// A feed of at most so many streams, which end with `stop`.
    pub fn new(streams: usize, stop: CancellationToken) -> Self {
        let places = Arc::new(Semaphore::new(streams));
        let newest = watch::Sender::new(0);
        Self(Arc::new(Inner { newest, places, stop, runs: Mutex::new(false) }))
    }

    /// Take part; `None`: there are as many streams as there may be.
    pub(crate) fn listen(&self, store: &Arc<dyn ApiStore>) -> Option<Listener> {
        let place = self.0.places.clone().try_acquire_owned().ok()?;
        let mut runs = self.0.runs();
        let listener =
            Listener { heard: self.0.newest.subscribe(), stop: self.0.stop.clone(), _place: place };
        if !*runs {
            *runs = true;
            tokio::spawn(follow(self.0.clone(), store.clone()));
        }
        Some(listener)
    }
}

impl Default for EventFeed {
    fn default() -> Self {
        Self::new(Self::STREAMS, CancellationToken::new())
    }
}

impl fmt::Debug for EventFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventFeed").field(&self.0.places.available_permits()).finish()
    }
}

impl Listener {
    /// Waits for an event that is newer than what was heard of before; false: no more are heard of, since the controller stops.
    pub async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.heard.changed() => changed.is_ok(),
            () = self.stop.cancelled() => false,
        }
    }
}

impl Inner {
    fn runs(&self) -> MutexGuard<'_, bool> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no stream listens any more; then the task ends.
    fn ends(&self) -> bool {
        let mut runs = self.runs();
        if self.newest.receiver_count() == 0 || self.stop.is_cancelled() {
            *runs = false;
        }
        !*runs
    }
}

/// Look for new events as long as a stream listens.
async fn follow(feed: Arc<Inner>, store: Arc<dyn ApiStore>) {
    let mut ears = store.bell().listen();
    while !feed.ends() {
        match store.newest_event().await {
            Ok(newest) => {
                feed.newest.send_if_modified(|known| std::mem::replace(known, newest.place) != newest.place);
            }
            // It is logged where a stream reads, and tried again.
            Err(error) => tracing::debug!(error = %error.chain(), "cannot look for new events"),
        }
        tokio::select! {
            _ = ears.recv() => tokio::time::sleep(PAUSE).await,
            () = tokio::time::sleep(LOOK) => {}
            () = feed.stop.cancelled() => {}
        }
        while ears.try_recv().is_ok() {}
    }
}
