//! The ATA side: ACS-4, and ACS-2 for what ACS-4 dropped (HPA, DCO).

pub(crate) mod identify;
pub(crate) mod pass_through;
mod sanitize;
mod security;

use crate::drive::{Drive, SECTOR};
use crate::memory::Memory;
use crate::spec::Spec;

/// A command as the registers have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) code: u8,
    pub(crate) features: u16,
    pub(crate) count: u16,
    pub(crate) lba: u64,
}

/// The registers after a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) error: u8,
    pub(crate) count: u16,
    pub(crate) lba: u64,
}

/// A command that was aborted, with the registers then (ACS-4 6.2, 7.1.3).
pub(crate) const ABORTED: Registers = Registers { error: 0x04, count: 0, lba: 0 };

/// Registers and data of a command that ended well, or registers of one that did not.
pub(crate) type Ended = Result<(Registers, Vec<u8>), Registers>;

/// What is gone with the power.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The drive rejects access to its content.
    pub(crate) locked: bool,
    /// No security command is taken.
    pub(crate) frozen: bool,
    /// Wrong passwords that were tried.
    pub(crate) wrong: u8,
    /// The command before was SECURITY ERASE PREPARE.
    pub(crate) prepared: bool,
    /// The command before was READ NATIVE MAX ADDRESS.
    pub(crate) asked_native: bool,
    /// SANITIZE FREEZE LOCK EXT was sent.
    pub(crate) sanitize_frozen: bool,
    /// SANITIZE ANTIFREEZE LOCK EXT was sent.
    pub(crate) sanitize_antifrozen: bool,
    /// FREEZE ACCESSIBLE MAX ADDRESS EXT was sent.
    pub(crate) accessible_frozen: bool,
    /// Sectors that can be addressed.
    pub(crate) addressable: u64,
}

impl State {
    /// As it is when the power comes: what has a password is locked, and firmware may have frozen it.
    pub(crate) fn power_on(spec: &Spec, memory: &Memory, native: u64) -> Self {
        State {
            locked: memory.password.is_some(),
            frozen: spec.frozen,
            addressable: native - spec.hidden.min(native - 1),
            ..State::default()
        }
    }
}

/// Run a command.
pub(crate) fn execute(drive: &mut Drive, command: &Command, out: &[u8]) -> Ended {
    let prepared = std::mem::take(&mut drive.ata.prepared);
    let asked_native = std::mem::take(&mut drive.ata.asked_native);
    let allowed_in_sanitize = matches!(command.code, 0xec | 0xb4);
    if drive.progress().is_some() && !allowed_in_sanitize {
        return Err(ABORTED);
    }
    let native = drive.medium.size() / SECTOR;
    let with_lba = |lba: u64| Ok((Registers { lba, ..Registers::default() }, Vec::new()));
    match command.code {
        0xec => {
            drive.asked_what_there_is();
            Ok((Registers::default(), identify::identify(drive).to_vec()))
        }
        // READ NATIVE MAX ADDRESS, EXT.
        0xf8 | 0x27 if !drive.spec.amac => {
            drive.ata.asked_native = true;
            with_lba(native - 1)
        }
        // SET MAX ADDRESS, EXT: only directly after the question, only below the native one.
        0xf9 | 0x37 if !drive.spec.amac && asked_native && command.lba < native => {
            drive.ata.addressable = command.lba + 1;
            with_lba(command.lba)
        }
        // DEVICE CONFIGURATION IDENTIFY: nothing is overlaid.
        0xb1 if !drive.spec.amac && command.features & 0xff == 0xc2 => {
            let mut data = [0; 512];
            data[0] = 2;
            data[6..14].copy_from_slice(&(native - 1).to_le_bytes());
            identify::sum(&mut data);
            Ok((Registers::default(), data.to_vec()))
        }
        // ACCESSIBLE MAX ADDRESS CONFIGURATION (ACS-4 7.2): GET NATIVE MAX, SET, FREEZE.
        0x78 if drive.spec.amac => match command.features {
            0 => with_lba(native - 1),
            1 if !drive.ata.accessible_frozen && command.lba < native => {
                drive.ata.addressable = command.lba + 1;
                with_lba(command.lba)
            }
            2 => {
                drive.ata.accessible_frozen = true;
                with_lba(0)
            }
            _ => Err(ABORTED),
        },
        0xb4 => sanitize::execute(drive, command),
        0xf1..=0xf6 if drive.spec.security => security::execute(drive, command.code, prepared, out),
        _ => Err(ABORTED),
    }
}
