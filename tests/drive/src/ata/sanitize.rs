//! SANITIZE DEVICE (ACS-4 4.14, 7.36).

use super::{ABORTED, Command, Ended, Registers};
use crate::drive::Drive;
use crate::work::{Operation, Outcome};

/// Why a command was aborted, in LBA bits 7:0 (table 187).
const FAILED_BEFORE: u64 = 1;
const NOT_SUPPORTED: u64 = 2;
const FROZEN: u64 = 3;

pub(super) fn execute(drive: &mut Drive, command: &Command) -> Ended {
    let refused = |lba: u64| Err(Registers { lba, ..ABORTED });
    let spec = &drive.spec;
    if !(spec.crypto || spec.block || spec.overwrite) {
        return Err(ABORTED);
    }
    let operation = match command.features {
        0x0000 => {
            let clear = command.count & 1 != 0;
            if drive.memory.outcome == Some(Outcome::Failed) {
                if !clear {
                    return refused(FAILED_BEFORE);
                }
                drive.memory.outcome = None;
            }
            return Ok((status(drive), Vec::new()));
        }
        // FREEZE LOCK "FrLk", ANTIFREEZE LOCK "Anti".
        0x0020
            if command.lba == 0x4672_4c6b && !drive.ata.sanitize_antifrozen && drive.progress().is_none() =>
        {
            drive.ata.sanitize_frozen = true;
            return Ok((status(drive), Vec::new()));
        }
        0x0040 if command.lba == 0x416e_7469 && !drive.ata.sanitize_frozen && drive.progress().is_none() => {
            drive.ata.sanitize_antifrozen = true;
            return Ok((status(drive), Vec::new()));
        }
        0x0011 if spec.crypto && command.lba == 0x4372_7970 => Operation::Crypto,
        0x0012 if spec.block && command.lba == 0x426b_4572 => Operation::Block,
        // The pattern is in LBA bits 31:0, the passes in COUNT bits 3:0 (0 is 16).
        0x0014 if spec.overwrite && command.lba >> 32 == 0x4f57 => {
            let [.., a, b, c, d] = command.lba.to_be_bytes();
            Operation::Overwrite([d, c, b, a])
        }
        _ => return refused(NOT_SUPPORTED),
    };
    if drive.ata.sanitize_frozen {
        return refused(FROZEN);
    }
    if drive.progress().is_some() || drive.ata.locked {
        return Err(ABORTED);
    }
    drive.begin_ours(operation);
    Ok((status(drive), Vec::new()))
}

/// COUNT bits 15 (succeeded), 14 (in progress), 13 (frozen), 12 (antifrozen), and the progress in LBA bits 15:0.
fn status(drive: &Drive) -> Registers {
    let progress = drive.progress().map(|(_, progress)| progress);
    let bits = [
        (15, progress.is_none() && drive.memory.outcome == Some(Outcome::Succeeded)),
        (14, progress.is_some()),
        (13, drive.ata.sanitize_frozen),
        (12, drive.ata.sanitize_antifrozen),
    ];
    let count = bits.iter().fold(0, |word, &(bit, set)| word | u16::from(set) << bit);
    Registers { count, lba: progress.unwrap_or(0xffff).into(), error: 0 }
}
