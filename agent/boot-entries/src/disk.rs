//! A disk that is only read.

use crate::device_path;
use crate::esp::{self, Esp};
use crate::fat::{Fat, Source};
use crate::load_option::LoadOption;
use crate::loader::{self, Architecture, Loader};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a partition table is looked for in.
const HEAD: u64 = 1 << 20;

/// A disk.
#[derive(Debug)]
pub struct Disk {
    /// As an error names it.
    pub name: String,
    /// Its content.
    pub file: File,
    /// Bytes.
    pub size: u64,
    /// Bytes of a sector.
    pub sector: usize,
}

/// A part of a disk.
struct Part<'a> {
    disk: &'a Disk,
    offset: u64,
    length: u64,
}

impl Source for Part<'_> {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= self.length);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.disk.file.read_exact_at(bytes, self.offset + offset)
    }
}

impl Disk {
    fn bytes(&self, offset: u64, length: u64) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; usize::try_from(length).map_err(|error| error.to_string())?];
        let read = self.file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| format!("{} cannot be read: {error}", self.name))?;
        Ok(bytes)
    }

    fn head(&self) -> Result<Vec<u8>, String> {
        self.bytes(0, HEAD.min(self.size))
    }

    /// Its EFI system partition.
    ///
    /// # Errors
    /// When it has none.
    pub fn esp(&self) -> Result<Esp, String> {
        let esp = esp::find(&self.head()?, self.sector, self.size);
        esp.map_err(|problem| format!("{} cannot be booted by UEFI: {problem}", self.name))
    }

    /// What its EFI system partition brings.
    ///
    /// # Errors
    /// When nothing on it can be booted.
    pub fn loader(&self, esp: &Esp, architecture: Architecture) -> Result<Loader, String> {
        let part = Part { disk: self, offset: esp.offset, length: esp.length };
        let found = Fat::open(&part, esp.length).map_err(loader::LoaderError::from);
        let found = found.and_then(|fat| loader::find(&fat, architecture));
        found.map_err(|error| {
            let number = esp.drive.number;
            format!("the EFI system partition (number {number}) of {} cannot be booted: {error}", self.name)
        })
    }

    /// The GUIDs of its partitions.
    ///
    /// # Errors
    /// When they cannot be known.
    pub fn partition_ids(&self) -> Result<Vec<[u8; 16]>, String> {
        let unit = self.sector as u64;
        let last = self.bytes(self.size.saturating_sub(unit), unit.min(self.size))?;
        esp::partition_ids(&self.head()?, &last, self.sector)
            .map_err(|problem| format!("{}: {problem}", self.name))
    }
}

/// The partitions of all disks of a machine.
///
/// # Errors
/// When those of one cannot be known.
pub fn all_partitions(disks: &[Disk]) -> Result<BTreeSet<[u8; 16]>, String> {
    let mut all = BTreeSet::new();
    for disk in disks {
        all.extend(disk.partition_ids()?);
    }
    Ok(all)
}

/// The entry for what the disk's EFI system partition brings, and its loader.
///
/// # Errors
/// When nothing on it can be booted.
pub fn entry(disk: &Disk, architecture: Architecture) -> Result<(LoadOption, Loader), String> {
    let esp = disk.esp()?;
    let loader = disk.loader(&esp, architecture)?;
    let path = device_path::file_on(&esp.drive, &loader.path);
    let path = path.ok_or_else(|| format!("the path of the loader on {} is too long", disk.name))?;
    let data = loader.options.encode_utf16().flat_map(u16::to_le_bytes).collect();
    Ok((LoadOption { active: true, description: loader.label.clone(), path, data }, loader))
}
