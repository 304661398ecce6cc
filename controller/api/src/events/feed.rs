//! Wakes streams when there are new events. One task looks for all of them, when the bell rings: it rings for every heartbeat too,
//! and each stream would ask the database then.

use crate::stream_places::{Listener, StreamPlaces};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::ApiStore;
use tokio::sync::watch;
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
    places: StreamPlaces,
    /// Whether the task runs.
    runs: Mutex<bool>,
}

impl EventFeed {
    /// Most streams at once, unless the configuration says otherwise.
    pub const STREAMS: usize = 256;

    /// A feed of at most so many streams, which end with `stop`.
    pub fn new(streams: usize, stop: CancellationToken) -> Self {
        let places = StreamPlaces::new(streams, stop);
        let newest = watch::Sender::new(0);
        Self(Arc::new(Inner { newest, places, runs: Mutex::new(false) }))
    }

    /// Take part, to hear of the number of the newest event; `None`: there are as many streams as there may be.
    pub(crate) fn listen(&self, store: &Arc<dyn ApiStore>) -> Option<Listener<u64>> {
        let place = self.0.places.take()?;
        let mut runs = self.0.runs();
        let listener = place.hearing(self.0.newest.subscribe());
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
        f.debug_tuple("EventFeed").field(&self.0.places).finish()
    }
}

impl Inner {
    fn runs(&self) -> MutexGuard<'_, bool> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no stream listens any more; then the task ends.
    fn ends(&self) -> bool {
        let mut runs = self.runs();
        if self.newest.receiver_count() == 0 || self.places.stop().is_cancelled() {
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
            () = feed.places.stop().cancelled() => {}
        }
        while ears.try_recv().is_ok() {}
    }
}
