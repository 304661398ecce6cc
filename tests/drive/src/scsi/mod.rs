//! The SCSI side: SPC-6, SBC-4, and SAT-4 where the drive is SATA.

mod inquiry;
mod report;

pub(crate) use inquiry::{name, padded};

use crate::ata;
use crate::drive::{Drive, Refusal, SECTOR};
use crate::sense::Sense;
use crate::spec::Kind;
use crate::work::Operation;

/// Blocks of one transfer at most, as page B0h says.
const MOST_BLOCKS: u64 = 2048;

/// Run a command whose CDB was padded to 16 bytes; the data for the host.
pub(crate) fn execute(drive: &mut Drive, cdb: &[u8; 16], out: &[u8]) -> Result<Vec<u8>, Refusal> {
    let be16 = |at: usize| u64::from(u16::from_be_bytes([cdb[at], cdb[at + 1]]));
    let be32 = |at: usize| u64::from(u32::from_be_bytes([cdb[at], cdb[at + 1], cdb[at + 2], cdb[at + 3]]));
    let be64 = |at: usize| be32(at) << 32 | be32(at + 4);
    let nothing = Ok(Vec::new());
    match cdb[0] {
        // TEST UNIT READY. START STOP UNIT and PREVENT ALLOW MEDIUM REMOVAL have nothing to do.
        0x00 => drive.ready().map(|()| Vec::new()).map_err(Refusal::from),
        0x1b | 0x1e => nothing,
        0x03 => {
            let sense = drive.ready().err().unwrap_or(Sense::NONE);
            let bytes = if cdb[1] & 1 == 0 { sense.fixed() } else { sense.with_descriptor(&[]) };
            Ok(cut(bytes, cdb[4].into()))
        }
        0x12 => inquiry::inquiry(drive, cdb[1] & 1 != 0, cdb[2]).map(|data| cut(data, be16(3))),
        0x1a => Ok(cut(report::mode_sense_6(cdb[2] & 0x3f), cdb[4].into())),
        0x5a => Ok(cut(report::mode_sense_10(cdb[2] & 0x3f), be16(7))),
        0x25 => Ok(report::capacity_10(drive)),
        0x9e if cdb[1] & 0x1f == 0x10 => Ok(cut(report::capacity_16(drive), be32(10))),
        0xa3 if cdb[1] & 0x1f == 0x0c => Ok(cut(report::operation(drive, cdb), be32(6))),
        0x5e if drive.spec.kind == Kind::Scsi => {
            report::reservations(drive, cdb[1] & 0x1f).map(|data| cut(data, be16(7)))
        }
        0x5f if drive.spec.reserved => Err(Refusal::Reserved),
        // READ (6), (10), (12), (16)
        0x08 => read(drive, be32(0) & 0x1f_ffff, six(cdb[4])),
        0x28 => read(drive, be32(2), be16(7)),
        0xa8 => read(drive, be32(2), be32(6)),
        0x88 => read(drive, be64(2), be32(10)),
        // WRITE (6), (10), (12), (16)
        0x0a => write(drive, be32(0) & 0x1f_ffff, six(cdb[4]), out),
        0x2a => write(drive, be32(2), be16(7), out),
        0xaa => write(drive, be32(2), be32(6), out),
        0x8a => write(drive, be64(2), be32(10), out),
        // VERIFY (10), (16) without comparing, SYNCHRONIZE CACHE (10), (16).
        0x2f if cdb[1] & 6 == 0 => place(drive, be32(2), be16(7)).map(|_| Vec::new()),
        0x8f if cdb[1] & 6 == 0 => place(drive, be64(2), be32(10)).map(|_| Vec::new()),
        0x35 | 0x91 => drive.ready().map(|()| Vec::new()).map_err(Refusal::from),
        // WRITE SAME (10), (16), UNMAP.
        0x41 => write_same(drive, be32(2), be16(7), out),
        0x93 => write_same(drive, be64(2), be32(10), out),
        0x42 => unmap(drive, out),
        0x04 if drive.spec.kind == Kind::Scsi && drive.spec.format => format(drive, cdb, out),
        0x48 if drive.spec.kind == Kind::Scsi => sanitize(drive, cdb, out),
        0x85 | 0xa1 if drive.spec.kind == Kind::Ata => ata::pass_through::execute(drive, cdb, out),
        _ => Err(Sense::INVALID_OPERATION.into()),
    }
}

fn cut(mut data: Vec<u8>, allocation: u64) -> Vec<u8> {
    data.truncate(usize::try_from(allocation).unwrap_or(usize::MAX));
    data
}

/// A transfer length of 0 is 256 in the commands of six bytes.
fn six(length: u8) -> u64 {
    if length == 0 { 256 } else { length.into() }
}

/// Where blocks are, when they can be had.
fn place(drive: &Drive, lba: u64, blocks: u64) -> Result<u64, Refusal> {
    drive.open()?;
    match lba.checked_add(blocks) {
        Some(end) if end <= drive.sectors() => Ok(lba * SECTOR),
        _ => Err(Sense::OUT_OF_RANGE.into()),
    }
}

