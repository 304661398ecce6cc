//! INQUIRY (SPC-6 6.7, 7.7; SBC-4 6.6; SAT-4 12.4).

use crate::ata;
use crate::drive::{Drive, Refusal};
use crate::sense::Sense;
use crate::spec::Kind;

/// Standard data, or a page of vital product data.
pub(super) fn inquiry(drive: &Drive, vital: bool, page: u8) -> Result<Vec<u8>, Refusal> {
    let ata = drive.spec.kind == Kind::Ata;
    let serial = padded(&drive.spec.serial, 16);
    let body = match (vital, page) {
        (false, 0) => return Ok(standard(ata)),
        (true, 0x00) if ata => vec![0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2],
        (true, 0x00) => vec![0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2],
        (true, 0x80) => serial,
        // One designator: binary, of the logical unit, NAA 5.
        (true, 0x83) => [&[0x01, 0x03, 0, 8][..], &name(drive).to_be_bytes()].concat(),
        // Bytes 8..36 name the translation; signature of a SATA disk; IDENTIFY DEVICE and its data.
        (true, 0x89) if ata => {
            let mut page = vec![0; 4];
            page.extend(padded("Anneal", 8));
            page.extend(padded("SAT in user space", 16));
            page.extend(b"0001");
            page.extend([0x34, 0, 0x50, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
            page.extend([0xec, 0, 0, 0]);
            page.extend(ata::identify::identify(drive));
            page
        }
        (true, 0xb0) => limits(),
        (true, 0xb1) => {
            // MEDIUM ROTATION RATE: 7200 a minute, or 1 for none.
            let mut page = vec![0; 60];
            page[..2].copy_from_slice(&(if drive.spec.spins { 7200u16 } else { 1 }).to_be_bytes());
            page
        }
        // LBPU and LBPRZ where it is flash.
        (true, 0xb2) => vec![0, if drive.spec.spins { 0 } else { 0x84 }, 0, 0],
        _ => return Err(Sense::INVALID_FIELD.into()),
    };
    let length = u16::try_from(body.len()).unwrap_or(0).to_be_bytes();
    Ok([&[0, page], &length[..], &body].concat())
}

fn standard(ata: bool) -> Vec<u8> {
    // SPC-4, response format 2, 91 bytes more; CMDQUE.
    let mut data = vec![0, 0, 6, 2, 91, 0, 0, 2];
    data.extend(padded(if ata { "ATA" } else { "ANNEAL" }, 8));
    data.extend(padded("Drive of the lab", 16));
    data.extend(b"0001");
    data.resize(96, 0);
    data
}

/// Block limits: transfers, UNMAP and WRITE SAME of at most 1 MiB, WRITE SAME of at least one block.
fn limits() -> Vec<u8> {
    let most = u32::try_from(super::MOST_BLOCKS).unwrap_or(0).to_be_bytes();
    let mut page = vec![0; 60];
    page[0] = 1;
    page[4..8].copy_from_slice(&most);
    page[16..20].copy_from_slice(&most);
    page[20..24].copy_from_slice(&64u32.to_be_bytes());
    page[32..40].copy_from_slice(&super::MOST_BLOCKS.to_be_bytes());
    page
}

/// A world wide name that follows from the serial number: NAA 5, an OUI that is not assigned.
pub(crate) fn name(drive: &Drive) -> u64 {
    let serial = drive
        .spec
        .serial
        .bytes()
        .fold(0u64, |sum, byte| (sum << 5 | sum >> 31) & 0xf_ffff_ffff ^ u64::from(byte));
    0x5000_a1e0_0000_0000 | serial & 0xffff_ffff
}

pub(crate) fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, b' ');
    bytes
}
