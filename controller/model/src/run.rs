//! A run: one piece of work on a node, stored whole: what was asked, what is planned, where it stands, how
//! each step ended. Cleaning, deployment, service, inspection, rescue and tear-down are all runs.
//!
//! ```text
//!  Start ─▶ PowerOff ─▶ ReadBootDevice ─▶ SetBootDevice ─▶ PowerOn ─┬▶ AwaitAgent ─────┬▶ RestoreBootDevice
//!    │         ▲                                                    └▶ AwaitInventory ─┘     │       │
//!    │         │ a step needs the ramdisk and there is none,                            LearnSteps   │ inspected
//!    │         │ or wants a reboot, or the node lost power                                   │       │
//!    │         └──────────────────────────────────┐                                          │       │
//!    ├▶ NextStep (nothing needs the ramdisk) ◀────┴──────────────────────────────────────────┘       │
//!    │    │ ▲                                                                                        │
//!    │    │ └ succeeded ◀─ Issued (agent), OutOfBand (controller), Hold, Pause ─▶ failed, aborted ─▶ Done
//!    │    └─ all succeeded ─▶ TearDown ◀─────────────────────────────────────────────────────────────┘
//!    ├▶ AskInventory (of the BMC) ─▶ TearDown
//!    └▶ TearDown ─▶ Restart (into the workload) ─▶ Done
//! ```
//!
//! Each place of the cursor names the deed that comes next; it is stored before the deed is done, so a
//! controller that dies anywhere does it again or asks how it went.

use crate::kind::RunKind;
use crate::step::{PlannedStep, RequestedStep, StepResult};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: Uuid,
    /// What it is for.
    pub kind: RunKind,
    /// When it began.
    pub started_at: Timestamp,
    /// The API request that started it; stands in its events, never on the wire.
    #[serde(default)]
    pub request_id: Option<String>,
    /// Steps a user asked for; empty in automated cleaning.
    #[serde(default)]
    pub requested: Vec<RequestedStep>,
    /// Deploy steps of the templates that the instance's traits name.
    #[serde(default)]
    pub templates: Vec<RequestedStep>,
    /// The ramdisk must not be booted.
    #[serde(default)]
    pub disable_ramdisk: bool,
    /// The node was booted into the ramdisk by this run, and has to leave it again. Runs of before 0.2 all were.
    #[serde(default = "yes")]
    pub booted: bool,
    /// What the node booted from before the run had it boot from the network, until that is set again.
    #[serde(default)]
    pub boot_before: Option<PersistentBoot>,
    /// The plan; `None` until the agent has told its steps.
    #[serde(default)]
    pub plan: Option<Vec<PlannedStep>>,
    /// Index of the current step; `None` before the first.
    #[serde(default)]
    pub index: Option<usize>,
    /// Where the run stands.
    pub cursor: Cursor,
    /// Versions of the hardware managers the plan was made with.
    #[serde(default)]
    pub hardware_manager_version: Map<String, Value>,
    /// Results of the steps of the plan that have ended.
    #[serde(default)]
    pub results: Vec<StepResult>,
    /// A user asked to abort: after the current step if that is not abortable.
    #[serde(default)]
    pub abort: bool,
    /// Why the current step counts as hung: it is told to stop, then the run fails.
    #[serde(default)]
    pub hung: Option<String>,
    /// What the current step saved last, for the case that it is interrupted.
    #[serde(default)]
    pub checkpoint: Option<Checkpoint>,
    /// How often the node came back in the middle of the current step and it was started again.
    #[serde(default)]
    pub interruptions: u32,
    /// How many of the last of these came without the step having got any further: this is what is limited.
    #[serde(default)]
    pub fruitless: u32,
    /// The furthest that the step had got by its checkpoints when it was interrupted, as [`Run::reached_now`].
    #[serde(default)]
    pub reached: u64,
    /// How often the plan was made anew because hardware managers changed.
    #[serde(default)]
    pub replans: u32,
    /// Consecutive failures of the present deed; reset when it succeeds.
    #[serde(default)]
    pub attempts: u32,
    /// The logs of the ramdisk; `None` where nobody wants them.
    #[serde(default)]
    pub logs: Option<Logs>,
}

/// What became of the logs of the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logs {
    /// They are to be collected, now that how the run ended is stored.
    Wanted,
    /// They are in the file of this name.
    Kept(String),
    /// They could not be had, and why.
    Missing(String),
}

/// What a step of the agent saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Index of the step in the plan.
    pub index: usize,
    /// The step with its arguments, as it was sent.
    pub step: Map<String, Value>,
    /// What it saved; only its hardware manager knows what it means.
    pub data: Value,
}

/// A device that the BMC has been told to boot from every time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentBoot {
    /// In Ironic's words: `disk`, `cdrom` …
    pub device: String,
    /// `bios` or `uefi`, where the BMC tells it.
    pub mode: Option<String>,
}

fn yes() -> bool {
    true
}

