//! Running a step, and what is heard meanwhile.

use super::{Method, Notification};
use crate::StepKind;
use agent_protocol::progress::Progress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// `run`: run one of your steps.
#[derive(Debug, Clone, Copy)]
pub struct Run;

impl Method for Run {
    const NAME: &'static str = "run";
    const DEADLINE: Option<Duration> = None;
    type Params = RunParams;
    type Answer = RunAnswer;
}

/// Which step, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunParams {
    /// In which of its lists the step was found.
    pub kind: StepKind,
    /// Interface.
    pub interface: String,
    /// Name.
    pub step: String,
    /// Arguments; the agent has checked them against the schemas.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// The node as the controller sent it (Ironic's shape).
    #[serde(default)]
    pub node: Value,
    /// What the step saved last when it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Value>,
}

/// How it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunAnswer {
    /// For the controller, as the step's `result_schema` says.
    #[serde(default)]
    pub result: Value,
    /// The node must be rebooted before the next step.
    #[serde(default)]
    pub reboot_requested: bool,
}

/// `progress`: how far a call is.
#[derive(Debug, Clone, Copy)]
pub struct Progressed;

impl Notification for Progressed {
    const NAME: &'static str = "progress";
    type Params = ProgressReport;
}

/// How far it is. Nothing in it goes back while a call runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressReport {
    /// Id of the call.
    pub id: u64,
    /// Percent, a text, and disks.
    #[serde(flatten)]
    pub progress: Progress,
}

/// `log`: a line for the log.
#[derive(Debug, Clone, Copy)]
pub struct Log;

impl Notification for Log {
    const NAME: &'static str = "log";
    type Params = Logged;
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// How bad it is.
    pub level: Level,
    /// What happened.
    pub text: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For the author of the manager.
    Debug,
    /// Ordinary.
    Info,
    /// Look at it.
    Warning,
    /// Something did not work.
    Error,
}

/// `checkpoint`: what to give back should the step be interrupted.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint;

impl Notification for Checkpoint {
    const NAME: &'static str = "checkpoint";
    type Params = CheckpointSaved;
}

/// What to keep; it replaces what was kept before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointSaved {
    /// Id of the `run`.
    pub id: u64,
    /// Anything, at most 64 KiB as JSON.
    pub data: Value,
}
