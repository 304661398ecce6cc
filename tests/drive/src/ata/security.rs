//! The security feature set (ACS-4 4.16, 7.38 to 7.43). There is no master password.

use super::{ABORTED, Ended, Registers};
use crate::drive::Drive;
use crate::work::Operation;

/// Wrong passwords until none is taken before the power was off.
pub(super) const MOST_WRONG: u8 = 5;

pub(super) fn execute(drive: &mut Drive, code: u8, prepared: bool, out: &[u8]) -> Ended {
    let done = Ok((Registers::default(), Vec::new()));
    if drive.ata.frozen {
        return Err(ABORTED);
    }
    match code {
        // ERASE PREPARE, FREEZE LOCK: without data.
        0xf3 => {
            drive.ata.prepared = true;
            return done;
        }
        0xf5 if !drive.ata.locked => {
            drive.ata.frozen = true;
            return done;
        }
        0xf5 => return Err(ABORTED),
        _ => {}
    }
    // Word 0 bit 0 chooses the master password; the password is in words 1 to 16.
    let (Some(&[control, _]), Some(password)) = (out.first_chunk(), out.get(2..34)) else {
        return Err(ABORTED);
    };
    let password: [u8; 32] = password.try_into().map_err(|_| ABORTED)?;
    let known = control & 1 == 0 && drive.memory.password == Some(password);
    match code {
        0xf1 if !drive.ata.locked && control & 1 == 0 => {
            drive.memory.password = Some(password);
            drive.note("a password is set");
            done
        }
        0xf2 if drive.ata.wrong < MOST_WRONG => {
            if !known {
                drive.ata.wrong += 1;
                return Err(ABORTED);
            }
            drive.ata.locked = false;
            drive.note("unlocked");
            done
        }
        0xf4 if known && prepared && !(drive.spec.plain && control & 2 != 0) => {
            erase(drive, control & 2 != 0)
        }
        0xf6 if known && !drive.ata.locked => {
            drive.memory.password = None;
            drive.note("the password is taken off");
            done
        }
        _ => Err(ABORTED),
    }
}

/// ERASE UNIT: nothing is answered before its end, and what loses its power in it keeps the password.
fn erase(drive: &mut Drive, enhanced: bool) -> Ended {
    let name = if enhanced { "SECURITY ERASE UNIT, enhanced," } else { "SECURITY ERASE UNIT" };
    eprintln!("drive {}: {name} begins", drive.spec.serial);
    let size = drive.medium.size();
    let half = size / 2 / 4096 * 4096;
    let operation = if enhanced { Operation::Overwrite([0xaa; 4]) } else { Operation::Block };
    let lies = drive.lies();
    drive.save();
    drive.clock.sleep(drive.spec.takes / 2);
    if !lies {
        operation.apply(&*drive.medium, 0..half);
    }
    drive.clock.sleep(drive.spec.takes / 2);
    if !lies {
        operation.apply(&*drive.medium, half..size);
    }
    drive.memory.password = None;
    drive.ata.locked = false;
    drive.note(format!("{name} ends"));
    Ok((Registers::default(), Vec::new()))
}
