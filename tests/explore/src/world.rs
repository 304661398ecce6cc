//! The abstract world: what is stored, where the conductor stands, the machine with its agent, what is on its way
//! between them, and what a witness remembers of the run.

use crate::evidence;
use crate::scenario::{HELLO_LIMIT, Scenario, TICK};
use conductor::decision::{Action, Change, Outcome, Rules, Snapshot};
use model::agent::AgentState;
use model::boot::BootNonce;
use model::disks::KnownDisk;
use model::fast_track::KeptRamdisk;
use model::hello::WAIT_FOR_HELLO;
use model::request::{Policy, VerbRequest, apply_verb};
use model::run::PersistentBoot;
use model::{Contact, Event, Node, PowerState, ProvisionState, Run, Timestamp};
use room::Power;
use serde_json::Value;
use std::sync::Arc;
use store::HeartbeatRecord;
use uuid::Uuid;

/// All of it.
#[derive(Debug, Clone)]
pub struct World {
    /// Rows of the store, and the time.
    pub stored: Arc<Snapshot>,
    /// The conductor between two moves.
    pub conductor: Stand,
    /// The machine.
    pub machine: Machine,
    /// The network between agent and controller.
    pub link: Link,
    /// One message that the network holds back.
    pub held: Option<Held>,
    /// What a witness remembers.
    pub story: Story,
}

/// Where the conductor stands. It has no other memory, and loses this one when it dies.
#[derive(Debug, Clone)]
pub enum Stand {
    /// Between turns.
    Idle,
    /// In the middle of storing a change.
    Storing(Box<Storing>),
    /// The beginning of this action is stored; it is to be done.
    Begun(Box<Action>),
    /// An action was done, its outcome is to be stored.
    Done(Box<Applying>),
}

/// A change of which a part is stored.
#[derive(Debug, Clone)]
pub struct Storing {
    /// What is still to be stored of it.
    pub change: Change,
    /// What it was decided on.
    pub seen: Arc<Snapshot>,
    /// The outcome it comes from.
    pub applying: Option<Applying>,
    /// The action that follows it.
    pub then: Option<Action>,
}

/// An action with its outcome.
#[derive(Debug, Clone)]
pub struct Applying {
    /// What it was decided on.
    pub seen: Arc<Snapshot>,
    /// The action.
    pub action: Action,
    /// What came of it.
    pub outcome: Outcome,
}

/// The network between agent and controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// It works.
    Up,
    /// Heartbeats and lookups are lost.
    Mute,
    /// Everything is lost.
    Down,
}

/// A message that the network holds back.
#[derive(Debug, Clone)]
pub enum Held {
    /// A heartbeat (the time in it is when it was sent).
    Beat(Box<(String, HeartbeatRecord)>),
    /// A step command: its id, its place in the plan, and the token it carries.
    Command(Box<(String, usize, Option<String>)>),
}

/// The machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its power and what runs on it. The count of its boots names the boot id.
    pub power: Power<Runs>,
    /// It lost power from outside, which may come back by itself.
    pub outage: bool,
    /// Count of agent processes; names the process id.
    pub processes: u32,
    /// The next boot is one from the network.
    pub network_boot: bool,
    /// The persistent boot device was lost when the one-time boot device was set.
    pub boot_forgotten: bool,
    /// Version of the agent's hardware managers.
    pub managers: u32,
    /// Count of tokens that were given out.
    pub tokens: u32,
    /// What the BMC is at, or was last.
    pub task: Option<Task>,
}

/// What runs on a machine.
#[derive(Debug, Clone, Default)]
pub enum Runs {
    /// No software: the machine is off.
    #[default]
    Nothing,
    /// Firmware.
    Firmware,
    /// The ramdisk with an agent.
    Agent(Agent),
    /// What is on its disk.
    Workload,
}

/// A step that the BMC goes on with.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Its place in the plan.
    pub step: usize,
    /// The run and the plan it belongs to ([`Story::run`], [`Story::round`]).
    pub of: (u32, u32),
    /// How it ended; `None`: it is under way.
    pub ended_well: Option<bool>,
}

/// An agent's process.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its number.
    pub process: u32,
    /// The nonce in its boot script.
    pub nonce: BootNonce,
    /// Its token.
    pub token: Option<String>,
    /// Its memory: the commands it was given, oldest first.
    pub commands: Vec<Command>,
}

