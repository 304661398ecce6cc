//! The world: everything that there is, and how messages travel in it.

use crate::controllers::Controllers;
use crate::faults::Faults;
use crate::ground_truth::{GroundTruth, LATE_LOOKUP};
use crate::held;
use crate::host::Host;
use crate::http::{Answer, Request};
use crate::machine::Machine;
use crate::rng::SimRng;
use crate::trace::{Detail, Trace};
use conductor::Settings;
use model::Timestamp;
use room::SimClock;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Clock;
use store::memory::MemoryStore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// After this the sender of a request gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the rule: a function of [`crate::invariants`].
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
    /// Seconds since the world began.
    pub at: u64,
}

/// A world.
pub struct World {
    /// Chance.
    pub rng: SimRng,
    /// Time.
    pub clock: Arc<SimClock>,
    /// What happened.
    pub trace: Trace,
    /// What survives the controller.
    pub disk: Arc<MemoryStore>,
    /// The machines.
    pub machines: Vec<Arc<Machine>>,
    /// What really happened.
    pub ground_truth: Mutex<GroundTruth>,
    /// What goes wrong now.
    pub faults: Mutex<Faults>,
    /// Settings of every controller of this world.
    pub settings: Settings,
    /// The machines of the controllers.
    pub hosts: Vec<Arc<Host>>,
    /// Since when nothing has changed for any controller.
    pub settled_since: Mutex<Instant>,
    /// Runs that began since then have nothing to fail of.
    pub calm_since: Mutex<Option<Timestamp>>,
    /// By how much the store was moved with the clock, and the clock itself was not yet.
    pub unfollowed: Mutex<i64>,
    /// Kills the controller at a store call.
    pub fuse: Mutex<Option<Fuse>>,
    /// Cancelled by the first violation.
    pub broken: CancellationToken,
    violation: Mutex<Option<Violation>>,
}

/// Kills the controller at a later call of the store.
#[derive(Debug, Clone, Copy)]
pub struct Fuse {
    /// Calls until then.
    pub calls: u32,
    /// Of this controller.
    pub host: usize,
    /// After that call has been carried out, and before it returns; else before it is.
    pub after: bool,
}

/// How a message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives, and so does the answer.
    Good,
    /// It does not arrive.
    Lost,
    /// It arrives, its answer does not.
    Unanswered,
    /// It arrives twice.
    Twice,
    /// It arrives after its sender gave up.
    Late,
}

impl Delivery {
    /// Whether the sender gets an answer.
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Good | Self::Twice)
    }
}

impl World {
    /// A world in which no controller runs, with the machine of one that has a store of its own.
    pub fn new(seed: u64, machines: impl FnOnce(&SimRng) -> Vec<Machine>, loud: bool) -> Arc<Self> {
        Self::with(seed, &Controllers::default(), machines, Detail::printed(loud))
    }

