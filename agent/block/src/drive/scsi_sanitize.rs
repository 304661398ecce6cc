//! SCSI SANITIZE (SBC-4 5.30).

use super::work::{DriveStatus, Work, fault};
use crate::fault::Fault;
use crate::sanitize::Operation;
use crate::scsi::{self, Reply};
use crate::transport::{Data, QUESTION};

const WHAT: &str = "SCSI SANITIZE";
/// How often a command is sent in all when the disk answers with a unit attention.
const ATTENTIONS: usize = 4;

/// Run the operation to its end. If another operation is already running, wait for it first and then start ours: the
/// disk does not report which operation it is running. Returns whether the disk reported that it was running ours: it
/// keeps no log of what has succeeded.
///
/// # Errors
/// [`Fault`] when the disk refuses, fails or is stuck.
pub fn run(work: &Work<'_>, operation: Operation) -> Result<bool, Fault> {
    let cdb = scsi::sanitize(operation);
    let parameters = if operation == Operation::Overwrite { &scsi::OVERWRITE_PARAMETERS[..] } else { &[] };
    follow(work, WHAT, (0x04, 0x1b), (0x31, 0x03), true)?;
    begin(work, WHAT, &cdb, parameters)?;
    follow(work, WHAT, (0x04, 0x1b), (0x31, 0x03), false)
}

/// Start an operation whose command the disk answers at once.
pub(super) fn begin(work: &Work<'_>, what: &'static str, cdb: &[u8], parameters: &[u8]) -> Result<(), Fault> {
    let reply =
        send(work, what, cdb, || if parameters.is_empty() { Data::None } else { Data::Out(parameters) })?;
    if reply.good() { Ok(()) } else { Err(fault(what, reply.to_string())) }
}

/// Wait for the end of the operation: REQUEST SENSE reports its progress, TEST UNIT READY its end. With `foreign` the
/// operation is an earlier one, whose failure does not count. Returns whether it was seen running.
pub(super) fn follow(
    work: &Work<'_>,
    what: &'static str,
    running: (u8, u8),
    failed: (u8, u8),
    foreign: bool,
) -> Result<bool, Fault> {
    let mut seen_running = false;
    let mut is_running = |progress| {
        seen_running = true;
        Ok(DriveStatus::Running(progress))
    };
    work.wait(what, || {
        let mut bytes = [0u8; 252];
        let reply = work.drive.transport.scsi(&scsi::REQUEST_SENSE, Data::In(&mut bytes), QUESTION);
        let reply = reply.map_err(|source| Fault::Command { what, source })?;
        let sense = if reply.good() { &bytes[..reply.transferred.min(bytes.len())] } else { &reply.sense };
        match scsi::sense::Sense::parse(sense) {
            Some(sense) if sense.is(running.0, running.1) => return is_running(sense.progress),
            Some(sense) if sense.is(failed.0, failed.1) && !foreign => {
                return Err(fault(what, format!("the disk says {sense}")));
            }
            Some(_) => {}
            None => return Err(fault(what, format!("the disk does not report what it is doing: {reply}"))),
        }
        let ready = send(work, what, &scsi::TEST_UNIT_READY, || Data::None)?;
        match ready.sense() {
            _ if ready.good() => Ok(DriveStatus::Done),
            Some(sense) if sense.is(running.0, running.1) => is_running(sense.progress),
            // Becoming ready.
            Some(sense) if sense.is(0x04, 0x01) => Ok(DriveStatus::Running(None)),
            Some(sense) if sense.is(failed.0, failed.1) && foreign => Ok(DriveStatus::Done),
            _ => Err(fault(what, format!("the disk is not ready afterwards: {ready}"))),
        }
    })?;
    Ok(seen_running)
}

/// Send a command, again after a unit attention.
fn send<'d>(
    work: &Work<'_>,
    what: &'static str,
    cdb: &[u8],
    data: impl Fn() -> Data<'d>,
) -> Result<Reply, Fault> {
    let mut reply = Reply::default();
    for _ in 0..ATTENTIONS {
        let answer = work.drive.transport.scsi(cdb, data(), QUESTION);
        reply = answer.map_err(|source| Fault::Command { what, source })?;
        if reply.sense().is_none_or(|sense| sense.key != 6) {
            break;
        }
    }
    Ok(reply)
}