/// The deed that comes next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum Cursor {
    /// Find out what the run needs.
    Start,
    /// Switch the node off, so that the ramdisk starts cold.
    PowerOff,
    /// Read what the node boots from every time: the apparent configuration must not change
    /// (specs/state-machine.txt), and BMCs forget it when they are told what to boot from once.
    ReadBootDevice,
    /// Make the next boot a network boot.
    SetBootDevice,
    /// Switch the node on.
    PowerOn,
    /// Wait for the first heartbeat of a boot.
    AwaitAgent,
    /// The ramdisk has booted: let the node boot from what it did before.
    RestoreBootDevice,
    /// Ask the agent for its steps.
    LearnSteps,
    /// Choose the next step and write its command down.
    NextStep,
    /// A command was written down; it may or may not have reached the agent.
    Issued {
        /// Its id.
        command_id: String,
        /// When it was written down; once it is accepted, when the agent was first seen with it.
        at: Timestamp,
        /// Boot id of the agent it is for, when the agent tells one.
        boot_id: Option<String>,
        /// Process id of that agent, likewise. Another process has another memory: it may run a command again that
        /// the one before it had begun.
        #[serde(default)]
        process_id: Option<String>,
        /// The agent acknowledged it (or was seen running it).
        #[serde(default)]
        accepted: bool,
    },
    /// A step of the controller's own. Stored before it begins: met again with `polling` false, it was
    /// interrupted and nobody knows how far it came.
    OutOfBand {
        /// Id of this execution.
        command_id: String,
        /// When it began.
        at: Timestamp,
        /// It goes on outside (in the BMC), and is asked for.
        #[serde(default)]
        polling: bool,
    },
    /// Reboot the node without a ramdisk, because a step asked for it.
    Reboot,
    /// Stopped by the step `hold` until a user says `unhold`.
    Hold,
    /// The step `wait`.
    Pause {
        /// When it began.
        since: Timestamp,
        /// Until then; `None`: until a heartbeat later than `since`.
        until: Option<Timestamp>,
    },
    /// Ask the BMC for the inventory.
    AskInventory,
    /// Wait for the inventory that the agent sends.
    AwaitInventory,
    /// Every step has succeeded: stop the ramdisk, then let the node move on.
    TearDown,
    /// Start the workload.
    Restart,
    /// The run has ended; kept for its results until the next one begins.
    Done,
}

impl Run {
    /// A run that is about to start.
    pub fn new(kind: RunKind, now: Timestamp) -> Self {
        Self {
            id: Uuid::new_v4(),
            kind,
            started_at: now,
            request_id: None,
            requested: Vec::new(),
            templates: Vec::new(),
            disable_ramdisk: false,
            booted: false,
            boot_before: None,
            plan: None,
            index: None,
            cursor: Cursor::Start,
            hardware_manager_version: Map::new(),
            results: Vec::new(),
            abort: false,
            hung: None,
            checkpoint: None,
            interruptions: 0,
            fruitless: 0,
            reached: 0,
            replans: 0,
            attempts: 0,
            logs: None,
        }
    }

    /// Whether a boot of the node now is one into the ramdisk.
    pub fn boots_ramdisk(&self) -> bool {
        !matches!(self.cursor, Cursor::TearDown | Cursor::Restart | Cursor::Done)
            && (self.booted || matches!(self.cursor, Cursor::PowerOn | Cursor::AwaitAgent))
    }

    /// Id of the command of the current step, while there is one.
    pub fn command_id(&self) -> Option<&str> {
        match &self.cursor {
            Cursor::Issued { command_id, .. } | Cursor::OutOfBand { command_id, .. } => Some(command_id),
            _ => None,
        }
    }

    /// Whether the run has not ended.
    pub fn is_active(&self) -> bool {
        self.cursor != Cursor::Done
    }

    /// The first step of the plan without a stored success.
    pub fn next_index(&self) -> Option<usize> {
        (0..self.plan.as_ref()?.len()).find(|index| !self.succeeded(*index))
    }

    /// Whether this step of the plan has a stored success.
    pub fn succeeded(&self, index: usize) -> bool {
        self.results.iter().any(|result| result.index == index && result.error.is_none())
    }

    /// The current step.
    pub fn current(&self) -> Option<&PlannedStep> {
        self.plan.as_ref()?.get(self.index?)
    }

    /// Keep what the current step saved.
    pub fn keep_checkpoint(&mut self, data: Value) {
        if let (Some(index), Some(step)) = (self.index, self.current()) {
            self.checkpoint = Some(Checkpoint { index, step: step.wire(), data });
        }
    }

    /// What the current step saved before it was interrupted: that step, with the same arguments, and no other.
    pub fn resumes_from(&self) -> Option<&Value> {
        let (kept, step) = (self.checkpoint.as_ref()?, self.current()?);
        (self.index == Some(kept.index) && step.wire() == kept.step).then_some(&kept.data)
    }

    /// How far the current step is by what it saved: the number `reached` in it, which grows while the step goes ahead (of
    /// an erase the bytes of all disks). 0 for a step that tells none.
    pub fn reached_now(&self) -> u64 {
        self.resumes_from().and_then(|data| data.get("reached")?.as_u64()).unwrap_or(0)
    }

    /// Count an interruption of the current step. One after which the step has got further than it ever was before
    /// another takes back those that came before.
    pub fn interrupt(&mut self) {
        let now = self.reached_now();
        self.interruptions += 1;
        self.fruitless = if now > self.reached { 0 } else { self.fruitless + 1 };
        self.reached = self.reached.max(now);
    }

    /// Whether every planned step has a stored success. False while there is no plan.
    pub fn all_succeeded(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| (0..plan.len()).all(|index| self.succeeded(index)))
    }
}
