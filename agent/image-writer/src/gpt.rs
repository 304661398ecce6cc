//! GUID partition tables (UEFI Specification 2.10, chapter 5): read, moved to the end of a larger disk, one more
//! partition. Pure; the bytes come from an image.
//!
//! Of our own and not the crate `gpt` or `gptman`: both read and write through a file by themselves, while here the
//! table is in memory until the image is verified, and both trust sizes in the header with memory.

use flate2::Crc;

/// First bytes of a header.
const SIGNATURE: &[u8] = b"EFI PART";
/// Bytes of the header that its checksum is over, in the only revision.
const HEADER: usize = 92;
/// Bytes of all entries that are taken at most, and entries of a table that has the usual size.
const ENTRIES_BYTES: usize = 128 << 10;
/// Type of a partition with a Linux file system, 0FC63DAF-8483-4772-8E79-3D69D8477DE4.
const LINUX: [u8; 16] =
    [0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4];
/// Type of the EFI system partition, C12A7328-F81F-11D2-BA4B-00A0C93EC93B.
const ESP: [u8; 16] =
    [0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b];

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpt {
    sector: usize,
    header: Vec<u8>,
    entries: Vec<u8>,
    entry: usize,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1.
    pub number: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Name in the table.
    pub name: String,
    /// Its own GUID, as it is stored.
    pub id: [u8; 16],
    /// Whether it is an EFI system partition.
    pub esp: bool,
}

