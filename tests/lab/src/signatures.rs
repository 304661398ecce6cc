//! What an old system leaves on a disk besides data: a boot loader, partition tables, LVM and md labels.
//!
//! Written byte by byte, so that no tool and no loop device is needed; the tests have util-linux's `blkid`
//! judge them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::fill::SECTOR;

/// What the boot sector writes to the first serial port: seen, it proves that a node booted its disk.
pub const OLD_SYSTEM: &str = "OLD SYSTEM BOOTED";

/// Where the first partition begins, in sectors.
pub const PARTITION_START: u64 = 2048;

/// What the first partition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Data only.
    Data,
    /// An LVM2 physical volume.
    LvmPhysicalVolume,
    /// A member of an md RAID 1, metadata 1.2.
    MdMember,
    /// By its type alone: a VMFS datastore, which other hosts may be using.
    Vmfs,
}

/// Partition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// GUID partition table with its copy at the end (UEFI specification 2.10, chapter 5).
    Gpt,
    /// Master boot record.
    Mbr,
}

/// Puts a boot sector, a table with one partition, and the label of its content on an image file.
///
/// # Errors
/// When the file is smaller than 8 MiB or cannot be written.
pub fn write(file: &Path, table: Table, content: Content) -> Result<()> {
    let image = Image::open(file)?;
    let last = match table {
        Table::Gpt => image.gpt(content)?,
        Table::Mbr => image.mbr(content)?,
    };
    let sectors = last - PARTITION_START + 1;
    match content {
        Content::Data | Content::Vmfs => Ok(()),
        Content::LvmPhysicalVolume => image.lvm(PARTITION_START, sectors),
        Content::MdMember => image.md(PARTITION_START, sectors),
    }
}

