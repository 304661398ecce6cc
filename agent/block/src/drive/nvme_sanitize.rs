//! NVMe Sanitize (NVM Express Base Specification 2.0, 5.24): started, followed in its log page, believed only when it
//! is the one that was started.

use super::work::{DriveStatus, Work, fault};
use crate::fault::Fault;
use crate::nvme::log::{LENGTH, SANITIZE, SanitizeLog};
use crate::nvme::{NvmeCommand, status_text};
use crate::sanitize::{Operation, State};
use crate::transport::{QUESTION, Transport};

const WHAT: &str = "NVMe Sanitize";
/// Status of a command that comes while a sanitize operation is running.
const IN_PROGRESS: u16 = 0x1d;

/// Run the operation to its end. If one is already running, wait for it first; if it is of the same kind, it counts.
///
/// # Errors
/// [`Fault`] when the drive refuses, fails, is stuck, or only shows the success of an earlier operation.
pub fn run(work: &Work<'_>, operation: Operation) -> Result<(), Fault> {
    let command = NvmeCommand::sanitize(operation);
    let mut before = log(work.drive.transport)?;
    if matches!(before.state, Some(State::Running(_))) {
        follow(work)?;
        before = log(work.drive.transport)?;
        if before.succeeded && same(&before, &command) {
            return Ok(());
        }
    }
    let ended = work.drive.transport.nvme(&command, &mut [], QUESTION);
    match ended.map_err(|source| Fault::Command { what: WHAT, source })?.status {
        0 => {}
        // Another host started an operation between our two commands.
        IN_PROGRESS => return Err(fault(WHAT, "another host has just started a sanitize operation")),
        status => return Err(fault(WHAT, status_text(status))),
    }
    let seen_running = follow(work)?;
    let after = log(work.drive.transport)?;
    let fresh = seen_running
        || !before.succeeded
        || before.command != after.command
        // Data was written since the last success, and none since this one.
        || !before.untouched_since && after.untouched_since;
    if !after.succeeded || !same(&after, &command) {
        return Err(fault(WHAT, "the drive took the command, and its log does not show that it was done"));
    }
    if !fresh {
        return Err(fault(WHAT, "the drive only shows the success of an earlier operation"));
    }
    Ok(())
}

/// Whether the log is of an operation of the same kind (SANACT).
fn same(log: &SanitizeLog, command: &NvmeCommand) -> bool {
    log.command & 7 == command.cdw10 & 7
}

/// Wait until no operation is running. Returns whether one was seen running.
fn follow(work: &Work<'_>) -> Result<bool, Fault> {
    let mut seen_running = false;
    work.wait(WHAT, || match log(work.drive.transport)?.state {
        Some(State::Running(progress)) => {
            seen_running = true;
            Ok(DriveStatus::Running(Some(progress)))
        }
        Some(State::Failed) => Err(fault(WHAT, "the drive says that the operation failed")),
        Some(State::Idle) => Ok(DriveStatus::Done),
        Some(State::Frozen) | None => Err(fault(WHAT, "the drive's sanitize log makes no sense")),
    })?;
    Ok(seen_running)
}

fn log(transport: &dyn Transport) -> Result<SanitizeLog, Fault> {
    const WHAT: &str = "reading the sanitize log";
    let mut page = vec![0; LENGTH];
    let ended = transport.nvme(&NvmeCommand::log_page(SANITIZE, LENGTH), &mut page, QUESTION);
    match ended.map_err(|source| Fault::Command { what: WHAT, source })?.status {
        0 => SanitizeLog::parse(&page).ok_or_else(|| fault(WHAT, "it is too short")),
        status => Err(fault(WHAT, status_text(status))),
    }
}
