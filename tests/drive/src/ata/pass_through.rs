//! ATA PASS-THROUGH (12) and (16) (SAT-4 12.2).

use super::{Command, Registers};
use crate::drive::{Drive, Refusal};
use crate::sense::Sense;

/// Run the command that is in a CDB, padded to 16 bytes.
pub(crate) fn execute(drive: &mut Drive, cdb: &[u8; 16], out: &[u8]) -> Result<Vec<u8>, Refusal> {
    let long = cdb[0] == 0x85;
    let extend = long && cdb[1] & 1 != 0;
    let high = |byte: u8| if extend { byte } else { 0 };
    let command = if long {
        Command {
            features: u16::from_be_bytes([high(cdb[3]), cdb[4]]),
            count: u16::from_be_bytes([high(cdb[5]), cdb[6]]),
            lba: u64::from_be_bytes([
                0,
                0,
                high(cdb[11]),
                high(cdb[9]),
                high(cdb[7]),
                cdb[12],
                cdb[10],
                cdb[8],
            ]),
            code: cdb[14],
        }
    } else {
        Command {
            features: cdb[3].into(),
            count: cdb[4].into(),
            lba: u64::from_be_bytes([0, 0, 0, 0, 0, cdb[7], cdb[6], cdb[5]]),
            code: cdb[9],
        }
    };
    // Non-data, PIO in, PIO out; the host gives the transfer's direction and must be the command's.
    let wanted = match command.code {
        0xec | 0xb1 => 4,
        0xf1 | 0xf2 | 0xf4 | 0xf6 => 5,
        _ => 3,
    };
    if cdb[1] >> 1 & 0xf != wanted {
        return Err(Sense::INVALID_FIELD.into());
    }
    let asked = cdb[2] & 0x20 != 0;
    match super::execute(drive, &command, out) {
        Ok((_, data)) if !asked => Ok(data),
        Ok((registers, _)) => Err(status_return(Sense::REGISTERS, extend, &registers)),
        Err(registers) => Err(status_return(Sense::ABORTED, extend, &registers)),
    }
}

/// The ATA Status Return descriptor (SAT-4 12.2.2.6).
fn status_return(sense: Sense, extend: bool, registers: &Registers) -> Refusal {
    let [c1, c0] = registers.count.to_be_bytes();
    let [_, _, l5, l4, l3, l2, l1, l0] = registers.lba.to_be_bytes();
    let status = if registers.error == 0 { 0x50 } else { 0x51 };
    let descriptor =
        [0x09, 12, u8::from(extend), registers.error, c1, c0, l3, l0, l4, l1, l5, l2, 0x40, status];
    Refusal::Raw(sense.with_descriptor(&descriptor))
}