/// Gives an image with a boot sector another text to say, at most 400 bytes.
///
/// # Errors
/// When the file cannot be written.
pub fn say(file: &Path, text: &str) -> Result<()> {
    let code = boot_code(text);
    ensure!(code.len() <= 440, "{text:?} does not fit before the partition table");
    let image = File::options().write(true).open(file);
    image
        .and_then(|image| image.write_all_at(&code, 0))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// What a BIOS starts of a boot sector: it writes the text to the first serial port.
fn boot_code(text: &str) -> Vec<u8> {
    // Without interrupts: SeaBIOS, which shows its screen on the same port, would write into the line at a tick.
    // cli; cld; xor ax,ax; mov ds,ax; mov si,text
    // next: lodsb; test al,al; jz stop; mov dx,0x3f8; out dx,al; jmp next
    // stop: hlt; jmp stop
    let code = [
        0xfa, 0xfc, 0x31, 0xc0, 0x8e, 0xd8, 0xbe, 0x17, 0x7c, 0xac, 0x84, 0xc0, 0x74, 0x06, 0xba, 0xf8, 0x03,
        0xee, 0xeb, 0xf5, 0xf4, 0xeb, 0xfd,
    ];
    [&code[..], format!("{text}\r\n\0").as_bytes()].concat()
}

struct Image {
    file: File,
    sectors: u64,
    name: String,
}

impl Image {
    fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::options().write(true).open(path).with_context(|| format!("cannot open {name}"))?;
        let sectors = file.metadata()?.len() / SECTOR as u64;
        ensure!(sectors >= 16384, "{name} is smaller than 8 MiB");
        Ok(Self { file, sectors, name })
    }

    fn put(&self, sector: u64, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, sector * SECTOR as u64)
            .with_context(|| format!("cannot write {} at sector {sector}", self.name))
    }

    /// A boot sector with one partition of this type.
    fn boot_sector(kind: u8, first: u64, sectors: u64) -> [u8; SECTOR] {
        let mut out = Bytes::<SECTOR>::new();
        out.at(0, &boot_code(OLD_SYSTEM));
        let clip = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        out.at(440, b"OLD!").at(446 + 4, &[kind]).at(446 + 8, &clip(first)).at(446 + 12, &clip(sectors));
        out.at(510, &[0x55, 0xaa]);
        out.0
    }

    fn mbr(&self, content: Content) -> Result<u64> {
        let kind = match content {
            Content::Data => 0x83,
            Content::LvmPhysicalVolume => 0x8e,
            Content::MdMember => 0xfd,
            Content::Vmfs => 0xfb,
        };
        let last = self.sectors - 1;
        self.put(0, &Self::boot_sector(kind, PARTITION_START, last - PARTITION_START + 1))?;
        Ok(last)
    }

    fn gpt(&self, content: Content) -> Result<u64> {
        const ENTRIES: usize = 128;
        const ENTRY: usize = 128;
        const TABLE: u64 = (ENTRIES * ENTRY / SECTOR) as u64;
        let end = self.sectors - 1;
        let last = end - TABLE - 1;
        // Type GUIDs, first three fields little-endian.
        let kind = match content {
            Content::Data => *b"\xaf\x3d\xc6\x0f\x83\x84\x72\x47\x8e\x79\x3d\x69\xd8\x47\x7d\xe4",
            Content::LvmPhysicalVolume => {
                *b"\x79\xd3\xd6\xe6\x07\xf5\xc2\x44\xa2\x3c\x23\x8f\x2a\x3d\xf9\x28"
            }
            Content::MdMember => *b"\x0f\x88\x9d\xa1\xfc\x05\x3b\x4d\xa0\x06\x74\x3f\x0f\x84\x91\x1e",
            Content::Vmfs => *b"\x2a\xe0\x31\xaa\x0f\x40\xdb\x11\x95\x90\x00\x0c\x29\x11\xd1\xb8",
        };
        let mut table = Bytes::<{ ENTRIES * ENTRY }>::new();
        table.at(0, &kind).at(16, b"old partition id");
        table.at(32, &PARTITION_START.to_le_bytes()).at(40, &last.to_le_bytes());
        for (index, unit) in "old data".encode_utf16().enumerate() {
            table.at(56 + 2 * index, &unit.to_le_bytes());
        }
        let header = |here: u64, other: u64, entries: u64| {
            let mut out = Bytes::<SECTOR>::new();
            out.at(0, b"EFI PART\0\0\x01\0").at(12, &92u32.to_le_bytes());
            out.at(24, &here.to_le_bytes()).at(32, &other.to_le_bytes());
            out.at(40, &(2 + TABLE).to_le_bytes()).at(48, &last.to_le_bytes());
            out.at(56, b"old disk's guid!").at(72, &entries.to_le_bytes());
            out.at(80, &128u32.to_le_bytes()).at(84, &128u32.to_le_bytes());
            out.at(88, &crc32(!0, &table.0, true).to_le_bytes());
            let sum = crc32(!0, &out.0[..92], true);
            out.at(16, &sum.to_le_bytes());
            out.0
        };
        self.put(0, &Self::boot_sector(0xee, 1, end))?;
        self.put(1, &header(1, end, 2))?;
        self.put(2, &table.0)?;
        self.put(end - TABLE, &table.0)?;
        self.put(end, &header(end, 1, end - TABLE))?;
        Ok(last)
    }

    /// An LVM2 physical volume without a group (LVM2 `lib/format_text/layout.h`, `lib/label/label.h`).
    fn lvm(&self, start: u64, sectors: u64) -> Result<()> {
        const CRC_SEED: u32 = 0xf597_a6cf;
        let mut label = Bytes::<SECTOR>::new();
        label.at(0, b"LABELONE").at(8, &1u64.to_le_bytes()).at(20, &32u32.to_le_bytes());
        label.at(24, b"LVM2 001").at(32, b"0123456789abcdefOLDphysicalVol01");
        label.at(64, &(sectors * SECTOR as u64).to_le_bytes());
        // One data area from 1 MiB on, a terminator; one metadata area, a terminator.
        label.at(72, &(1u64 << 20).to_le_bytes()).at(104, &4096u64.to_le_bytes());
        label.at(112, &((1u64 << 20) - 4096).to_le_bytes());
        let sum = crc32(CRC_SEED, &label.0[20..], false);
        label.at(16, &sum.to_le_bytes());
        self.put(start + 1, &label.0)?;

        let mut area = Bytes::<SECTOR>::new();
        area.at(4, b" LVM2 x[5A%r0N*>").at(20, &1u32.to_le_bytes()).at(24, &4096u64.to_le_bytes());
        area.at(32, &((1u64 << 20) - 4096).to_le_bytes());
        let sum = crc32(CRC_SEED, &area.0[4..], false);
        area.at(0, &sum.to_le_bytes());
        self.put(start + 8, &area.0)
    }

    /// A member of an md array (Linux `include/uapi/linux/raid/md_p.h`, `struct mdp_superblock_1`).
    fn md(&self, start: u64, sectors: u64) -> Result<()> {
        const DATA_OFFSET: u64 = 2048;
        const MAX_DEVICES: u32 = 2;
        let data = sectors - DATA_OFFSET;
        let mut out = Bytes::<SECTOR>::new();
        out.at(0, &0xa92b_4efc_u32.to_le_bytes()).at(4, &1u32.to_le_bytes());
        out.at(16, b"old array's uuid").at(32, b"oldhost:0").at(64, &1_700_000_000u64.to_le_bytes());
        out.at(72, &1u32.to_le_bytes()).at(80, &data.to_le_bytes()).at(92, &2u32.to_le_bytes());
        out.at(128, &DATA_OFFSET.to_le_bytes()).at(136, &data.to_le_bytes());
        out.at(144, &8u64.to_le_bytes()).at(168, b"old member's id!");
        out.at(192, &1_700_000_000u64.to_le_bytes()).at(200, &17u64.to_le_bytes());
        out.at(208, &u64::MAX.to_le_bytes()).at(220, &MAX_DEVICES.to_le_bytes());
        out.at(256, &0u16.to_le_bytes()).at(258, &1u16.to_le_bytes());
        let covered = 256 + 2 * MAX_DEVICES as usize;
        let words = out.0[..covered].chunks_exact(4);
        let sum: u64 = words.map(|w| u64::from(u32::from_le_bytes([w[0], w[1], w[2], w[3]]))).sum();
        let folded = (sum & 0xffff_ffff) + (sum >> 32);
        let folded = u32::try_from(folded & 0xffff_ffff)?;
        out.at(216, &folded.to_le_bytes());
        self.put(start + 8, &out.0)
    }
}

