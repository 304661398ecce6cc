//! The EFI system partition of a disk, and the partitions that a disk has. Pure.

use crate::device_path::{HardDrive, Signature};
use image_writer::gpt::Gpt;
use image_writer::mbr::Mbr;

/// Type of an EFI system partition in an MBR.
const ESP: u8 = 0xef;

/// An EFI system partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Esp {
    /// As a boot entry names it.
    pub drive: HardDrive,
    /// First byte on the disk.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// The EFI system partition of a disk of `size` bytes that begins with `head`.
///
/// # Errors
/// When there is none, or no sound partition table.
pub fn find(head: &[u8], sector: usize, size: u64) -> Result<Esp, String> {
    let none = || "it has no EFI system partition".to_owned();
    let unit = sector as u64;
    if Gpt::is_at(head, sector) {
        let gpt = Gpt::parse(head, sector, size)?;
        let esp = gpt.partitions().into_iter().find(|partition| partition.esp).ok_or_else(none)?;
        let (start, sectors) = (esp.offset / unit, esp.length / unit);
        let drive = HardDrive { number: esp.number, start, sectors, signature: Signature::Gpt(esp.id) };
        return Ok(Esp { drive, offset: esp.offset, length: esp.length });
    }
    let mbr = Mbr::parse(head, sector)?;
    let esp = mbr.partitions().into_iter().find(|partition| partition.kind == ESP).ok_or_else(none)?;
    let signature = Signature::Mbr(mbr.id());
    let drive = HardDrive { number: esp.number, start: esp.first, sectors: esp.sectors, signature };
    let (offset, length) = (esp.first * unit, esp.sectors * unit);
    if esp.first == 0 || offset + length > size {
        return Err("its EFI system partition lies outside of it".to_owned());
    }
    Ok(Esp { drive, offset, length })
}

/// The GUIDs of the partitions of a disk; `last` is its last sector. None where there is no GPT.
///
/// # Errors
/// When there is, or was, a GPT that cannot be read: what it names may still be there.
pub fn partition_ids(head: &[u8], last: &[u8], sector: usize) -> Result<Vec<[u8; 16]>, String> {
    if Gpt::is_at(head, sector) {
        return Gpt::ids(head, sector);
    }
    if last.starts_with(b"EFI PART") || [512, 4096].iter().any(|&other| Gpt::is_at(head, other)) {
        return Err("its GPT cannot be read".to_owned());
    }
    Ok(Vec::new())
}
