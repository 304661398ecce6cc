//! What a manifest asks for, as devices of this machine.
//!
//! - A claim of kind `block` grants the disks of the inventory that are like its patterns: their nodes, writable, and
//!   for commands below the file system the generic SCSI node (`sg3`) or the NVMe controller's (`nvme0`).
//! - A claim of kind `pci` or `dmi` grants `/sys`, read-only: nothing there is writable or says more than `lspci` and
//!   `dmidecode` would.

use agent_protocol::inventory::Disk;
use bundle::Manifest;
use hwm_sdk::protocol::ClaimKind;
use sandbox::{DeviceNode, Grants, NodeKind};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The disks of the inventory that the manifest grants. Pure.
pub(super) fn disks<'a>(manifest: &Manifest, disks: &'a [Disk]) -> Vec<&'a Disk> {
    let granted = |disk: &&Disk| manifest.grants.devices.iter().any(|claim| claim.covers_disk(disk));
    disks.iter().filter(granted).collect()
}

/// Everything that the manifest grants on a machine with these disks. A node that is not there is left out.
pub(super) fn grants(manifest: &Manifest, all: &[Disk], fetched: Option<PathBuf>) -> Grants {
    let mut devices = Vec::new();
    for disk in disks(manifest, all) {
        devices.extend(node(Path::new(&disk.name)));
        let name = disk.name.trim_start_matches("/dev/");
        devices.extend(companion(Path::new("/sys/class/block").join(name).as_path()));
    }
    // The namespaces of one NVMe controller share its node.
    let mut names = BTreeSet::new();
    devices.retain(|device: &DeviceNode| names.insert(device.name.clone()));
    let asks = &manifest.grants;
    Grants {
        devices,
        network: asks.network,
        sysfs: asks.devices.iter().any(|claim| matches!(claim.kind, ClaimKind::Pci | ClaimKind::Dmi)),
        fetched,
        // A tmpfs of size 0 is one without a bound.
        scratch_mib: asks.scratch_mib.max(1),
        memory_mib: asks.memory_mib,
        pids: asks.pids,
    }
}

fn node(path: &Path) -> Option<DeviceNode> {
    let metadata = fs::metadata(path).ok()?;
    let kind = if metadata.file_type().is_block_device() {
        NodeKind::Block
    } else if metadata.file_type().is_char_device() {
        NodeKind::Character
    } else {
        return None;
    };
    Some(DeviceNode {
        name: path.strip_prefix("/dev").ok()?.to_str()?.to_owned(),
        kind,
        major: u32::try_from(nix::sys::stat::major(metadata.rdev())).ok()?,
        minor: u32::try_from(nix::sys::stat::minor(metadata.rdev())).ok()?,
        writable: true,
    })
}

/// The character device through which a disk takes commands.
fn companion(disk: &Path) -> Option<DeviceNode> {
    let generic = fs::read_dir(disk.join("device/scsi_generic")).ok();
    let name = match generic.and_then(|mut entries| entries.next()) {
        Some(entry) => entry.ok()?.file_name(),
        // Only an NVMe controller has a device number of its own there.
        None => {
            fs::metadata(disk.join("device/dev")).ok()?;
            fs::canonicalize(disk.join("device")).ok()?.file_name()?.to_owned()
        }
    };
    node(&Path::new("/dev").join(name))
}
