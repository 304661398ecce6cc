//! ATA SECURITY ERASE UNIT (ACS-4 4.16, 7.38 to 7.43).
//!
//! The erase needs a password. The password is a known one and is cleared whatever happens. If a run is interrupted
//! in between, the next one repairs the drive: [`rescue`] removes a password that an erase tool left.

use super::work::{Drive, Work, fault};
use crate::ata::security::{KNOWN, PASSWORD, data, erase_data};
use crate::ata::{Command, Security};
use crate::capabilities::{ata_identify, ata_transfer, registers};
use crate::fault::{Fault, chain};
use crate::transport::{Data, QUESTION, Transport};
use std::time::Duration;

const WHAT: &str = "ATA SECURITY ERASE UNIT";
/// A drive takes five wrong passwords, then none until it is powered off: one is left to the operator.
const ATTEMPTS: usize = 4;
/// No known drive takes longer.
const MOST: Duration = Duration::from_secs(48 * 3600);

/// Erase, `enhanced` or not.
///
/// # Errors
/// [`Fault`] when the drive is frozen, locked with an unknown password, or fails. The drive then has no password, or
/// the fault says that it has one.
pub fn run(work: &Work<'_>, enhanced: bool) -> Result<(), Fault> {
    let transport = work.drive.transport;
    let state = identify(transport)?;
    if !state.supported || enhanced && !state.enhanced {
        return Err(fault(WHAT, "the drive does not support it"));
    }
    if state.frozen {
        return Err(fault(
            WHAT,
            "the drive is frozen, as firmware does at boot; power the node off and on, or hot-plug the drive",
        ));
    }
    if state.enabled && !clear(transport, state)? {
        return Err(fault(
            WHAT,
            "the drive has a password that is not known; disable it, or use its PSID or vendor tool",
        ));
    }
    send(transport, &Command::SECURITY_SET_PASSWORD, &data(PASSWORD), QUESTION)?;
    let timeout = MOST.min(Duration::from_secs(3600).max(work.estimate * 3));
    let erased = erase(transport, enhanced, timeout);
    // Whatever the drive answered: remove the password, so that the drive stays usable.
    let state = identify(transport)?;
    let cleared = if state.enabled { clear(transport, state)? } else { true };
    match (erased, cleared) {
        (Ok(()), true) if !state.enabled => Ok(()),
        (Ok(()), true) => Err(fault(WHAT, "the drive says that it is done, and still had its password")),
        (Err(error), true) => Err(error),
        (result, false) => {
            let why =
                result.err().map_or_else(|| "it says that it is done".to_owned(), |error| chain(&error));
            let password = String::from_utf8_lossy(PASSWORD);
            Err(fault(
                WHAT,
                format!(
                    "{why}; the drive is left with the password {password:?}, since it does not take it back"
                ),
            ))
        }
    }
}

fn erase(transport: &dyn Transport, enhanced: bool, timeout: Duration) -> Result<(), Fault> {
    let prepared = registers(transport, &Command::SECURITY_ERASE_PREPARE);
    prepared.map_err(|error| fault("ATA SECURITY ERASE PREPARE", error.to_string()))?;
    send(transport, &Command::SECURITY_ERASE_UNIT, &erase_data(PASSWORD, enhanced), timeout)
}

/// Remove a password that an erase left on the drive, if it is one of those that erase tools use. No content is
/// touched. Returns whether a password was removed.
///
/// # Errors
/// [`Fault`] when the drive does not answer. A password that is not known is no error.
pub fn rescue(drive: &Drive<'_>) -> Result<bool, Fault> {
    let state = identify(drive.transport)?;
    if !state.supported || !state.enabled || state.frozen || state.expired {
        return Ok(false);
    }
    clear(drive.transport, state)
}

/// Unlock the drive and remove the password. Returns whether the drive now has none.
fn clear(transport: &dyn Transport, state: Security) -> Result<bool, Fault> {
    if state.expired {
        return Ok(false);
    }
    for password in KNOWN.iter().take(ATTEMPTS) {
        if identify(transport)?.locked {
            // A wrong password aborts the command; IDENTIFY DEVICE then shows whether the drive is still locked.
            let _ = send(transport, &Command::SECURITY_UNLOCK, &data(password), QUESTION);
            if identify(transport)?.locked {
                continue;
            }
        }
        let _ = send(transport, &Command::SECURITY_DISABLE_PASSWORD, &data(password), QUESTION);
        if !identify(transport)?.enabled {
            return Ok(true);
        }
    }
    Ok(false)
}

fn identify(transport: &dyn Transport) -> Result<Security, Fault> {
    let capabilities =
        ata_identify(transport).map_err(|error| fault("ATA IDENTIFY DEVICE", error.to_string()))?;
    Ok(capabilities.security)
}

fn send(transport: &dyn Transport, command: &Command, data: &[u8], timeout: Duration) -> Result<(), Fault> {
    let what = match command.code {
        0xf1 => "ATA SECURITY SET PASSWORD",
        0xf2 => "ATA SECURITY UNLOCK",
        0xf6 => "ATA SECURITY DISABLE PASSWORD",
        _ => WHAT,
    };
    let answer = ata_transfer(transport, command, Data::Out(data), timeout);
    answer.map(|_| ()).map_err(|error| fault(what, error.to_string()))
}
