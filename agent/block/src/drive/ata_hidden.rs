//! Giving back the sectors of an ATA drive that cannot be addressed: host protected area (ACS-2 7.35, 7.56), device
//! configuration overlay (ACS-2 7.8), accessible max address configuration (ACS-4 7.2). All of it stays given back when
//! the drive is powered off.

use super::work::fault;
use crate::ata::{Command, HiddenArea};
use crate::capabilities;
use crate::fault::Fault;
use crate::transport::Transport;

const WHAT: &str = "giving back hidden sectors";

/// Make all sectors addressable, and return their number.
///
/// # Errors
/// [`Fault`] when the drive refuses, or still hides some. No content is touched either way.
pub fn reveal(drive: &dyn Transport) -> Result<u64, Fault> {
    let look = || capabilities::ata(drive).map_err(|error| fault(WHAT, error.to_string()));
    let mut now = look()?;
    // The overlay cannot go while there is a protected area, and may leave one that was beyond it.
    for step in [protected, overlay, protected, accessible] {
        if now.hidden == HiddenArea::default() {
            break;
        }
        step(drive, &now.hidden)?;
        now = look()?;
    }
    match now.hidden.sectors() {
        0 => Ok(now.sectors),
        left => Err(fault(WHAT, format!("the drive still hides {left} sectors; power it off and on"))),
    }
}

fn protected(drive: &dyn Transport, hidden: &HiddenArea) -> Result<(), Fault> {
    if hidden.host_protected == 0 {
        return Ok(());
    }
    // SET MAX counts only directly after this.
    let native = send(drive, "READ NATIVE MAX ADDRESS EXT", &Command::READ_NATIVE_MAX)?;
    send(drive, "SET MAX ADDRESS EXT", &Command::set_max(native)).map(drop)
}

fn overlay(drive: &dyn Transport, hidden: &HiddenArea) -> Result<(), Fault> {
    if hidden.configuration_overlay == 0 {
        return Ok(());
    }
    send(drive, "DEVICE CONFIGURATION RESTORE", &Command::CONFIGURATION_RESTORE).map(drop)
}

fn accessible(drive: &dyn Transport, hidden: &HiddenArea) -> Result<(), Fault> {
    if hidden.accessible_max == 0 {
        return Ok(());
    }
    let native = send(drive, "GET NATIVE MAX ADDRESS EXT", &Command::GET_NATIVE_MAX)?;
    send(drive, "SET ACCESSIBLE MAX ADDRESS EXT", &Command::set_accessible_max(native)).map(drop)
}

/// Send a command and return the LBA of the answer.
fn send(drive: &dyn Transport, what: &'static str, command: &Command) -> Result<u64, Fault> {
    let words = |error: crate::ata::Error| {
        fault(
            what,
            format!("{error}; drives that are frozen or were changed before take it after power off and on"),
        )
    };
    match capabilities::registers(drive, command).map_err(words)? {
        registers if registers.truncated => Err(fault(what, "the controller cuts the answer off")),
        registers => Ok(registers.lba),
    }
}
