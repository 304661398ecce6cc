//! What really happened, as opposed to what the controller believes. Rules are judged by it.

use crate::offers::Offers;
use model::boot::BootNonce;
use model::{Node, StepKind, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;
use uuid::Uuid;

/// A lookup arrives after its agent gave it up.
pub const LATE_LOOKUP: &str = "a lookup arrives late";

/// How a step really ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It did its work.
    Succeeded,
    /// It failed and said so.
    Failed,
    /// It was cancelled, and stopped.
    Cancelled,
    /// The machine or the agent went away.
    Interrupted,
    /// It failed, and called it a success with a record that says otherwise.
    Lied,
}

/// The process that runs a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The agent: it ends with the agent's process.
    Agent,
    /// This controller: it ends with the controller's process, or when that has lost the node.
    Controller(usize),
    /// The BMC, which goes on whatever dies.
    Bmc,
}

/// One real execution of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// The command's id, as the process that runs it knows it.
    pub id: String,
    /// `deploy.erase_devices`.
    pub label: String,
    /// It may be repeated.
    pub idempotent: bool,
    /// The process that runs it.
    pub by: By,
    /// The run of the node when it began.
    pub run: Option<Uuid>,
    /// How often that run's plan had been made anew.
    pub pass: u32,
    /// Its place in the plan.
    pub index: Option<usize>,
    /// When it began.
    pub began: Timestamp,
    /// When it ended, and how.
    pub ended: Option<(Timestamp, End)>,
}

/// Something that failures may have as their reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its number, which texts about it carry.
    pub number: u64,
    /// What.
    pub what: String,
    /// When.
    pub at: Timestamp,
}

/// Steps that an agent advertised.
#[derive(Debug, Clone)]
pub struct Advertised {
    /// The list that was asked for.
    pub kind: StepKind,
    /// The steps.
    pub offers: Arc<Offers>,
    /// When.
    pub at: Timestamp,
}

/// A lease, as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBy {
    /// Which controller holds it.
    pub host: usize,
    /// Its epoch.
    pub epoch: u64,
    /// Until when.
    pub until: Timestamp,
}

/// A machine part that refuses no call that comes late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A BMC.
    Bmc,
    /// An ironic-python-agent.
    ForeignAgent,
}

/// A call of a controller that may still have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCall {
    /// Its number.
    pub number: u64,
    /// Whose.
    pub host: usize,
    /// It changes something there, and nothing refuses it when it is late.
    pub changes: Option<Target>,
    /// Whatever becomes of its caller, it has ended then.
    pub ends_by: Instant,
}

/// The ground truth about one machine.
#[derive(Default)]
pub struct Chronicle {
    /// Executions in the order of their beginning.
    pub executions: Vec<Execution>,
    /// Facts in order.
    pub facts: Vec<Fact>,
    /// What its agents advertised.
    pub advertised: Vec<Advertised>,
    /// The row as it was last stored.
    pub row: Option<Node>,
    /// Epoch of its newest lease.
    pub epoch: Option<u64>,
    /// That lease, while it is not released.
    pub lease: Option<HeldBy>,
    /// The controller that took its lease last.
    pub held_last: Option<usize>,
    /// The newest epoch that an agent of ours was sent, and the certificate of its process.
    pub commanded: Option<(String, u64)>,
    /// Calls of controllers to its BMC or its agent that are under way.
    pub calls: Vec<OpenCall>,
    /// The token that is out.
    pub token: Option<String>,
    /// The nonce in the boot script that the machine fetched last.
    pub nonce: Option<BootNonce>,
    /// The boot id in the lookup that was given a token last, if it named one.
    pub token_boot: Option<String>,
    /// The BMC has reported that the machine is off since a token was given out last, or none was.
    pub seen_off: bool,
    /// The BMC has accepted a reset since a token was given out last.
    pub reset: bool,
    /// The machine has fetched its boot script since then.
    pub fetched_since_reset: bool,
    /// When heartbeats were accepted.
    pub heard: Vec<Timestamp>,
    /// When its provision state was last changed.
    pub changed_at: Option<Timestamp>,
    /// Runs that a user asked to abort.
    pub aborted: BTreeSet<Uuid>,
    /// An administrator, or the operator's configuration, let it be available without cleaning.
    pub excused: bool,
}

