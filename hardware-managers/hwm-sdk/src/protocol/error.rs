//! Errors on the wire.

use super::VERSION;
use crate::StepError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Error of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of [`Code`], or any other whole number.
    pub code: i64,
    /// One line for the operator, naming the thing.
    pub message: String,
    /// What [`Code`] says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Codes with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum Code {
    /// The line is not JSON.
    Parse = -32700,
    /// It is JSON and no message.
    Invalid = -32600,
    /// No such method.
    Method = -32601,
    /// The params are not those of the method.
    Params = -32602,
    /// The peer broke while it worked.
    Internal = -32603,
    /// No offered protocol version is spoken. Data: `{"supported": [1]}`.
    Version = -32000,
    /// An argument of the step is missing, unknown or wrong. Data: `{"name": …, "problem": …}`.
    Argument = -32001,
    /// Stopped because it was cancelled. Data: `{"report": …}`.
    Cancelled = -32002,
    /// The work failed. Data: `{"report": …}`.
    Failed = -32003,
    /// The manager leaves this to another.
    Declined = -32004,
    /// The manager has no such step.
    Step = -32005,
    /// Not granted, or not claimed (host services).
    Refused = -32006,
    /// Granted and yet not to be had (host services).
    Unavailable = -32007,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code as i64, message: message.into(), data: None }
    }

    /// No version of those offered is spoken here.
    pub fn version(offered: &[u32]) -> Self {
        let offered = offered.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("protocol versions offered: {offered}; spoken here: {VERSION}");
        Self { data: Some(json!({"supported": [VERSION]})), ..Self::new(Code::Version, message) }
    }

    /// Whether it has this code.
    pub fn is(&self, code: Code) -> bool {
        self.code == code as i64
    }

    /// What it means for the step `step` of `manager` that was run.
    pub fn into_step_error(self, manager: &str, step: &str) -> StepError {
        let of = |data: &Option<Value>, key: &str| data.as_ref().and_then(|data| data.get(key)).cloned();
        let text = |key: &str| of(&self.data, key).and_then(|value| value.as_str().map(str::to_owned));
        let report = of(&self.data, "report").unwrap_or_default();
        match self.code {
            code if code == Code::Argument as i64 => StepError::Argument {
                name: text("name").unwrap_or_else(|| "args".to_owned()),
                problem: text("problem").unwrap_or(self.message),
            },
            code if code == Code::Cancelled as i64 => StepError::Cancelled { report },
            code if code == Code::Declined as i64 => StepError::Declined { reason: self.message },
            code if code == Code::Step as i64 => {
                StepError::Unknown { manager: manager.to_owned(), step: step.to_owned() }
            }
            _ => StepError::Failed { reason: self.message, report },
        }
    }
}

impl From<StepError> for RpcError {
    fn from(error: StepError) -> Self {
        let message = error.to_string();
        let (code, data) = match error {
            StepError::Unknown { .. } => (Code::Step, None),
            StepError::Argument { name, problem } => {
                (Code::Argument, Some(json!({"name": name, "problem": problem})))
            }
            StepError::Cancelled { report } => (Code::Cancelled, Some(json!({"report": report}))),
            StepError::Declined { .. } => (Code::Declined, None),
            StepError::Failed { report, .. } => (Code::Failed, Some(json!({"report": report}))),
            StepError::NeedsReboot { .. } => (Code::Failed, Some(json!({"report": null}))),
        };
        Self { data, ..Self::new(code, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_a_step_keeps_its_meaning_over_the_wire() {
        for error in [
            StepError::Unknown { manager: "m".into(), step: "s".into() },
            StepError::Argument { name: "size".into(), problem: "must be at least 1".into() },
            StepError::Cancelled { report: json!({"done": 3}) },
            StepError::Failed { reason: "drive 3 is gone".into(), report: json!({"done": 3}) },
            StepError::Declined { reason: "not a disk of ours".into() },
        ] {
            let before = format!("{error:?}");
            let wire = serde_json::to_string(&RpcError::from(error)).expect("writes");
            let read: RpcError = serde_json::from_str(&wire).expect("reads");
            assert_eq!(format!("{:?}", read.into_step_error("m", "s")), before);
        }
    }
}
