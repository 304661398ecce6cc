//! The world: everything that there is, and how messages travel in it.

use crate::clock::SimClock;
use crate::controller::Incarnation;
use crate::dice::Dice;
use crate::held;
use crate::http::{Answer, Request};
use crate::machine::{Flavour, Machine};
use crate::trace::Trace;
use crate::truth::Truth;
use crate::weather::Weather;
use conductor::Settings;
use model::Timestamp;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Clock;
use store::memory::MemoryStore;
use tokio::time::{sleep, timeout};
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
    pub dice: Dice,
    /// Time.
    pub clock: Arc<SimClock>,
    /// What happened.
    pub trace: Trace,
    /// What survives the controller.
    pub disk: Arc<MemoryStore>,
    /// The machines.
    pub machines: Vec<Arc<Machine>>,
    /// What really happened.
    pub truth: Mutex<Truth>,
    /// What goes wrong now.
    pub weather: Mutex<Weather>,
    /// Settings of every controller of this world.
    pub settings: Settings,
    /// The controller that runs now.
    pub controller: Mutex<Option<Arc<Incarnation>>>,
    /// Runs that began since then have nothing to fail of.
    pub calm_since: Mutex<Option<Timestamp>>,
    /// Kills the controller at a store call.
    pub fuse: Mutex<Option<Fuse>>,
    /// Cancelled by the first violation.
    pub broken: CancellationToken,
    violation: Mutex<Option<Violation>>,
}

/// The controller dies at the call of the store that burns it down.
#[derive(Debug, Clone, Copy)]
pub struct Fuse {
    /// Calls until then.
    pub calls: u32,
    /// After that call has been carried out, and before it returns; else before it is.
    pub after: bool,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
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

impl World {
    /// A world without a controller.
    pub fn new(seed: u64, machines: impl FnOnce(&Dice) -> Vec<Machine>, loud: bool) -> Arc<Self> {
        let dice = Dice::new(seed);
        let clock = Arc::new(SimClock::start());
        let machines: Vec<_> = machines(&dice).into_iter().map(Arc::new).collect();
        Arc::new(Self {
            trace: Trace::new(clock.clone(), loud),
            disk: Arc::new(MemoryStore::new()),
            truth: Mutex::new(Truth::new(machines.len())),
            machines,
            weather: Mutex::new(Weather::calm(Duration::ZERO)),
            settings: settings(),
            controller: Mutex::default(),
            calm_since: Mutex::default(),
            fuse: Mutex::default(),
            broken: CancellationToken::new(),
            violation: Mutex::default(),
            clock,
            dice,
        })
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What goes wrong now.
    pub fn weather(&self) -> Weather {
        held(&self.weather).clone()
    }

    /// The machine that a node is.
    pub fn machine(&self, node: Uuid) -> Option<&Arc<Machine>> {
        self.machines.iter().find(|machine| machine.uuid == node)
    }

    /// Something happened to a machine that failures may have as their reason. Its number goes into every text
    /// about it: `#7`.
    pub fn happened(&self, machine: &Machine, what: &str) -> String {
        let number = held(&self.truth).happened(machine.index, what, self.now());
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

    /// What becomes of the next message from or to a machine.
    pub fn fate(&self, machine: &Machine) -> Fate {
        if self.is_cut(machine) {
            return Fate::Lost;
        }
        let weather = held(&self.weather);
        for (chance, fate) in [
            (weather.lost, Fate::Lost),
            (weather.unanswered, Fate::Unanswered),
            (weather.twice, Fate::Twice),
            (weather.late, Fate::Late),
        ] {
            if self.dice.chance(chance) {
                return fate;
            }
        }
        Fate::Good
    }

    /// How long a message travels.
    pub fn travel(&self) -> Duration {
        let slow = held(&self.weather).slow;
        if self.dice.chance(slow) { self.dice.millis(500..20_000) } else { self.dice.millis(1..15) }
    }

    /// Send a request to the controller from a machine, or about it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(self: &Arc<Self>, machine: &Machine, request: Request) -> Result<Answer, String> {
        let fate = self.fate(machine);
        let travel = self.travel();
        let later = |after: Duration| {
            let (world, request) = (self.clone(), request.clone());
            tokio::spawn(async move {
                sleep(after).await;
                // Nobody hears the answer.
                let _ = world.serve(&request).await;
            });
        };
        if fate != Fate::Good {
            self.trace.note(|| format!("{} a message is {fate:?}: {request:?}", machine.name));
        }
        match fate {
            Fate::Good => {}
            Fate::Twice => later(travel + self.dice.millis(1..60_000)),
            Fate::Lost => {}
            Fate::Unanswered => later(travel),
            Fate::Late => later(PATIENCE + self.dice.seconds(1..120)),
        }
        if matches!(fate, Fate::Lost | Fate::Unanswered | Fate::Late) {
            sleep(PATIENCE).await;
            return Err("no answer".to_owned());
        }
        sleep(travel).await;
        timeout(PATIENCE, self.serve(&request)).await.unwrap_or_else(|_| Err("no answer".to_owned()))
    }
}

/// Settings as an operator would have them, with limits that let a hung step end within the hour.
fn settings() -> Settings {
    Settings {
        boot_timeout_s: 1200,
        step_timeout_s: 3600,
        step_stall_s: 900,
        power_sync_s: 600,
        ..Settings::default()
    }
}

/// A machine whose agent does not take a command's id from the controller may be asked twice for what arrives late.
pub fn takes_ids(machine: &Machine) -> bool {
    machine.flavour == Flavour::Anneal
}