/// Bytes that belong at a place of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// What they are.
    pub what: &'static str,
    /// First byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Gpt {
    /// Whether there is a header where a disk with such sectors has it.
    pub fn is_at(head: &[u8], sector: usize) -> bool {
        head.get(sector..sector + SIGNATURE.len()) == Some(SIGNATURE)
    }

    /// The table of an image of `size` bytes whose first MiB is `head`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(head: &[u8], sector: usize, size: u64) -> Result<Self, String> {
        Self::read(head, sector, true)?.checked(size)
    }

    /// The GUIDs of the partitions of a disk, whatever its checksums and places are: what another program would find.
    ///
    /// # Errors
    /// When the entries cannot be read.
    pub fn ids(head: &[u8], sector: usize) -> Result<Vec<[u8; 16]>, String> {
        let gpt = Self::read(head, sector, false)?;
        let used = gpt.entries.chunks_exact(gpt.entry).filter(|raw| raw[..16] != [0; 16]);
        Ok(used.filter_map(|raw| raw[16..32].try_into().ok()).collect())
    }

    /// For `tests/fuzz`: the same, whatever the checksums are, which random bytes do not find.
    ///
    /// # Errors
    /// What is wrong with it.
    #[doc(hidden)]
    pub fn parse_unsigned(head: &[u8], sector: usize, size: u64) -> Result<Self, String> {
        Self::read(head, sector, false)?.checked(size)
    }

    fn read(head: &[u8], sector: usize, signed: bool) -> Result<Self, String> {
        let header = head.get(sector..2 * sector).filter(|_| Self::is_at(head, sector));
        let header = header.ok_or("there is no GPT header")?.to_vec();
        if word(&header, 8) != 0x0001_0000 || word(&header, 12) as usize != HEADER {
            return Err("the GPT header has an unknown form".to_owned());
        }
        let mut plain = header[..HEADER].to_vec();
        plain[16..20].fill(0);
        if signed && crc(&plain) != word(&header, 16) {
            return Err("the checksum of the GPT header is wrong".to_owned());
        }
        let (count, entry) = (word(&header, 80) as usize, word(&header, 84) as usize);
        let bytes = count.checked_mul(entry).filter(|&bytes| bytes <= ENTRIES_BYTES && bytes > 0);
        let bytes = bytes.filter(|_| entry >= 128 && entry.is_power_of_two());
        let bytes = bytes.ok_or_else(|| format!("{count} GPT entries of {entry} bytes are not supported"))?;
        let place = usize::try_from(long(&header, 72)).ok().and_then(|lba| lba.checked_mul(sector));
        let place = place.filter(|&place| place >= 2 * sector).ok_or("the place of the GPT entries")?;
        let entries = place.checked_add(bytes).and_then(|end| head.get(place..end));
        let entries = entries.ok_or("the GPT entries lie beyond the first MiB")?.to_vec();
        if signed && crc(&entries) != word(&header, 88) {
            return Err("the checksum of the GPT entries is wrong".to_owned());
        }
        Ok(Gpt { sector, header, entries, entry })
    }

    fn checked(self, size: u64) -> Result<Self, String> {
        let (sector, mut last) = (self.sector as u64, None);
        if long(&self.header, 24) != 1 {
            return Err("the GPT header says that it is elsewhere".to_owned());
        }
        let mut all = Vec::new();
        for raw in self.entries.chunks_exact(self.entry).filter(|raw| raw[..16] != [0; 16]) {
            let (first, end) = (long(raw, 32), long(raw, 40));
            if first > end || first < long(&self.header, 40) || end >= size.div_ceil(sector) {
                return Err("a partition lies outside of the image".to_owned());
            }
            all.push((first, end));
        }
        if all.is_empty() {
            return Err("it has no partition".to_owned());
        }
        all.sort_unstable();
        for (first, end) in all {
            if last.is_some_and(|last| first <= last) {
                return Err("two partitions overlap".to_owned());
            }
            last = Some(end);
        }
        Ok(self)
    }

    /// The partitions, in the order of their numbers.
    pub fn partitions(&self) -> Vec<Partition> {
        let all = (1..).zip(self.entries.chunks_exact(self.entry));
        let used = all.filter(|(_, raw)| raw[..16] != [0; 16]);
        used.map(|(number, raw)| {
            let (first, last) = (long(raw, 32), long(raw, 40));
            let units = raw[56..128].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            let name: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
            let mut id = [0; 16];
            id.copy_from_slice(&raw[16..32]);
            Partition {
                number,
                offset: first * self.sector as u64,
                length: (last - first + 1) * self.sector as u64,
                name: String::from_utf16_lossy(&name),
                id,
                esp: raw[..16] == ESP,
            }
        })
        .collect()
    }

    /// Makes the table that of a disk of `size` bytes: its backup is at the end of it.
    ///
    /// # Errors
    /// When the disk is smaller than the table says.
    pub fn move_to(&mut self, size: u64) -> Result<(), String> {
        let (sector, entries) = (self.sector as u64, self.entries_sectors());
        let last = size / sector - 1;
        let usable = last.checked_sub(entries + 1).ok_or("the disk is too small for a GPT")?;
        let end = self.partitions().iter().map(|one| (one.offset + one.length) / sector - 1).max();
        if end.is_some_and(|end| end > usable) {
            return Err(
                "its last partition leaves no room for the backup GPT at the end of the disk".to_owned()
            );
        }
        put(&mut self.header, 32, last);
        put(&mut self.header, 48, usable);
        Ok(())
    }

    /// Adds a partition of `length` bytes, or somewhat more, at the end of the disk that the table was moved to.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add_at_end(&mut self, length: u64, name: &str, id: [u8; 16]) -> Result<Partition, String> {
        let sector = self.sector as u64;
        let last = long(&self.header, 48);
        // Begins at a whole MiB.
        let first = ((last + 1) * sector).saturating_sub(length) >> 20 << 20;
        let end = self.partitions().iter().map(|one| one.offset + one.length).max().unwrap_or(0);
        if first < end.max(1 << 20) {
            return Err(format!("there are no {} MiB behind the last partition", length >> 20));
        }
        let free = self.entries.chunks_exact(self.entry).position(|raw| raw[..16] == [0; 16]);
        let free = free.ok_or("the GPT has no free entry")?;
        let raw = &mut self.entries[free * self.entry..(free + 1) * self.entry];
        raw[..16].copy_from_slice(&LINUX);
        raw[16..32].copy_from_slice(&id);
        put(raw, 32, first / sector);
        put(raw, 40, last);
        raw[48..128].fill(0);
        for (place, unit) in raw[56..128].chunks_exact_mut(2).zip(name.encode_utf16()) {
            place.copy_from_slice(&unit.to_le_bytes());
        }
        let number = free + 1;
        let added = self.partitions().into_iter().find(|one| one.number as usize == number);
        added.ok_or_else(|| "the partition was not added".to_owned())
    }

    fn entries_sectors(&self) -> u64 {
        self.entries.len().div_ceil(self.sector) as u64
    }

    /// Both copies, with their checksums.
    pub fn patches(&self) -> Vec<Patch> {
        let sector = self.sector as u64;
        let last = long(&self.header, 32);
        let backup_entries = last - self.entries_sectors();
        let mut primary = self.header.clone();
        primary[88..92].copy_from_slice(&crc(&self.entries).to_le_bytes());
        let mut backup = primary.clone();
        put(&mut backup, 24, last);
        put(&mut backup, 32, 1);
        put(&mut backup, 72, backup_entries);
        [&mut primary, &mut backup].into_iter().for_each(|header| sign(header));
        let patch =
            |what, lba: u64, bytes: &[u8]| Patch { what, offset: lba * sector, bytes: bytes.to_vec() };
        vec![
            patch("backup GPT entries", backup_entries, &self.entries),
            patch("backup GPT header", last, &backup),
            patch("GPT entries", long(&self.header, 72), &self.entries),
            patch("GPT header", 1, &primary),
        ]
    }
}

