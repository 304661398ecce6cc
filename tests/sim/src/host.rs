//! The machine of a controller: its name, its clock, its ways to the store and to the nodes, and the process that runs on it.

use crate::controller::Incarnation;
use crate::held;
use room::SimClock;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// A machine that runs a controller, one life after another.
pub struct Host {
    /// Its place among the machines of controllers.
    pub index: usize,
    /// The name of its controller.
    pub name: String,
    /// Its clock.
    pub clock: Arc<SimClock>,
    /// The controller that runs now.
    pub running: Mutex<Option<Arc<Incarnation>>>,
    state: Mutex<State>,
}

/// What is wrong with it.
struct State {
    store_cut_until: Instant,
    /// The store is cut off in the next write, until then: the write arrives, and its answer does not.
    cut_in_a_write: Option<Instant>,
    nodes_cut_until: Instant,
    /// Its next call to a node stops in the middle, for this long.
    stops_in_call: Option<Duration>,
    well_since: Instant,
    gone: bool,
}

impl Host {
    /// Nothing is wrong, and no controller runs.
    pub fn new(index: usize, clock: Arc<SimClock>) -> Self {
        let now = Instant::now();
        let (store_cut_until, nodes_cut_until, well_since) = (now, now, now);
        let state = State {
            store_cut_until,
            cut_in_a_write: None,
            nodes_cut_until,
            stops_in_call: None,
            well_since,
            gone: false,
        };
        let name = if index == 0 { "sim".to_owned() } else { format!("sim{}", index + 1) };
        Self { index, name, clock, running: Mutex::default(), state: Mutex::new(state) }
    }

    /// The controller that runs now.
    pub fn running(&self) -> Option<Arc<Incarnation>> {
        held(&self.running).clone()
    }

    /// The store cannot be reached from here until then.
    pub fn cut_store(&self, until: Instant) {
        held(&self.state).store_cut_until = until;
        self.is_well_from(until);
    }

    /// The same from the next write on, which arrives without an answer.
    pub fn cut_store_in_a_write(&self, until: Instant) {
        held(&self.state).cut_in_a_write = Some(until);
        self.is_well_from(until);
    }

    /// No BMC, no agent and no user can be reached from here until then.
    pub fn cut_nodes(&self, until: Instant) {
        held(&self.state).nodes_cut_until = until;
        self.is_well_from(until);
    }

    /// The next call to a BMC or an agent is made, and what it sends leaves so much later: the process is stopped in between.
    pub fn stop_in_call(&self, lasts: Duration) {
        held(&self.state).stops_in_call = Some(lasts);
    }

    /// Whether the call that is made now is stopped in the middle.
    pub fn stops_in_call(&self) -> Option<Duration> {
        held(&self.state).stops_in_call.take()
    }

    /// Its controller is not started again.
    pub fn leaves_for_good(&self) {
        held(&self.state).gone = true;
    }

    /// Whether its controller may be started.
    pub fn may_start(&self) -> bool {
        !held(&self.state).gone && self.running().is_none()
    }

    /// Everything that is wrong ends, and is forgotten.
    pub fn heal(&self) {
        let now = Instant::now();
        let mut state = held(&self.state);
        (state.store_cut_until, state.nodes_cut_until, state.stops_in_call) = (now, now, None);
        state.cut_in_a_write = None;
        state.well_since = now;
    }

    /// Something is wrong until then, or its controller begins then.
    pub fn is_well_from(&self, at: Instant) {
        let mut state = held(&self.state);
        state.well_since = state.well_since.max(at).max(Instant::now());
    }

    /// Since when nothing has been wrong here; in the future while something is.
    pub fn well_since(&self) -> Instant {
        held(&self.state).well_since
    }

    /// Whether a write that begins now reaches the store.
    pub fn writes(&self) -> bool {
        let reaches = self.reaches_store();
        let mut state = held(&self.state);
        if let Some(until) = state.cut_in_a_write.take_if(|_| reaches).filter(|until| *until > Instant::now())
        {
            state.store_cut_until = until;
        }
        reaches
    }

    /// Whether the store can be reached.
    pub fn reaches_store(&self) -> bool {
        held(&self.state).store_cut_until <= Instant::now()
    }

    /// Whether nodes can be reached.
    pub fn reaches_nodes(&self) -> bool {
        held(&self.state).nodes_cut_until <= Instant::now()
    }
}
