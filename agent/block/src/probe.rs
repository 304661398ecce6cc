//! What is read of a disk: signatures by libblkid, and the drive's own answers. Nothing is written.

use crate::ata;
use crate::capabilities;
use crate::disk::{Disk, Holder, HolderKind};
use crate::holders::{self, Map};
use crate::list::usable;
use crate::lvm;
use crate::mmc::{self, BootArea, Emmc};
use crate::nvme::Namespace;
use crate::nvme::log::Health;
use crate::opal::{self, Psid};
use crate::sanitize::State;
use crate::scsi;
use crate::signature::{PartitionType, Signature};
use crate::signatures::find;
use crate::sys;
use crate::transport::Transport;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A disk with what is on it and what it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// What sysfs says.
    pub disk: Disk,
    /// What libblkid recognises on the disk and in its partitions, by offset.
    pub signatures: Vec<Signature>,
    /// What the tables on the disk say its partitions are for.
    pub partition_types: Vec<PartitionType>,
    /// What an NVMe namespace can do.
    pub nvme: Option<Namespace>,
    /// What an ATA drive can do.
    pub ata: Option<ata::Capabilities>,
    /// What a SCSI disk can do.
    pub scsi: Option<scsi::Capabilities>,
    /// What the drive says of its health.
    pub health: Option<Health>,
    /// The LVM volume group on the disk that a cluster shares, if there is one.
    pub clustered: Option<String>,
    /// The multipath map that the disk is erased through, where there is a healthy one.
    pub map: Option<Map>,
    /// What is on the volumes built on the disk, lowest first.
    pub above: Vec<Layer>,
    /// Why the disk cannot be read, when it cannot; nothing else is known of it then.
    pub unreadable: Option<String>,
    /// The kernel can erase blocks securely (`BLKSECDISCARD`); asked of eMMC alone.
    pub secure_discard: bool,
    /// What an eMMC says.
    pub mmc: Option<Emmc>,
    /// The boot areas of an eMMC.
    pub boot_areas: Vec<BootArea>,
    /// What the kernel says of a TCG Opal drive.
    pub opal: Option<opal::Status>,
    /// The PSID of a TCG Opal drive, where the operator gave it; a disk never reports it.
    pub psid: Option<Psid>,
}

/// What is read of a volume built on the disk. The bytes may be on another disk of that volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// The volume, in words.
    pub what: String,
    /// As [`Probe::signatures`].
    pub signatures: Vec<Signature>,
    /// As [`Probe::partition_types`].
    pub partition_types: Vec<PartitionType>,
    /// As [`Probe::clustered`].
    pub clustered: Option<String>,
}

/// Why a disk could not be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It could not be opened for reading.
    #[error("cannot open {disk} for reading")]
    Open {
        /// The disk.
        disk: String,
        /// Why.
        source: io::Error,
    },
    /// libblkid failed, mostly because the disk cannot be read.
    #[error("cannot look for signatures on {disk}")]
    Signatures {
        /// The disk.
        disk: String,
        /// Why.
        source: io::Error,
    },
}

/// Read what is on a disk and ask its drive what it can do. Nothing is written.
///
/// # Errors
/// [`ProbeError`] when the disk cannot be opened or read. A drive that does not answer a question is no error: the
/// methods that depend on the answer are then not used.
pub fn probe(disk: &Disk) -> Result<Probe, ProbeError> {
    let file = File::open(&disk.path).map_err(|source| ProbeError::Open { disk: disk.describe(), source })?;
    let mut found = ask(&file, disk);
    found.map = holders::multipath(disk);
    if !found.gives_content() {
        return Ok(found);
    }
    let failed = |source| ProbeError::Signatures { disk: disk.describe(), source };
    let ranges = disk.partitions.iter().map(|partition| (partition.start, partition.size));
    let seen = find(&file, disk.size, disk.logical_block, ranges).map_err(failed)?;
    (found.signatures, found.partition_types) = (seen.signatures, seen.partition_types);
    found.clustered = clustered(&file, &found.signatures).map_err(failed)?;
    found.above = layers(disk);
    Ok(found)
}

