//! A run: one piece of work on a node, stored as a whole: the request, the plan, the current place, the results of the
//! steps. Cleaning, deployment, service, inspection, rescue and tear-down are runs.
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
//! A deployment of a node whose ramdisk was kept running (fast track) goes from Start to LearnSteps.
//!
//! AwaitHello comes between the step that starts an instance and the success of that step, where the deployment asks for it.
//!
//! Each value of the cursor names the next action. It is stored before the action is taken, so that a controller that was
//! killed at any moment takes the action again, or asks for its outcome.

use crate::boot::BootStart;
use crate::deploy_step::is_deploy_step;
use crate::hello::Hello;
use crate::kept_ramdisk::KeptRamdisk;
use crate::kind::RunKind;
use crate::request_sender::RequestSender;
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
    /// The sender of that request.
    #[serde(default)]
    pub sender: Option<RequestSender>,
    /// Steps a user asked for; empty in automated cleaning.
    #[serde(default)]
    pub requested: Vec<RequestedStep>,
    /// Deploy steps of the templates that the instance's traits name.
    #[serde(default)]
    pub templates: Vec<RequestedStep>,
    /// The ramdisk must not be booted.
    #[serde(default)]
    pub disable_ramdisk: bool,
    /// This run booted the node into the ramdisk, and has to end that.
    #[serde(default = "yes")]
    pub booted: bool,
    /// The persistent boot device from before the run made the node boot from the network, until it is restored.
    #[serde(default)]
    pub boot_before: Option<PersistentBoot>,
    /// How the present boot began, or how the next one is to begin.
    #[serde(default)]
    pub boot_start: BootStart,
    /// A boot of this run began without an observed power-off.
    #[serde(default)]
    pub off_unobserved: bool,
    /// The plan; `None` until the steps of the agent are known.
    #[serde(default)]
    pub plan: Option<Vec<PlannedStep>>,
    /// Index of the current step; `None` before the first.
    #[serde(default)]
    pub index: Option<usize>,
    /// The next action.
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
    /// Why the current step counts as hung: it is cancelled, then the run fails.
    #[serde(default)]
    pub hung: Option<String>,
    /// What the current step saved last, to resume from after an interruption.
    #[serde(default)]
    pub checkpoint: Option<Checkpoint>,
    /// How often the current step was interrupted and started again.
    #[serde(default)]
    pub interruptions: u32,
    /// Consecutive interruptions without progress; limited by `max_interruptions`.
    #[serde(default)]
    pub fruitless: u32,
    /// The largest progress at any interruption, as [`Run::reached_now`] returns it.
    #[serde(default)]
    pub reached: u64,
    /// How often the plan was made again because hardware managers changed.
    #[serde(default)]
    pub replans: u32,
    /// Consecutive failures of the next action; 0 again when it succeeds.
    #[serde(default)]
    pub attempts: u32,
    /// The logs of the ramdisk; `None` if they are not to be collected.
    #[serde(default)]
    pub logs: Option<Logs>,
    /// The hello of the instance, without which the deployment is not done; `None` where none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hello: Option<Hello>,
    /// The ramdisk that runs on the node at rest for the deployment that follows; in a deployment that has not begun to use it,
    /// that of the cleaning before. `None` where none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramdisk_kept: Option<KeptRamdisk>,
}

/// The logs of the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logs {
    /// They are to be collected; the end of the run is stored.
    Wanted,
    /// They are in the file of this name.
    Kept(String),
    /// They could not be collected, for this reason.
    Missing(String),
}

/// The checkpoint of a step of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Index of the step in the plan.
    pub index: usize,
    /// The step with its arguments, as it was sent.
    pub step: Map<String, Value>,
    /// The data; only its hardware manager can read them.
    pub data: Value,
}

/// A persistent boot device, as set in the BMC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentBoot {
    /// In Ironic's words: `disk`, `cdrom` …
    pub device: String,
    /// `bios` or `uefi`, where the BMC reports it.
    pub mode: Option<String>,
}

fn yes() -> bool {
    true
}

