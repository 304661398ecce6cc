//! The firmware of this machine finds the image that was written to a disk of it.

use agent_protocol::deployment::{BootEntries, RemovedEntry};
use block::{Filter, Roots};
use boot_entries::disk::{self, all_partitions};
use boot_entries::{Architecture, Disk, Efivars, install as install_entry};
use std::collections::BTreeSet;
use std::fs::File;

/// The machine.
pub struct Machine {
    /// Its disks.
    pub disks: Vec<block::Disk>,
    /// The firmware's variables.
    pub variables: Efivars,
    /// Storage that cannot be read.
    pub unattached: Vec<String>,
}

impl Machine {
    /// This one.
    ///
    /// # Errors
    /// When its disks cannot be listed.
    pub fn here() -> Result<Self, String> {
        let roots = Roots::default();
        let disks = block::list(&roots, &Filter::All)
            .map_err(|error| format!("the disks cannot be listed: {}", block::fault::chain(&error)))?;
        let unattached = block::unattached(&roots);
        Ok(Self { disks, variables: Efivars::below(&roots.sys), unattached })
    }
}

/// Makes what is on the disk `device` the first boot entry. What was done, for the result of the command.
///
/// # Errors
/// When the disk cannot be booted, or the firmware does not take the entry.
pub fn install(machine: &Machine, device: &str) -> Result<BootEntries, String> {
    let root = machine.disks.iter().find(|disk| disk.path.to_str() == Some(device));
    let written = root.ok_or_else(|| format!("{device}, to which the image was written, is gone"))?;
    let root = open(written)?;
    let architecture = Architecture::here().ok_or("no UEFI loaders are known for this kind of processor")?;
    let (option, loader) = disk::entry(&root, architecture)?;
    let partitions = partitions(machine);
    if let Err(problem) = &partitions {
        tracing::warn!(problem, "no boot entry is removed because its partition is gone");
    }
    let done = install_entry(&machine.variables, &option, partitions.as_ref().ok());
    let report = done.map_err(|error| format!("{device} is not made bootable: {error}"))?;
    let removed = |entry: &boot_entries::plan::Removal| RemovedEntry {
        number: format!("{:04X}", entry.number),
        label: entry.label.clone(),
        why: entry.why.as_str().to_owned(),
    };
    Ok(BootEntries {
        device: device.to_owned(),
        serial: written.serial.clone(),
        wwn: written.wwn.clone(),
        entry: report.entry,
        label: report.label,
        loader: loader.path,
        added: report.added,
        removed: report.removed.iter().map(removed).collect(),
        order: report.order,
        partitions_unknown: partitions.err(),
    })
}

/// The partitions of all disks.
///
/// # Errors
/// When there may be others.
fn partitions(machine: &Machine) -> Result<BTreeSet<[u8; 16]>, String> {
    if let Some(problem) = machine.unattached.first() {
        return Err(problem.clone());
    }
    let disks: Result<Vec<Disk>, String> = machine.disks.iter().map(open).collect();
    all_partitions(&disks?)
}

fn open(disk: &block::Disk) -> Result<Disk, String> {
    let name = disk.path.display().to_string();
    let file = File::open(&disk.path).map_err(|error| format!("{name} cannot be opened: {error}"))?;
    let sector = usize::try_from(disk.logical_block).map_err(|error| error.to_string())?;
    Ok(Disk { name, file, size: disk.size, sector })
}
