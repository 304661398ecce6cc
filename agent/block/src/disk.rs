//! What sysfs says about a whole disk.

use std::path::{Path, PathBuf};

/// A whole disk: something that holds data of its own. Never a dm or md device; those are [`Holder`]s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name, `sda`; not an identity, it may differ at the next boot.
    pub name: String,
    /// Device node, `/dev/sda`.
    pub path: PathBuf,
    /// Kernel names of further paths to the same disk (multipath without a multipath driver).
    pub other_paths: Vec<String>,
    /// Device number, `major:minor`.
    pub dev: (u32, u32),
    /// Number that no other disk of this boot had or will have; `None` before Linux 5.15.
    pub sequence: Option<u64>,
    /// Size in bytes, never 0, a multiple of `logical_block`.
    pub size: u64,
    /// Logical sector size in bytes: the smallest unit that can be addressed.
    pub logical_block: u32,
    /// Physical sector size in bytes: the smallest unit the medium writes.
    pub physical_block: u32,
    /// Whether the medium spins.
    pub rotational: bool,
    /// Whether the medium can be taken out (as the hardware says, not the content).
    pub removable: bool,
    /// Whether the kernel refuses writes.
    pub read_only: bool,
    /// How it is attached: `nvme`, `sata`, `sas`, `scsi`, `fc`, `iscsi`, `usb`, `virtio`, `mmc`, `loop`.
    pub transport: Option<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// Model; of an ATA disk the whole 40 characters of IDENTIFY where the kernel has them.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// World wide name as udev writes it: `0x5000c500a1b2c3d4`, `eui.…`, `nvme.…`.
    pub wwn: Option<String>,
    /// World wide name with its vendor extension (NAA 6), else the same as `wwn`.
    pub wwn_with_extension: Option<String>,
    /// Vendor extension of the world wide name, `0x…`.
    pub wwn_vendor_extension: Option<String>,
    /// SCSI address `host:channel:target:lun`.
    pub hctl: Option<String>,
    /// It is an ATA drive, which takes ATA commands through SCSI ones.
    pub ata: bool,
    /// It is an eMMC, and not a card that can be taken out.
    pub emmc: bool,
    /// It is a volume that a RAID controller makes of other disks.
    pub raid_volume: bool,
    /// NVMe namespace id.
    pub namespace: Option<u32>,
    /// Largest hardware-offloaded write of zeroes in bytes; 0 when there is none.
    pub write_zeroes_max: u64,
    /// Largest discard in bytes; 0 when the disk cannot discard.
    pub discard_max: u64,
    /// Whether discarded sectors read as zeroes by SCSI LBPRZ (SBC-4, VPD B2h) or ATA RZAT (ACS-4, IDENTIFY
    /// word 69). An NVMe namespace says it in its identify data instead.
    pub discard_reads_zero: bool,
    /// Partitions as the kernel has them.
    pub partitions: Vec<Partition>,
    /// What is built on the whole disk.
    pub holders: Vec<Holder>,
    /// Where the whole disk is mounted.
    pub mounts: Vec<PathBuf>,
    /// Whether the whole disk is swap in use.
    pub swap: bool,
}

/// A partition as the kernel has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partition {
    /// Kernel name, `sda1`.
    pub name: String,
    /// Number in the table.
    pub number: u32,
    /// First byte, from the beginning of the disk.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// What is built on it.
    pub holders: Vec<Holder>,
    /// Where it is mounted.
    pub mounts: Vec<PathBuf>,
    /// Whether it is swap in use.
    pub swap: bool,
}

/// An active device built on a disk or partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// Kernel name, `dm-0`.
    pub name: String,
    /// What it is, with its own name.
    pub kind: HolderKind,
    /// Device node, `/dev/dm-0`.
    pub path: PathBuf,
    /// Device number, `major:minor`.
    pub dev: (u32, u32),
    /// Size in bytes; 0 for one that is not running.
    pub size: u64,
    /// Whether nothing can be read from it until it is resumed.
    pub suspended: bool,
    /// Kernel names of the whole devices that it is built on, those of other disks included.
    pub below: Vec<String>,
    /// Where it is mounted.
    pub mounts: Vec<PathBuf>,
    /// Whether it is swap in use.
    pub swap: bool,
    /// What is built on it in turn.
    pub holders: Vec<Holder>,
}