/// A block of zeroes to write fields into.
struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Bytes<N> {
    fn new() -> Self {
        Self([0; N])
    }

    fn at(&mut self, offset: usize, bytes: &[u8]) -> &mut Self {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }
}

/// CRC-32 with the reflected polynomial 0xedb88320; `invert` as in Ethernet and GPT, not as in LVM.
fn crc32(seed: u32, bytes: &[u8], invert: bool) -> u32 {
    let sum =
        bytes.iter().fold(seed, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
            })
        });
    if invert { !sum } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill;
    use std::process::Command;

    /// What `blkid` finds at a byte offset: its `TYPE` or `PTTYPE`.
    fn blkid(file: &Path, field: &str, offset: u64) -> String {
        let out = Command::new("blkid")
            .args(["--probe", "--output", "value", "--match-tag", field])
            .args(["--offset", &offset.to_string()])
            .arg(file)
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn image(table: Table, content: Content) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fill::fill(file.path(), "signatures", 16 << 20).unwrap();
        write(file.path(), table, content).unwrap();
        file
    }

    #[test]
    fn blkid_knows_the_labels() {
        let offset = PARTITION_START * 512;
        let file = image(Table::Gpt, Content::LvmPhysicalVolume);
        assert_eq!(blkid(file.path(), "PTTYPE", 0), "gpt");
        assert_eq!(blkid(file.path(), "TYPE", offset), "LVM2_member");
        let file = image(Table::Mbr, Content::MdMember);
        assert_eq!(blkid(file.path(), "PTTYPE", 0), "dos");
        assert_eq!(blkid(file.path(), "TYPE", offset), "linux_raid_member");
        let file = image(Table::Gpt, Content::Data);
        assert_eq!(blkid(file.path(), "TYPE", offset), "");
    }

    #[test]
    fn the_copy_of_the_table_is_good_too() {
        let file = image(Table::Gpt, Content::Data);
        File::options().write(true).open(file.path()).unwrap().write_all_at(&[0; 512], 512).unwrap();
        assert_eq!(blkid(file.path(), "PTTYPE", 0), "gpt");
    }

    #[test]
    fn a_file_too_small_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(write(file.path(), Table::Gpt, Content::Data).is_err());
    }

    #[test]
    fn crc_of_the_standard_check_string() {
        assert_eq!(crc32(!0, b"123456789", true), 0xcbf4_3926);
    }
}
