//! What a drive reports of itself besides INQUIRY.

use crate::drive::{Drive, Refusal};
use crate::sense::Sense;
use crate::spec::Kind;

/// The caching page: a write cache that is on.
const CACHING: [u8; 20] = [0x08, 18, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn pages(page: u8) -> Vec<u8> {
    if matches!(page, 0x08 | 0x3f) { CACHING.to_vec() } else { Vec::new() }
}

/// MODE SENSE (6) (SPC-6 6.14) without block descriptors. DPOFUA is clear.
pub(super) fn mode_sense_6(page: u8) -> Vec<u8> {
    let pages = pages(page);
    let length = u8::try_from(pages.len() + 3).unwrap_or(0);
    [vec![length, 0, 0, 0], pages].concat()
}

/// MODE SENSE (10) (SPC-6 6.15) without block descriptors.
pub(super) fn mode_sense_10(page: u8) -> Vec<u8> {
    let pages = pages(page);
    let length = u8::try_from(pages.len() + 6).unwrap_or(0);
    [vec![0, length, 0, 0, 0, 0, 0, 0], pages].concat()
}

/// READ CAPACITY (10) (SBC-4 5.19).
pub(super) fn capacity_10(drive: &Drive) -> Vec<u8> {
    let last = u32::try_from(drive.sectors() - 1).unwrap_or(u32::MAX);
    [last.to_be_bytes(), 512u32.to_be_bytes()].concat()
}

/// READ CAPACITY (16) (SBC-4 5.20). LBPME and LBPRZ where it is flash.
pub(super) fn capacity_16(drive: &Drive) -> Vec<u8> {
    let mut data = [&(drive.sectors() - 1).to_be_bytes()[..], &512u32.to_be_bytes()].concat();
    data.resize(32, 0);
    data[14] = if drive.spec.spins { 0 } else { 0xc0 };
    data
}

/// REPORT SUPPORTED OPERATION CODES (SPC-6 6.36) of one command, which is how everybody asks.
pub(super) fn operation(drive: &Drive, cdb: &[u8; 16]) -> Vec<u8> {
    let scsi = drive.spec.kind == Kind::Scsi;
    let spec = &drive.spec;
    let length = match (cdb[3], cdb[5]) {
        (0x48, 1) if scsi && spec.overwrite => 10,
        (0x48, 2) if scsi && spec.block => 10,
        (0x48, 3) if scsi && spec.crypto => 10,
        (0x04, _) if scsi && spec.format => 6,
        (0x41 | 0x42, _) => 10,
        (0x93, _) => 16,
        _ => return vec![0, 1, 0, 0],
    };
    // SUPPORT 011b: as the standard has it. The usage data says that every bit counts.
    [&[0, 3, 0, length][..], &vec![0xff; length.into()]].concat()
}

/// PERSISTENT RESERVE IN (SPC-6 6.16): READ KEYS, READ RESERVATION.
pub(super) fn reservations(drive: &Drive, action: u8) -> Result<Vec<u8>, Refusal> {
    const KEY: [u8; 8] = *b"other ho";
    // Scope of the logical unit, write exclusive.
    const SCOPE_AND_TYPE: u8 = 0x01;
    let list = match action {
        0 if drive.spec.reserved => KEY.to_vec(),
        1 if drive.spec.reserved => [&KEY[..], &[0, 0, 0, 0, 0, SCOPE_AND_TYPE, 0, 0]].concat(),
        0 | 1 => Vec::new(),
        _ => return Err(Sense::INVALID_FIELD.into()),
    };
    let generation = u32::from(drive.spec.reserved).to_be_bytes();
    let length = u32::try_from(list.len()).unwrap_or(0).to_be_bytes();
    Ok([&generation[..], &length, &list].concat())
}