/// The ground truth about all machines.
pub struct GroundTruth {
    /// By machine.
    pub machines: Vec<Chronicle>,
    /// How often a login was made on each.
    pub rescues: Vec<u32>,
    /// When a controller was killed.
    pub kills: Vec<Timestamp>,
    /// When anything happened to a controller that may have cost it a node.
    pub interruptions: Vec<Timestamp>,
    /// How often a controller took over a lease that another had not released.
    pub takeovers: usize,
    /// Of calls.
    pub next_call: u64,
    /// How often agents were killed.
    pub agent_kills: u32,
    /// How often a conductor looked at what is due.
    pub looks: u64,
    next: u64,
}

impl GroundTruth {
    /// Of so many machines.
    pub fn new(machines: usize) -> Self {
        Self {
            machines: (0..machines).map(|_| Chronicle::default()).collect(),
            rescues: vec![0; machines],
            kills: Vec::new(),
            interruptions: Vec::new(),
            takeovers: 0,
            next_call: 0,
            agent_kills: 0,
            looks: 0,
            next: 0,
        }
    }

    /// Note a fact; its number.
    pub fn happened(&mut self, machine: usize, what: &str, at: Timestamp) -> u64 {
        self.next += 1;
        let fact = Fact { number: self.next, what: what.to_owned(), at };
        self.machines[machine].facts.push(fact);
        self.next
    }

    /// Record the steps that an agent advertised.
    pub fn advertised(&mut self, machine: usize, kind: StepKind, offers: &Arc<Offers>, at: Timestamp) {
        self.machines[machine].advertised.push(Advertised { kind, offers: offers.clone(), at });
    }

    /// An execution has ended.
    pub fn ended(&mut self, machine: usize, id: &str, end: End, at: Timestamp) {
        let executions = &mut self.machines[machine].executions;
        if let Some(execution) = executions.iter_mut().rev().find(|execution| execution.id == id) {
            execution.ended.get_or_insert((at, end));
        }
    }

    /// What the agent of a machine was running is cut short.
    pub fn interrupt(&mut self, machine: usize, at: Timestamp) {
        self.machines[machine].interrupt(By::Agent, at);
    }

    /// A controller is killed, and what it was running is cut short.
    pub fn killed(&mut self, host: usize, at: Timestamp) {
        self.kills.push(at);
        self.interruptions.push(at);
        self.machines.iter_mut().for_each(|machine| machine.interrupt(By::Controller(host), at));
    }
}

impl Chronicle {
    fn interrupt(&mut self, by: By, at: Timestamp) {
        for execution in self.executions.iter_mut().filter(|execution| execution.by == by) {
            execution.ended.get_or_insert((at, End::Interrupted));
        }
    }

    /// Whether something of this sort happened since then.
    pub fn has(&self, since: Timestamp, what: &[&str]) -> bool {
        let late = self.facts.iter().rev().take_while(|fact| fact.at >= since);
        late.into_iter().any(|fact| what.iter().any(|word| fact.what.contains(word)))
    }

    /// When a heartbeat was last accepted before then.
    pub fn heard_before(&self, then: Timestamp) -> Option<Timestamp> {
        self.heard.iter().rev().find(|at| **at < then).copied()
    }

    /// The fact with a number.
    pub fn fact(&self, number: u64) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.number == number)
    }

    /// The execution with this id, the newest of several.
    pub fn execution(&self, id: &str) -> Option<&Execution> {
        self.executions.iter().rev().find(|execution| execution.id == id)
    }
}