/// Kind of a [`Holder`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HolderKind {
    /// MD array, with its level (`raid1`); `inactive` for one that does not run, which may be a container.
    Md(String),
    /// LVM logical volume, with its name (`vg0-root`).
    Lvm(String),
    /// Map of several paths to the disk, with its name.
    Multipath(String),
    /// Other device-mapper device, with its name.
    DeviceMapper(String),
    /// Disk with a cache.
    Bcache,
    /// Partition of another holder (`md127p1`), gone with it.
    Partition,
    /// Anything else.
    #[default]
    Other,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            HolderKind::Md(level) => write!(f, "md array {} ({level})", self.name),
            HolderKind::Lvm(name) => write!(f, "LVM volume {name} ({})", self.name),
            HolderKind::DeviceMapper(name) => write!(f, "device-mapper device {name} ({})", self.name),
            HolderKind::Multipath(name) => write!(f, "multipath map {name} ({})", self.name),
            HolderKind::Partition => write!(f, "partition {}", self.name),
            HolderKind::Bcache => write!(f, "bcache device {}", self.name),
            HolderKind::Other => write!(f, "device {}", self.name),
        }
    }
}

impl Disk {
    /// The disk for an operator: `/dev/sda (serial S1)`.
    pub fn describe(&self) -> String {
        match &self.serial {
            Some(serial) => format!("{} (serial {serial})", self.path.display()),
            None => format!("{} (no serial)", self.path.display()),
        }
    }

    /// All mount points of the disk, its partitions and everything built on them, each with the kernel name
    /// of what is mounted.
    pub fn all_mounts(&self) -> Vec<(String, PathBuf)> {
        let mut found = own(&self.name, &self.mounts);
        self.holders.iter().for_each(|holder| holder.collect_mounts(&mut found));
        for partition in &self.partitions {
            found.extend(own(&partition.name, &partition.mounts));
            partition.holders.iter().for_each(|holder| holder.collect_mounts(&mut found));
        }
        found
    }

    /// Kernel names of everything on this disk that is swap in use.
    pub fn all_swap(&self) -> Vec<String> {
        let mut found: Vec<String> = self.swap.then(|| self.name.clone()).into_iter().collect();
        self.holders.iter().for_each(|holder| holder.collect_swap(&mut found));
        for partition in &self.partitions {
            found.extend(partition.swap.then(|| partition.name.clone()));
            partition.holders.iter().for_each(|holder| holder.collect_swap(&mut found));
        }
        found
    }

    /// Everything built directly on the disk or one of its partitions.
    pub fn all_holders(&self) -> Vec<&Holder> {
        self.holders.iter().chain(self.partitions.iter().flat_map(|partition| &partition.holders)).collect()
    }
}

impl Holder {
    /// It and everything built on it, each as often as it is met.
    pub fn with_all_above(&self) -> Vec<&Holder> {
        let above = self.holders.iter().flat_map(Holder::with_all_above);
        std::iter::once(self).chain(above).collect()
    }

    fn collect_mounts(&self, found: &mut Vec<(String, PathBuf)>) {
        found.extend(own(&self.name, &self.mounts));
        self.holders.iter().for_each(|holder| holder.collect_mounts(found));
    }

    fn collect_swap(&self, found: &mut Vec<String>) {
        found.extend(self.swap.then(|| self.name.clone()));
        self.holders.iter().for_each(|holder| holder.collect_swap(found));
    }
}

fn own(name: &str, mounts: &[PathBuf]) -> Vec<(String, PathBuf)> {
    mounts.iter().map(|mount: &PathBuf| (name.to_owned(), Path::to_path_buf(mount))).collect()
}