/// A command in an agent's memory.
#[derive(Debug, Clone)]
pub struct Command {
    /// Its id.
    pub id: String,
    /// Place of its step in the plan.
    pub step: usize,
    /// The run and the plan it belongs to ([`Story::run`], [`Story::round`]).
    pub of: (u32, u32),
    /// How it stands.
    pub state: State,
}

/// How a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Running.
    Running {
        /// It will never end, and shows no progress since then.
        hung: Option<Timestamp>,
        /// A cancellation was requested.
        cancelled: bool,
    },
    /// Ended well.
    Succeeded,
    /// Reported as a success, with a record that contradicts it.
    Contradicted,
    /// An erase that ran to its end and was reported as a success by an agent that signs, without proof.
    Unproven(Lack),
    /// Failed by itself.
    Failed,
    /// Stopped because a cancellation was requested.
    Stopped,
    /// Not run: the hardware managers are others than the plan's.
    Mismatch,
}

/// What the report of an erase lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lack {
    /// The signature.
    Signature,
    /// A disk that the node is known to have.
    Disk,
    /// Everything.
    Report,
}

/// What really happened in the run, as an observer of the world records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Number of the run.
    pub run: u32,
    /// How often its plan was made anew.
    pub round: u32,
    /// Of each step of the plan, in this round: how often it was begun (two is many), and whether it ran to its
    /// end after it was begun last.
    pub steps: Vec<StepHistory>,
    /// The user asked for an abort.
    pub abort: bool,
    /// Something happened that may make a run fail.
    pub harmed: bool,
    /// The controller died while it was at a step of its own.
    pub died_in_step: bool,
    /// The step that was begun last hangs, or hung until its agent died.
    pub hung: bool,
    /// How often hardware managers changed in this run.
    pub flips: u32,
    /// The boot that the conductor ended last, or that was there before the run: agents up to it belong to the past.
    pub off_boot: u32,
    /// The boot whose software ran when the BMC last accepted a reset in the place of switching the node off, or the last one
    /// before.
    pub reset_boot: u32,
    /// The boot that was given a token last.
    pub token_boot: u32,
    /// When a heartbeat was last taken.
    pub heard_at: Timestamp,
    /// The agent answered when it was asked last.
    pub answers: bool,
    /// Disturbances so far.
    pub faults: u8,
}

/// What happened to a step in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StepHistory {
    /// How often it was begun.
    pub begun: u8,
    /// It ran to its end after it was begun last.
    pub done: bool,
    /// The agent then signed a record of every disk of the node.
    pub proven: bool,
}

impl World {
    /// The world after the user's first request.
    pub fn first(scenario: &Scenario) -> Self {
        let now = Timestamp(1_000 * micros(1));
        let (state, workload) = scenario.start();
        let mut node = Node::enrolled(Uuid::from_u128(1), "fake-hardware", now);
        room::put(&mut node, state, now);
        if scenario.never_off {
            node.other.insert("disable_power_off".to_owned(), Value::Bool(true));
        }
        if scenario.hello {
            let limit = HELLO_LIMIT * TICK.as_secs();
            node.instance_info.insert(WAIT_FOR_HELLO.to_owned(), limit.into());
        }
        if scenario.signs {
            node.disks.known = DISKS.map(known_disk).to_vec();
        }
        let stored = Snapshot {
            node,
            contact: Contact::default(),
            abilities: Ok(scenario.abilities().into()),
            catalogue: None,
            inventory: None,
            rules: Rules::default(),
            listening_since: now,
            now,
        };
        let world = Self {
            stored: Arc::new(stored),
            conductor: Stand::Idle,
            machine: Machine {
                power: Power {
                    on: workload,
                    boot: 1,
                    runs: if workload { Runs::Workload } else { Runs::Nothing },
                },
                outage: false,
                processes: 0,
                network_boot: false,
                boot_forgotten: false,
                managers: 1,
                tokens: 0,
                task: None,
            },
            link: Link::Up,
            held: None,
            story: Story {
                run: 0,
                round: 0,
                steps: Vec::new(),
                abort: false,
                harmed: false,
                died_in_step: false,
                hung: false,
                flips: 0,
                off_boot: 0,
                reset_boot: 0,
                token_boot: 0,
                heard_at: now,
                answers: false,
                faults: 0,
            },
        };
        let (world, _) = world
            .ask(scenario, scenario.request())
            .unwrap_or_else(|refused| panic!("{}: the first request is refused: {refused}", scenario.name));
        world
    }