/// The next action of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")] // wording: on the wire, in the node's `anneal` object
pub enum Cursor {
    /// Find out what the run needs.
    Start,
    /// Switch the node off, so that the ramdisk starts cold.
    PowerOff,
    /// Read the persistent boot device: the apparent configuration must not change (specs/state-machine.txt), and BMCs
    /// lose it when the next boot is set.
    ReadBootDevice,
    /// Make the next boot a network boot.
    SetBootDevice,
    /// Switch the node on.
    PowerOn,
    /// Wait for the first heartbeat of a boot.
    AwaitAgent,
    /// The ramdisk has booted: restore the persistent boot device.
    RestoreBootDevice,
    /// Ask the agent for its steps.
    LearnSteps,
    /// Choose the next step and store its command.
    NextStep,
    /// A command was stored; it may or may not have reached the agent.
    Issued {
        /// Its id.
        command_id: String,
        /// When it was stored; once it is accepted, when the agent first reported it.
        at: Timestamp,
        /// Boot id of the agent it is for, if the agent reports one.
        boot_id: Option<String>,
        /// Process id of that agent, likewise. Another process does not know the commands of this one, and might run one
        /// again.
        #[serde(default)]
        process_id: Option<String>,
        /// The agent acknowledged it, or reported that it runs it.
        #[serde(default)]
        accepted: bool,
    },
    /// An out-of-band step. Stored before it begins: found with `polling` false, it was interrupted, and its progress is
    /// unknown.
    OutOfBand {
        /// Id of this execution.
        command_id: String,
        /// When it began.
        at: Timestamp,
        /// It goes on in the BMC, and is polled.
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
    /// The instance was started from its disk: wait for its hello.
    AwaitHello {
        /// Id of the step that started it.
        command_id: String,
        /// When the BMC reported the node on.
        since: Timestamp,
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
            sender: None,
            requested: Vec::new(),
            templates: Vec::new(),
            disable_ramdisk: false,
            booted: false,
            boot_before: None,
            boot_start: BootStart::OffObserved,
            off_unobserved: false,
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
            hello: None,
            ramdisk_kept: None,
        }
    }

    /// Whether it is at the step with which the deploy interface `ramdisk` starts the node: what boots is the user's.
    pub fn starts_instance(&self) -> bool {
        let at = self.index.filter(|index| !self.succeeded(*index));
        at.is_some() && self.current().is_some_and(|planned| is_deploy_step(&planned.step))
    }

    /// Whether a boot of the node now is one into our ramdisk.
    pub fn boots_ramdisk(&self) -> bool {
        !self.starts_instance()
            && !matches!(
                self.cursor,
                Cursor::AwaitHello { .. } | Cursor::TearDown | Cursor::Restart | Cursor::Done
            )
            && (self.booted || matches!(self.cursor, Cursor::PowerOn | Cursor::AwaitAgent))
    }

    /// Whether the agent of this boot may get its token: the run has seen the node off and has powered it on, or has reset it
    /// ([`BootStart`]), and has not heard an agent since.
    pub fn awaits_agent(&self) -> bool {
        matches!(self.cursor, Cursor::AwaitAgent | Cursor::AwaitInventory)
    }

    /// Id of the command of the current step, while there is one.
    pub fn command_id(&self) -> Option<&str> {
        match &self.cursor {
            Cursor::Issued { command_id, .. }
            | Cursor::OutOfBand { command_id, .. }
            | Cursor::AwaitHello { command_id, .. } => Some(command_id),
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
        self.success(index).is_some()
    }

    /// The stored success of this step of the plan.
    pub fn success(&self, index: usize) -> Option<&StepResult> {
        self.results.iter().find(|result| result.index == index && result.error.is_none())
    }

    /// The current step.
    pub fn current(&self) -> Option<&PlannedStep> {
        self.plan.as_ref()?.get(self.index?)
    }

    /// Keep the checkpoint of the current step.
    pub fn keep_checkpoint(&mut self, data: Value) {
        if let (Some(index), Some(step)) = (self.index, self.current()) {
            self.checkpoint = Some(Checkpoint { index, step: step.wire(), data });
        }
    }

    /// The checkpoint of the current step, if it was saved by the same step with the same arguments.
    pub fn resumes_from(&self) -> Option<&Value> {
        let (kept, step) = (self.checkpoint.as_ref()?, self.current()?);
        (self.index == Some(kept.index) && step.wire() == kept.step).then_some(&kept.data)
    }

    /// The progress of the current step by its checkpoint: the number `reached` in it, which grows with the step (for an
    /// erase: bytes of all disks). 0 for a step that saves none.
    pub fn reached_now(&self) -> u64 {
        self.resumes_from().and_then(|data| data.get("reached")?.as_u64()).unwrap_or(0)
    }

    /// Count an interruption of the current step. If the step has made more progress than at any interruption before, the
    /// count of fruitless ones starts again at 0.
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
