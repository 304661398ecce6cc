//! ATA SANITIZE DEVICE (ACS-4 7.36).

use super::work::{DriveStatus, Work, fault};
use crate::ata::Command;
use crate::ata::sanitize::Status;
use crate::capabilities::registers;
use crate::fault::Fault;
use crate::sanitize::{Operation, State};

const WHAT: &str = "ATA SANITIZE DEVICE";

/// Run the operation to its end. If another operation is already running, wait for it first and then start ours: the
/// drive does not report which operation it is running.
///
/// # Errors
/// [`Fault`] when the drive refuses, fails, is frozen or stuck, or only shows the success of an earlier operation.
pub fn run(work: &Work<'_>, operation: Operation) -> Result<(), Fault> {
    let mut before = ask(work, &Command::SANITIZE_STATUS)?;
    if matches!(before.state, State::Running(_)) {
        follow(work, before, true)?;
        before = ask(work, &Command::SANITIZE_STATUS)?;
    }
    match before.state {
        State::Frozen => {
            return Err(fault(WHAT, "the drive is frozen (SANITIZE FREEZE LOCK); power the node off and on"));
        }
        State::Failed => {
            // Some drives want the failure acknowledged before they take the next one; others never clear it.
            let _ = ask(work, &Command::SANITIZE_CLEAR_FAILURE);
        }
        State::Idle | State::Running(_) => {}
    }
    let begun = ask(work, &Command::sanitize(operation))?;
    let seen_running = follow(work, begun, false)?;
    if !seen_running && before.succeeded {
        return Err(fault(WHAT, "the drive only shows the success of an earlier operation"));
    }
    Ok(())
}

/// Wait until no operation is running, starting from the drive's last status. Returns whether one was seen running.
fn follow(work: &Work<'_>, begun: Status, foreign: bool) -> Result<bool, Fault> {
    let (mut seen_running, mut next) = (false, Some(begun));
    work.wait(WHAT, || {
        let status = match next.take() {
            Some(status) => status,
            None => ask(work, &Command::SANITIZE_STATUS)?,
        };
        match status.state {
            State::Running(progress) => {
                seen_running = true;
                Ok(DriveStatus::Running(Some(progress)))
            }
            State::Idle if status.succeeded || foreign => Ok(DriveStatus::Done),
            State::Failed if foreign => Ok(DriveStatus::Done),
            State::Idle => Err(fault(WHAT, "the drive took the command and does not say that it was done")),
            State::Failed => Err(fault(WHAT, "the drive says that the operation failed")),
            State::Frozen => Err(fault(WHAT, "the drive says that it is frozen")),
        }
    })?;
    Ok(seen_running)
}

fn ask(work: &Work<'_>, command: &Command) -> Result<Status, Fault> {
    Status::of(registers(work.drive.transport, command)).map_err(|error| fault(WHAT, error.to_string()))
}