    /// A world in which no controller runs yet.
    pub fn with(
        seed: u64,
        controllers: &Controllers,
        machines: impl FnOnce(&SimRng) -> Vec<Machine>,
        detail: Detail,
    ) -> Arc<Self> {
        let rng = SimRng::new(seed);
        let clock = Arc::new(SimClock::start());
        let machines: Vec<_> = machines(&rng).into_iter().map(Arc::new).collect();
        let host =
            |(index, ahead): (usize, &i64)| Arc::new(Host::new(index, Arc::new(clock.another(*ahead))));
        let hosts: Vec<_> = controllers.ahead.iter().enumerate().map(host).collect();
        Arc::new(Self {
            trace: Trace::new(clock.clone(), detail),
            disk: Arc::new(if hosts.is_empty() { MemoryStore::new() } else { MemoryStore::shared() }),
            hosts: if hosts.is_empty() { vec![Arc::new(Host::new(0, clock.clone()))] } else { hosts },
            settled_since: Mutex::new(Instant::now()),
            ground_truth: Mutex::new(GroundTruth::new(machines.len())),
            machines,
            faults: Mutex::new(Faults::calm(Duration::ZERO)),
            settings: settings(),
            calm_since: Mutex::default(),
            fuse: Mutex::default(),
            unfollowed: Mutex::default(),
            broken: CancellationToken::new(),
            violation: Mutex::default(),
            clock,
            rng,
        })
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What goes wrong now.
    pub fn faults(&self) -> Faults {
        held(&self.faults).clone()
    }

    /// The machine that a node is.
    pub fn machine(&self, node: Uuid) -> Option<&Arc<Machine>> {
        self.machines.iter().find(|machine| machine.uuid == node)
    }

    /// Something happened to a machine that failures may have as their reason. Its number goes into every text
    /// about it: `#7`.
    pub fn happened(&self, machine: &Machine, what: &str) -> String {
        let number = held(&self.ground_truth).happened(machine.index, what, self.now());
        self.trace.note(|| format!("{} {what} #{number}", machine.name));
        format!("#{number}")
    }

    /// A rule does not hold. The first violation ends the world.
    pub fn violated(&self, rule: &'static str, what: String) {
        self.trace.note(|| format!("VIOLATION {rule}: {what}"));
        let mut violation = held(&self.violation);
        if violation.is_none() {
            let now = self.clock.seconds();
            *violation = Some(Violation { rule, what, at: Duration::from_secs_f64(now).as_secs() });
            self.broken.cancel();
        }
    }

    /// The first violation.
    pub fn violation(&self) -> Option<Violation> {
        held(&self.violation).clone()
    }

    /// Whether this machine can be reached over the network.
    pub fn is_cut(&self, machine: &Machine) -> bool {
        machine.state().cut_until.is_some_and(|until| until > self.now())
    }

    /// How the next message from or to a machine is delivered.
    pub fn delivery(&self, machine: &Machine) -> Delivery {
        if self.is_cut(machine) {
            return Delivery::Lost;
        }
        let faults = held(&self.faults);
        for (chance, delivery) in [
            (faults.lost, Delivery::Lost),
            (faults.unanswered, Delivery::Unanswered),
            (faults.twice, Delivery::Twice),
            (faults.late, Delivery::Late),
        ] {
            if self.rng.chance(chance) {
                return delivery;
            }
        }
        Delivery::Good
    }

    /// How long a message travels.
    pub fn travel(&self) -> Duration {
        let slow = held(&self.faults).slow;
        if self.rng.chance(slow) { self.rng.millis(500..20_000) } else { self.rng.millis(1..15) }
    }

    /// Carry a message whose sender waits for an answer as long as this, until it arrives or its sender gives up. What
    /// arrives without an answer is `again`; a late message arrives within these seconds after its sender gave up.
    pub async fn carry(
        &self,
        delivery: Delivery,
        patience: Duration,
        late: Range<u64>,
        again: impl Future<Output = ()> + Send + 'static,
    ) {
        let travel = self.travel();
        let after = match delivery {
            Delivery::Good | Delivery::Lost => None,
            Delivery::Twice => Some(travel + self.rng.millis(1..60_000)),
            Delivery::Unanswered => Some(travel),
            Delivery::Late => Some(patience + self.rng.seconds(late)),
        };
        if let Some(after) = after {
            tokio::spawn(async move {
                sleep(after).await;
                again.await;
            });
        }
        sleep(if delivery.is_answered() { travel } else { patience }).await;
    }

    /// The controller that a machine speaks to, and those who work on it.
    fn host_of(&self, machine: &Machine) -> Arc<Host> {
        let tried = machine.state().controller;
        self.hosts[tried % self.hosts.len()].clone()
    }

    /// Send a request to a controller from a machine, or about it. After one without an answer the next controller is tried
    /// next time.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(self: &Arc<Self>, machine: &Machine, request: Request) -> Result<Answer, String> {
        let answer = self.try_to_send(machine, request).await;
        if answer.is_err() {
            machine.state().controller += 1;
        }
        answer
    }

    async fn try_to_send(self: &Arc<Self>, machine: &Machine, request: Request) -> Result<Answer, String> {
        let host = self.host_of(machine);
        let delivery = if host.reaches_nodes() { self.delivery(machine) } else { Delivery::Lost };
        let host = host.index;
        if delivery != Delivery::Good {
            self.trace.note(|| format!("{} a message is {delivery:?}: {request:?}", machine.name));
        }
        let (world, again, index) = (self.clone(), request.clone(), machine.index);
        let again = async move {
            if again.is_lookup() {
                held(&world.ground_truth).happened(index, LATE_LOOKUP, world.now());
            }
            drop(world.serve(host, &again).await);
        };
        self.carry(delivery, PATIENCE, 1..120, again).await;
        if !delivery.is_answered() {
            return Err("no answer".to_owned());
        }
        timeout(PATIENCE, self.serve(host, &request)).await.unwrap_or_else(|_| Err("no answer".to_owned()))
    }
}

/// Settings as an operator would have them, with limits that let a hung step end within the hour.
fn settings() -> Settings {
    Settings {
        boot_timeout_s: 1200,
        step_timeout_s: 3600,
        step_stall_s: 900,
        power_sync_s: 600,
        fast_track_idle_s: 1800,
        ..Settings::default()
    }
}