/// As [`place`], for a host that may write.
fn writable(drive: &Drive, lba: u64, blocks: u64) -> Result<u64, Refusal> {
    if drive.spec.reserved { Err(Refusal::Reserved) } else { place(drive, lba, blocks) }
}

fn read(drive: &mut Drive, lba: u64, blocks: u64) -> Result<Vec<u8>, Refusal> {
    if blocks > MOST_BLOCKS {
        return Err(Sense::INVALID_FIELD.into());
    }
    let offset = place(drive, lba, blocks)?;
    let mut data = vec![0; usize::try_from(blocks * SECTOR).unwrap_or(0)];
    drive.medium.read(offset, &mut data);
    Ok(data)
}

fn write(drive: &mut Drive, lba: u64, blocks: u64, out: &[u8]) -> Result<Vec<u8>, Refusal> {
    let offset = writable(drive, lba, blocks)?;
    let data = usize::try_from(blocks * SECTOR).ok().and_then(|length| out.get(..length));
    drive.medium.write(offset, data.ok_or(Sense::INVALID_FIELD)?);
    Ok(Vec::new())
}

fn write_same(drive: &mut Drive, lba: u64, blocks: u64, out: &[u8]) -> Result<Vec<u8>, Refusal> {
    // "All the rest" is not promised (WSNZ of page B0h).
    if blocks == 0 {
        return Err(Sense::INVALID_FIELD.into());
    }
    let offset = writable(drive, lba, blocks)?;
    let block = out.get(..512).ok_or(Sense::INVALID_FIELD)?;
    for index in 0..blocks {
        drive.medium.write(offset + index * SECTOR, block);
    }
    Ok(Vec::new())
}

/// UNMAP (SBC-4 5.34): descriptors of 16 bytes behind a header of 8. What is unmapped reads as zeroes (LBPRZ).
fn unmap(drive: &mut Drive, out: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Some((head, list)) = out.split_at_checked(8) else { return Ok(Vec::new()) };
    let length = usize::from(u16::from_be_bytes([head[2], head[3]])).min(list.len());
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    for descriptor in list[..length].chunks_exact(16) {
        let (lba, blocks) = (number(&descriptor[..8]), number(&descriptor[8..12]));
        let offset = writable(drive, lba, blocks)?;
        Operation::Block.apply(&*drive.medium, offset..offset + blocks * SECTOR);
    }
    Ok(Vec::new())
}

/// FORMAT UNIT (SBC-4 5.4) with a parameter list that asks to be answered at once.
fn format(drive: &mut Drive, cdb: &[u8; 16], out: &[u8]) -> Result<Vec<u8>, Refusal> {
    if drive.spec.reserved {
        return Err(Refusal::Reserved);
    }
    if drive.progress().is_some() {
        drive.ready()?;
    }
    const FORMAT_DATA: u8 = 0x10;
    const IMMEDIATE: u8 = 0x02;
    if cdb[1] & FORMAT_DATA == 0 || out.get(1).is_none_or(|flags| flags & IMMEDIATE == 0) {
        return Err(Sense::INVALID_PARAMETER.into());
    }
    drive.begin_ours(Operation::Format);
    Ok(Vec::new())
}

/// SANITIZE (SBC-4 5.30).
fn sanitize(drive: &mut Drive, cdb: &[u8; 16], out: &[u8]) -> Result<Vec<u8>, Refusal> {
    if drive.spec.reserved {
        return Err(Refusal::Reserved);
    }
    if drive.progress().is_some() {
        drive.ready()?;
    }
    let parameters = usize::from(u16::from_be_bytes([cdb[7], cdb[8]]));
    let operation = match cdb[1] & 0x1f {
        0x01 if drive.spec.overwrite => {
            // Byte 0 bits 4:0 passes, bytes 2:3 length of the pattern.
            let &[passes, _, high, low, ref pattern @ ..] =
                out.get(..parameters).ok_or(Sense::INVALID_FIELD)?
            else {
                return Err(Sense::INVALID_PARAMETER.into());
            };
            let length = usize::from(u16::from_be_bytes([high, low]));
            let pattern: Option<[u8; 4]> =
                pattern.try_into().ok().filter(|_| length == 4 && passes & 0x1f != 0);
            Operation::Overwrite(pattern.ok_or(Sense::INVALID_PARAMETER)?)
        }
        0x02 if drive.spec.block && parameters == 0 => Operation::Block,
        0x03 if drive.spec.crypto && parameters == 0 => Operation::Crypto,
        // EXIT FAILURE MODE: only after an operation in unrestricted completion mode, which none here is.
        _ => return Err(Sense::INVALID_FIELD.into()),
    };
    const IMMEDIATE: u8 = 0x80;
    if cdb[1] & IMMEDIATE == 0 {
        return Err(Sense::INVALID_FIELD.into());
    }
    drive.begin_ours(operation);
    Ok(Vec::new())
}