fn sign(header: &mut [u8]) {
    header[16..20].fill(0);
    let sum = crc(&header[..HEADER]);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    const MIB: u64 = 1 << 20;

    /// A file of `size` bytes with a table that sgdisk made.
    fn image(size: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(size).expect("a size");
        let arguments = ["-n", "15:2048:+2M", "-t", "15:ef00", "-c", "15:EFI", "-n", "1:0:0", "-c", "1:root"];
        sgdisk(&arguments, file.path());
        file
    }

    fn sgdisk(arguments: &[&str], path: &std::path::Path) -> String {
        let done = Command::new("sgdisk")
            .args(arguments)
            .arg(path)
            .output()
            .expect("sgdisk runs (cargo xtask deps)");
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{arguments:?}: {text}");
        text
    }

    fn head(file: &tempfile::NamedTempFile) -> Vec<u8> {
        let mut bytes = std::fs::read(file.path()).expect("read");
        bytes.truncate(1 << 20);
        bytes
    }

    #[test]
    fn a_table_of_sgdisk_is_read_moved_and_added_to_and_sgdisk_finds_no_fault() {
        let file = image(20 * MIB);
        let mut gpt = Gpt::parse(&head(&file), 512, 20 * MIB).expect("a table");
        let names: Vec<_> =
            gpt.partitions().iter().map(|one| (one.number, one.name.clone(), one.esp)).collect();
        assert_eq!(names, [(1, "root".into(), false), (15, "EFI".into(), true)]);
        let size = 200 * MIB + 512;
        file.as_file().set_len(size).expect("a larger disk");
        gpt.move_to(size).expect("moved");
        let added = gpt.add_at_end(64 * MIB, "config-2", [7; 16]).expect("added");
        assert_eq!((added.number, added.offset % MIB), (2, 0));
        assert!(added.length >= 64 * MIB && added.length < 66 * MIB);
        for patch in gpt.patches() {
            use std::os::unix::fs::FileExt;
            file.as_file().write_all_at(&patch.bytes, patch.offset).expect(patch.what);
        }
        let verdict = sgdisk(&["-v"], file.path());
        assert!(verdict.contains("No problems found"), "{verdict}");
        let shown = sgdisk(&["-i", "2"], file.path());
        assert!(shown.contains("'config-2'") && shown.contains("Linux filesystem"), "{shown}");
        let again = Gpt::parse(&head(&file), 512, size).expect("our own");
        assert_eq!(again.partitions(), gpt.partitions());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let file = image(20 * MIB);
        let good = head(&file);
        for (at, expected) in
            [(512, "no GPT header"), (512 + 20, "checksum of the GPT header"), (1024, "entries is wrong")]
        {
            let mut bad = good.clone();
            bad[at] ^= 1;
            let problem = Gpt::parse(&bad, 512, 20 * MIB).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(Gpt::parse(&good, 512, 10 * MIB).expect_err("cut").contains("outside of the image"));
        assert!(Gpt::parse(&good, 4096, 20 * MIB).is_err());
        let mut gpt = Gpt::parse(&good, 512, 20 * MIB).expect("a table");
        assert!(gpt.move_to(19 * MIB).expect_err("small").contains("no room for the backup"));
        gpt.move_to(60 * MIB).expect("moved");
        assert!(gpt.add_at_end(64 * MIB, "config-2", [1; 16]).expect_err("small").contains("64 MiB"));
    }

    #[test]
    fn a_table_for_sectors_of_4096_bytes_is_kept_for_them() {
        let mut disk = vec![0; 1 << 20];
        let file = image(20 * MIB);
        let small = head(&file);
        // The same table at the places of such a disk.
        disk[4096..4096 + 512].copy_from_slice(&small[512..1024]);
        let entries = small[1024..1024 + 16384].to_vec();
        disk[8192..8192 + entries.len()].copy_from_slice(&entries);
        let mut gpt = Gpt::parse(&disk, 4096, 20 * MIB * 8).expect("a table");
        gpt.move_to(300 * MIB).expect("moved");
        let places: Vec<u64> = gpt.patches().iter().map(|patch| patch.offset).collect();
        let last = 300 * MIB - 4096;
        assert_eq!(places, [last - 16384, last, 8192, 4096]);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(changes in prop::collection::vec((512usize..2000, any::<u8>()), 0..6), fix: bool) {
            let mut bytes = vec![0; 40_000];
            bytes[512..520].copy_from_slice(SIGNATURE);
            bytes[512 + 8..512 + 16].copy_from_slice(&[0, 0, 1, 0, 92, 0, 0, 0]);
            put(&mut bytes, 512 + 24, 1);
            put(&mut bytes, 512 + 72, 2);
            bytes[512 + 80..512 + 88].copy_from_slice(&[4, 0, 0, 0, 128, 0, 0, 0]);
            bytes[1024] = 1;
            put(&mut bytes, 1024 + 32, 40);
            put(&mut bytes, 1024 + 40, 50);
            changes.iter().for_each(|&(at, byte)| bytes[at] = byte);
            if fix {
                let sum = crc(&bytes[1024..1024 + 512]);
                bytes[512 + 88..512 + 92].copy_from_slice(&sum.to_le_bytes());
                sign(&mut bytes[512..1024]);
            }
            if let Ok(mut gpt) = Gpt::parse(&bytes, 512, 1 << 20) {
                let _ = gpt.move_to(100 << 20).map(|()| gpt.add_at_end(64 << 20, "config-2", [1; 16]));
                prop_assert!(gpt.partitions().len() <= 1024);
            }
        }
    }
}