    /// The node's row.
    pub fn node(&self) -> &Node {
        &self.stored.node
    }

    /// Its run, while that is active.
    pub fn run(&self) -> Option<&Run> {
        self.node().run.as_ref().filter(|run| run.is_active())
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.stored.now
    }

    /// No more than firmware runs, which has fetched no boot script: a reset that the BMC accepts and does not perform leaves a
    /// boot that cannot be distinguished from the one that was ordered.
    pub fn is_in_firmware(&self) -> bool {
        matches!(self.machine.power.runs, Runs::Firmware)
    }

    /// The agent, if the ramdisk runs.
    pub fn agent(&self) -> Option<&Agent> {
        match &self.machine.power.runs {
            Runs::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    /// The agent, to be changed.
    pub fn agent_mut(&mut self) -> Option<&mut Agent> {
        match &mut self.machine.power.runs {
            Runs::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    /// Change what is stored.
    pub fn store(&mut self, change: impl FnOnce(&mut Snapshot)) {
        change(Arc::make_mut(&mut self.stored));
    }

    /// Store a node's row: a larger version, and what the witness has to note. Ids of runs are random; here they
    /// are counted.
    pub fn store_node(&mut self, scenario: &Scenario, mut node: Node) {
        let old = self.node();
        let known = old.run.as_ref().map(|run| run.id);
        let round = old.run.as_ref().map_or(0, |run| run.replans);
        node.version = old.version + 1;
        if let Some(run) = &mut node.run {
            let fresh = known != Some(run.id);
            if fresh {
                self.story.run += 1;
                run.id = Uuid::from_u128(u128::from(self.story.run));
            }
            // Automated cleaning begins anew with a new plan (specs/cleaning-states.txt: "restart cleaning if a
            // new hardware manager is deployed").
            if fresh || (run.replans != round && run.kind == model::RunKind::AutomatedClean) {
                self.story.round = if fresh { 0 } else { run.replans };
                self.story.steps = vec![StepHistory::default(); scenario.steps.len()];
                self.story.died_in_step = false;
            }
            if fresh {
                // A deployment may begin in the ramdisk that the cleaning before it left running.
                if run.ramdisk_kept.is_none() {
                    self.story.off_boot = self.machine.power.boot;
                }
                if scenario.never_off && self.is_in_firmware() {
                    self.story.off_boot -= 1;
                }
                self.story.abort = false;
                self.story.flips = 0;
                self.story.harmed = self.link != Link::Up || self.held.is_some() || self.machine.outage;
            }
        }
        strip(&mut node);
        let old = &self.stored;
        self.stored = Arc::new(Snapshot {
            node,
            contact: old.contact.clone(),
            abilities: old.abilities.clone(),
            catalogue: old.catalogue.clone(),
            inventory: None,
            rules: Rules::default(),
            listening_since: old.listening_since,
            now: old.now,
        });
    }

    /// The user asks for something.
    pub fn ask(&self, scenario: &Scenario, request: VerbRequest) -> Result<(Self, Vec<Event>), String> {
        let policy = Policy { automated_clean: true };
        let (node, events) =
            apply_verb(self.node(), request, policy, self.now()).map_err(|refused| refused.to_string())?;
        let mut world = self.clone();
        world.store_node(scenario, node);
        Ok((world, events))
    }

    /// Nothing happens to the node any more without a request.
    pub fn is_at_rest(&self) -> bool {
        use ProvisionState as P;
        let state = self.node().provision_state;
        let failed = matches!(state, P::CleanFail | P::DeployFail | P::ServiceFail);
        matches!(self.conductor, Stand::Idle) && (state.is_stable() || failed) && !self.keeps_ramdisk()
    }

    /// The run has ended, and its ramdisk is kept running, or is being powered off.
    pub fn keeps_ramdisk(&self) -> bool {
        self.run().is_none() && self.kept_ramdisk().is_some()
    }

    /// The ramdisk that was kept running.
    pub fn kept_ramdisk(&self) -> Option<KeptRamdisk> {
        self.node().run.as_ref()?.ramdisk_kept
    }

    /// Something may happen to the node without a user's request: a run is under way, or a ramdisk is kept running.
    pub fn is_under_way(&self) -> bool {
        self.run().is_some() || self.keeps_ramdisk()
    }

    /// Power as the BMC reports it.
    pub fn power(&self) -> PowerState {
        if self.machine.power.on { PowerState::On } else { PowerState::Off }
    }

    /// The persistent boot device that the BMC reports.
    pub fn boot_device(&self) -> Option<PersistentBoot> {
        let device = PersistentBoot { device: "disk".to_owned(), mode: None };
        Some(device).filter(|_| !self.machine.boot_forgotten)
    }

    /// The machine starts, from the beginning if it is on.
    pub fn start(&mut self) {
        let power = &mut self.machine.power;
        power.switch_off();
        power.switch_on();
        power.runs = Runs::Firmware;
        self.machine.outage = false;
    }

    /// A step begins in the world.
    pub fn note_begin(&mut self, step: usize) {
        self.story.hung = false;
        if let Some(history) = self.story.steps.get_mut(step) {
            *history = StepHistory { begun: (history.begun + 1).min(2), ..StepHistory::default() };
        }
    }

    /// A step has run to its end.
    pub fn note_end(&mut self, step: usize, of: (u32, u32)) {
        if of == (self.story.run, self.story.round)
            && let Some(history) = self.story.steps.get_mut(step)
        {
            history.done = true;
        }
    }

    /// The agent has signed what a step did that has run to its end.
    pub fn note_proof(&mut self, step: usize, of: (u32, u32)) {
        if of == (self.story.run, self.story.round)
            && let Some(history) = self.story.steps.get_mut(step)
        {
            history.proven = true;
        }
    }

    /// What a heartbeat sent now says.
    pub fn beat(&self, scenario: &Scenario, agent: &Agent) -> HeartbeatRecord {
        HeartbeatRecord {
            callback_url: "https://192.0.2.1:9999".to_owned(),
            verify_ca: None,
            agent_version: Some("0".to_owned()),
            at: self.now(),
            agent: (!scenario.ipa).then(|| self.agent_state(scenario, agent)).into(),
        }
    }

    fn agent_state(&self, scenario: &Scenario, agent: &Agent) -> AgentState {
        let running = agent.running();
        let progress = running.map(|command| match command.state {
            State::Running { hung: Some(since), .. } => Value::from(since.0),
            _ => Value::from(self.now().0),
        });
        let ended = agent.commands.iter().filter(|command| !matches!(command.state, State::Running { .. }));
        AgentState {
            boot_id: format!("boot-{}", self.machine.power.boot),
            process_id: format!("process-{}", agent.process),
            evidence_key: scenario.signs.then(|| evidence::key().public().to_string()),
            running: running.map(|command| command.id.clone()),
            ended: ended.map(|command| command.id.clone()).collect(),
            progress,
        }
    }
}

impl Agent {
    /// The command it is at.
    pub fn running(&self) -> Option<&Command> {
        self.commands.iter().find(|command| matches!(command.state, State::Running { .. }))
    }
}

/// Serial numbers of the node's disks.
pub const DISKS: [&str; 2] = ["S1", "S2"];

fn known_disk(serial: &str) -> KnownDisk {
    KnownDisk { serial: Some(serial.to_owned()), ..KnownDisk::default() }
}

/// Leave out what only people and agents read: worlds are copied all the time.
fn strip(node: &mut Node) {
    node.driver_internal_info.clear();
    (node.clean_step, node.deploy_step, node.service_step) = (None, None, None);
    node.maintenance_reason = None;
    let Some(run) = &mut node.run else { return };
    run.plan.iter_mut().flatten().for_each(|planned| planned.step.raw.clear());
    run.results.iter_mut().for_each(|result| result.result = Value::Null);
}

/// The boot that a token was given to; tokens are named `token-BOOT-NUMBER`.
pub fn boot_of(token: &str) -> Option<u32> {
    token.split('-').nth(1)?.parse().ok()
}

/// Microseconds of so many ticks.
pub fn micros(ticks: i64) -> i64 {
    i64::try_from(TICK.as_micros()).unwrap_or(i64::MAX).saturating_mul(ticks)
}