/// Ask the drive of a disk what it can do. What it does not answer is logged, and left out.
pub fn ask(drive: &dyn Transport, disk: &Disk) -> Probe {
    let unanswered = |question: &str, error: String| {
        tracing::warn!(device = %disk.path.display(), question, error, "the drive does not answer");
    };
    let mut found = Probe { disk: disk.clone(), ..Probe::default() };
    if let Some(nsid) = disk.namespace {
        match capabilities::nvme(drive, nsid) {
            Ok(answer) => {
                if let Some((namespace, health)) = answer {
                    (found.nvme, found.health) = (Some(namespace), health);
                }
            }
            Err(error) => unanswered("NVMe Identify", error.to_string()),
        }
    } else if disk.hctl.is_some() && disk.transport.as_deref() != Some("usb") {
        if disk.ata {
            match capabilities::ata(drive) {
                Ok(answer) => found.ata = Some(answer),
                Err(error) => unanswered("ATA IDENTIFY DEVICE", error.to_string()),
            }
        }
        // A disk may look like an ATA one and be none (scsi_debug does).
        if found.ata.is_none() && disk.transport.as_deref() != Some("sata") {
            match capabilities::scsi(drive) {
                Ok(answer) => found.scsi = Some(answer),
                Err(error) => unanswered("SCSI", error.to_string()),
            }
        }
    } else if disk.transport.as_deref() == Some("mmc") {
        found.secure_discard = secure_discard(disk);
        if disk.emmc {
            match capabilities::mmc(drive) {
                Ok(answer) => found.mmc = answer,
                Err(error) => unanswered("SEND_EXT_CSD", error.to_string()),
            }
            found.boot_areas = mmc::boot_areas(disk);
        }
    }
    // Asked of what may be one; a kernel without Opal, and a drive without, answer alike.
    if disk.namespace.is_some() || disk.hctl.is_some() {
        found.opal = drive.opal_status().ok().filter(|status| status.supported);
    }
    found
}

/// What the volumes above a disk hold. Skipped are volumes without content (an array without enough members), suspended
/// ones, whose reads would block, and multipath maps, which only show their disk again.
fn layers(disk: &Disk) -> Vec<Layer> {
    let mut found: Vec<Layer> = Vec::new();
    for holder in disk.all_holders().into_iter().flat_map(Holder::with_all_above) {
        let what = holder.to_string();
        let silent = holder.size == 0 || holder.suspended || matches!(holder.kind, HolderKind::Multipath(_));
        if silent || found.iter().any(|layer| layer.what == what) {
            continue;
        }
        match layer(holder) {
            Ok(layer) => found.push(layer),
            Err(error) => {
                tracing::warn!(device = what, %error, "the volume cannot be read");
            }
        }
    }
    found
}

fn layer(holder: &Holder) -> io::Result<Layer> {
    let file = File::open(&holder.path)?;
    let sector = sys::blk::logical_block(&file)?;
    let size = usable(holder.size, sector);
    let seen = find(&file, size, sector, [])?;
    Ok(Layer {
        what: holder.to_string(),
        clustered: clustered(&file, &seen.signatures)?,
        partition_types: seen.partition_types,
        signatures: seen.signatures,
    })
}

impl Probe {
    /// Parts of the drive that no erase reaches, in words: of an eMMC its boot areas and the memory block that can only be
    /// written with its key.
    pub fn out_of_reach(&self) -> Vec<String> {
        let kib = |bytes: u64| bytes / 1024;
        let area = |area: &BootArea| {
            let holds = if area.blank { "which is blank" } else { "with its content" };
            format!("boot area {} of {} KiB, {holds}", area.name, kib(area.size))
        };
        let rpmb = self.mmc.map(|mmc| mmc.registers.rpmb_size).filter(|&size| size > 0);
        let rpmb = rpmb.map(|size| format!("replay protected memory block of {} KiB", kib(size)));
        self.boot_areas.iter().map(area).chain(rpmb).collect()
    }

    /// Whether what is read of the disk is what it holds: no sanitize operation is running or has failed, and the drive
    /// is not locked.
    pub fn gives_content(&self) -> bool {
        !self.is_sanitizing() && !self.is_locked()
    }

    /// Whether the drive is a locked TCG Opal one, or shows something else in the place of its content. Nothing that is
    /// read of it is believed.
    pub fn is_locked(&self) -> bool {
        self.opal.is_some_and(|opal| opal.hides_content())
    }

    /// Whether a sanitize operation is running or has failed: the drive then gives no content, and what was on it
    /// was judged when the operation began.
    pub fn is_sanitizing(&self) -> bool {
        let states = [
            self.nvme.and_then(|nvme| nvme.sanitize.state),
            self.ata.and_then(|ata| ata.sanitize.state),
            self.scsi.and_then(|scsi| scsi.sanitize.state),
        ];
        states.iter().any(|state| matches!(state, Some(State::Running(_) | State::Failed)))
    }
}

/// Whether the kernel would erase blocks securely. The question is a range that no kernel takes.
pub(crate) fn secure_discard(disk: &Disk) -> bool {
    let writable = std::fs::OpenOptions::new().write(true).open(&disk.path);
    writable.is_ok_and(|file| sys::blk::has_secure_discard(&file))
}

/// The first volume group that a cluster shares, among the physical volumes that were found.
fn clustered(file: &File, signatures: &[Signature]) -> io::Result<Option<String>> {
    for signature in signatures.iter().filter(|signature| signature.name == "LVM2_member") {
        let (start, size) = signature.range;
        let group = lvm::clustered(|offset, buffer| {
            let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= size);
            end.ok_or(io::ErrorKind::UnexpectedEof)?;
            file.read_exact_at(buffer, start + offset)
        });
        match group {
            Ok(None) => {}
            // A volume whose label points outside of it has no usable group.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            found => return found,
        }
    }
    Ok(None)
}
