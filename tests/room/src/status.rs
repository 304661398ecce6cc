//! Commands as agents report them.

use agent_protocol::command::{CommandError, CommandStatus, Status};

/// A step command of this id, without error and result.
pub fn command(id: &str, status: Status) -> CommandStatus {
    CommandStatus {
        id: id.to_owned(),
        command_name: "execute_clean_step".to_owned(),
        command_status: status,
        command_error: None,
        command_result: None,
        progress: None,
        checkpoint: None,
    }
}

/// A step command that failed with an error of this kind, for example `CleaningError`.
pub fn failed(id: &str, kind: &str, details: &str) -> CommandStatus {
    let error = CommandError {
        kind: kind.to_owned(),
        code: 500,
        message: "Step failed".to_owned(),
        details: details.to_owned(),
    };
    CommandStatus { command_error: Some(error), ..command(id, Status::Failed) }
}
