//! Wakes the streams that show nodes as they are now. One task hears the bell for all of them, and a stream of one node hears
//! of that node only.

use crate::auth::Grant;
use crate::stream_places::{Listener, StreamPlaces};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::ApiStore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// For so long streams show what another one read.
const SHARED: Duration = Duration::from_secs(1);

/// The streams of nodes of this controller.
#[derive(Clone)]
pub struct NodeFeed(Arc<Inner>);

struct Inner {
    places: StreamPlaces,
    heard: Mutex<Heard>,
    /// What the streams of the fleet show callers of each grant.
    fleets: AsyncMutex<Vec<(Option<Grant>, Kept)>>,
}

/// What was read, and when the reading began.
struct Kept {
    at: Instant,
    fleet: Arc<Value>,
}

/// What was read for a stream.
pub struct Reading {
    /// What is shown.
    pub shown: Arc<Value>,
    /// It was read after the change that the stream heard of; else the stream reads again.
    pub is_fresh: bool,
}

/// The streams that hear of something.
struct Heard {
    /// Of every node.
    any: watch::Sender<Instant>,
    /// Of one.
    of: HashMap<Uuid, watch::Sender<Instant>>,
    /// Whether the task runs.
    runs: bool,
}

impl NodeFeed {
    /// Most streams at once, unless the configuration says otherwise.
    pub const STREAMS: usize = 256;

    /// A feed of at most so many streams, which end with `stop`.
    pub fn new(streams: usize, stop: CancellationToken) -> Self {
        let heard = Heard { any: watch::Sender::new(Instant::now()), of: HashMap::new(), runs: false };
        Self(Arc::new(Inner {
            places: StreamPlaces::new(streams, stop),
            heard: Mutex::new(heard),
            fleets: AsyncMutex::default(),
        }))
    }

    /// Take part, to hear when one node or any was changed; `None`: there are as many streams as there may be.
    pub(crate) fn listen(&self, store: &Arc<dyn ApiStore>, node: Option<Uuid>) -> Option<Listener<Instant>> {
        let place = self.0.places.take()?;
        let mut heard = self.0.heard();
        let receiver = match node {
            None => heard.any.subscribe(),
            Some(node) => {
                heard.of.entry(node).or_insert_with(|| watch::Sender::new(Instant::now())).subscribe()
            }
        };
        if !heard.runs {
            heard.runs = true;
            // Heard from now on, not from when the task first runs.
            tokio::spawn(follow(self.0.clone(), store.bell().listen()));
        }
        Some(place.hearing(receiver))
    }

    /// What `read` reads for callers of this grant, or what it read for another stream less than [`SHARED`] ago: many streams read it
    /// once. It is fresh if the reading began after `since`.
    pub(crate) async fn fleet<E>(
        &self,
        grant: Option<&Grant>,
        since: Instant,
        read: impl Future<Output = Result<Value, E>> + Send,
    ) -> Result<Reading, E> {
        let mut fleets = self.0.fleets.lock().await;
        let now = Instant::now();
        // Of users that come no more nothing stays for long.
        fleets.retain(|(_, kept)| now.duration_since(kept.at) < SHARED);
        if let Some((_, kept)) = fleets.iter().find(|(of, _)| of.as_ref() == grant) {
            return Ok(Reading { shown: kept.fleet.clone(), is_fresh: kept.at >= since });
        }
        let fleet = Arc::new(read.await?);
        fleets.push((grant.cloned(), Kept { at: now, fleet: fleet.clone() }));
        Ok(Reading { shown: fleet, is_fresh: true })
    }
}

impl Default for NodeFeed {
    fn default() -> Self {
        Self::new(Self::STREAMS, CancellationToken::new())
    }
}

impl fmt::Debug for NodeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeFeed").field(&self.0.places).finish()
    }
}

impl Inner {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn ring(&self, node: Uuid) {
        let now = Instant::now();
        self.any.send_replace(now);
        if let Some(of) = self.of.get(&node) {
            of.send_replace(now);
        }
    }

    /// Whether no stream listens any more; then the task ends.
    fn ends(&mut self) -> bool {
        self.of.retain(|_, sender| sender.receiver_count() > 0);
        self.runs = self.any.receiver_count() > 0 || !self.of.is_empty();
        !self.runs
    }
}

/// Pass rings on as long as a stream listens.
async fn follow(feed: Arc<Inner>, mut ears: UnboundedReceiver<Uuid>) {
    loop {
        tokio::select! {
            rung = ears.recv() => {
                let mut heard = feed.heard();
                if heard.ends() {
                    return;
                }
                // Without a bell nothing more is heard of.
                let Some(node) = rung else { return };
                heard.ring(node);
            }
            () = feed.places.stop().cancelled() => return,
        }
    }
}
