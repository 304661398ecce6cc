//! Which whole disks there are: sysfs alone, no udev, nothing opened.

use crate::ata::Identify;
use crate::disk::{Disk, Holder, HolderKind, Partition};
use crate::identity::{self, Wwn};
use crate::mounts::{InUse, parse_dev};
use crate::raid_volume;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel's file systems are; elsewhere in tests only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// sysfs.
    pub sys: PathBuf,
    /// procfs.
    pub proc: PathBuf,
    /// Device nodes.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

/// Which disks exist for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Every disk of the machine, without loop devices: for the ramdisk.
    All,
    /// These device nodes alone (links are followed), loop devices included: for everywhere else.
    Only(Vec<PathBuf>),
}

/// Why the disks could not be listed. The caller must not take it for "no disks".
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A file of sysfs or procfs that must be there could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of sysfs has content that is not understood.
    #[error("{} holds {content:?}, which is not {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it holds.
        content: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A device of [`Filter::Only`] is not a whole disk of this machine.
    #[error("{} is not a whole disk that can be used (absent, empty, a partition, or of a kind that is never erased)", .0.display())]
    NotADisk(PathBuf),
}

/// List the whole disks that `filter` lets exist, ordered by name as people order them (`sdb` before `sdaa`).
///
/// Left out are ram, zram and floppy devices, CD-ROMs, eMMC boot areas (firmware, not data), the hidden path
/// devices of NVMe multipath, and everything of size 0; dm and md devices appear as holders of their disks.
/// Several paths to one disk (same world wide name, serial, model and size) are listed once.
///
/// # Errors
/// [`ListError`] when sysfs or procfs cannot be read, or a device of [`Filter::Only`] is not among the disks.
pub fn list(roots: &Roots, filter: &Filter) -> Result<Vec<Disk>, ListError> {
    let read = |path: PathBuf| fs::read(&path).map_err(|source| ListError::Read { path, source });
    // A kernel without swap has no /proc/swaps.
    let swaps = fs::read(roots.proc.join("swaps")).unwrap_or_default();
    let in_use = InUse::parse(&read(roots.proc.join("self/mountinfo"))?, &swaps);
    let listing = Listing { roots, in_use };

    let wanted = wanted_names(roots, filter)?;
    let block = roots.sys.join("block");
    let entries = fs::read_dir(&block).map_err(|source| ListError::Read { path: block.clone(), source })?;
    let mut disks = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| ListError::Read { path: block.clone(), source })?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let explicit = match &wanted {
            None => false,
            Some(wanted) if wanted.contains_key(&name) => true,
            Some(_) => continue,
        };
        if !is_disk_name(&name, explicit) {
            continue;
        }
        match listing.disk(&name) {
            Ok(Some(disk)) => disks.push(disk),
            Ok(None) => {}
            // Unplugged while it was being read: it is no longer there, which is the answer.
            Err(_) if !entry.path().exists() => {}
            Err(error) => return Err(error),
        }
    }
    disks.sort_by_key(|disk| order(&disk.name));
    if let Some(wanted) = wanted {
        if let Some((_, path)) = wanted.iter().find(|(name, _)| !disks.iter().any(|disk| disk.name == **name))
        {
            return Err(ListError::NotADisk(path.clone()));
        }
        return Ok(disks);
    }
    Ok(merge_paths(disks))
}

/// Kernel names of the devices in the filter.
fn wanted_names(roots: &Roots, filter: &Filter) -> Result<Option<BTreeMap<String, PathBuf>>, ListError> {
    let Filter::Only(paths) = filter else { return Ok(None) };
    let mut names = BTreeMap::new();
    for path in paths {
        let node = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = node
            .strip_prefix(&roots.dev)
            .ok()
            .map(|name| name.to_string_lossy().replace('/', "!"))
            .filter(|name| !name.is_empty())
            .ok_or_else(|| ListError::NotADisk(path.clone()))?;
        names.insert(name, path.clone());
    }
    Ok(Some(names))
}

fn is_disk_name(name: &str, explicit: bool) -> bool {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let never = ["ram", "zram", "fd", "sr", "dm-", "md", "md_d"].iter().any(|prefix| numbered(prefix))
        || name.starts_with("md_")
        || (name.starts_with("mmcblk") && (name.contains("boot") || name.contains("rpmb")));
    !never && (explicit || !numbered("loop"))
}

/// `sda`, `sdb`, `sdaa`: prefix, then length, then letters; numbers by value.
fn order(name: &str) -> (usize, String) {
    let width = if name.starts_with("sd") || name.starts_with("vd") { name.len() } else { 0 };
    let padded = name
        .split_inclusive(|c: char| !c.is_ascii_digit())
        .map(|part| {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            format!("{digits:0>8}{}", &part[digits.len()..])
        })
        .collect();
    (width, padded)
}

/// Fold further paths to a disk into its first one. Everything that could distinguish two disks must agree.
fn merge_paths(disks: Vec<Disk>) -> Vec<Disk> {
    let mut merged: Vec<Disk> = Vec::new();
    for disk in disks {
        let same = merged.iter_mut().find(|first| {
            disk.wwn_with_extension.is_some()
                && disk.serial.is_some()
                && first.wwn_with_extension == disk.wwn_with_extension
                && first.serial == disk.serial
                && first.model == disk.model
                && first.size == disk.size
                && first.namespace == disk.namespace
        });
        match same {
            Some(first) => {
                // In use or read-only over one path is in use over all.
                first.read_only |= disk.read_only;
                first.swap |= !disk.all_swap().is_empty();
                first.mounts.extend(disk.mounts);
                first.holders.extend(disk.holders);
                first.holders.extend(disk.partitions.iter().flat_map(|p| p.holders.clone()));
                first.mounts.extend(disk.partitions.into_iter().flat_map(|p| p.mounts));
                first.other_paths.push(disk.name);
            }
            None => merged.push(disk),
        }
    }
    merged
}

struct Listing<'a> {
    roots: &'a Roots,
    in_use: InUse,
}

impl Listing<'_> {
    /// One disk, or `None` for what is not to be listed after all.
    fn disk(&self, name: &str) -> Result<Option<Disk>, ListError> {
        let dir = self.roots.sys.join("block").join(name);
        if flag(&dir.join("hidden")) {
            return Ok(None);
        }
        let queue = dir.join("queue");
        let logical_block = block_size(&queue.join("logical_block_size"))?;
        // Less than a sector at the end can be neither read nor written.
        let size = usable(self.sectors(&dir.join("size"))?, logical_block);
        if size == 0 {
            return Ok(None);
        }
        let path = self.node(name);
        let dev = self.dev(&dir)?;
        let device = dir.join("device");
        let canonical = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        let transport = transport(name, &canonical.to_string_lossy());
        let page = |code: &str| fs::read(device.join(format!("vpd_pg{code}"))).unwrap_or_default();
        let ata_page = page("89");
        let ata = Identify::from_page(&ata_page);
        let wwn = identity::wwn(&page("83"))
            .or_else(|| attribute(&dir.join("wwid")).and_then(|wwid| Wwn::from_wwid(&wwid)))
            .or_else(|| attribute(&device.join("wwid")).and_then(|wwid| Wwn::from_wwid(&wwid)));
        let virtio = transport == Some("virtio");
        let disk = Disk {
            name: name.to_owned(),
            dev,
            sequence: number(&dir.join("diskseq")),
            size,
            logical_block,
            physical_block: block_size(&queue.join("physical_block_size"))?,
            rotational: flag(&queue.join("rotational")),
            removable: flag(&dir.join("removable")),
            read_only: flag(&dir.join("ro")),
            // A virtio disk's "vendor" is a PCI number.
            vendor: if virtio { None } else { attribute(&device.join("vendor")) },
            model: ata
                .as_ref()
                .and_then(Identify::model)
                .or_else(|| attribute(&device.join("model")))
                .or_else(|| if transport == Some("mmc") { attribute(&device.join("name")) } else { None }),
            serial: ata
                .as_ref()
                .and_then(Identify::serial)
                .or_else(|| identity::serial(&page("80")))
                .or_else(|| attribute(&device.join("serial")))
                .or_else(|| attribute(&dir.join("serial"))),
            wwn: wwn.as_ref().map(|wwn| wwn.wwn.clone()),
            wwn_with_extension: wwn.as_ref().map(|wwn| wwn.with_extension.clone()),
            wwn_vendor_extension: wwn.and_then(|wwn| wwn.vendor_extension),
            raid_volume: hctl(&device)
                .is_some_and(|hctl| raid_volume::is_volume(&self.roots.sys, &device, &hctl)),
            hctl: hctl(&device),
            ata: ata.is_some() || transport == Some("sata"),
            emmc: transport == Some("mmc") && attribute(&device.join("type")).as_deref() == Some("MMC"),
            namespace: number(&dir.join("nsid")).and_then(|nsid| u32::try_from(nsid).ok()),
            write_zeroes_max: number(&queue.join("write_zeroes_max_bytes")).unwrap_or(0),
            discard_max: number(&queue.join("discard_max_bytes")).unwrap_or(0),
            discard_reads_zero: ata.as_ref().is_some_and(Identify::trim_reads_zero)
                || identity::unmap_reads_zero(&page("b2")),
            transport: transport.map(str::to_owned),
            partitions: self.partitions(&dir)?,
            holders: self.holders(&dir)?,
            mounts: self.in_use.mounts_of(dev, &path),
            swap: self.in_use.is_swap(&path),
            other_paths: Vec::new(),
            path,
        };
        Ok(Some(disk))
    }

    fn partitions(&self, dir: &Path) -> Result<Vec<Partition>, ListError> {
        let mut partitions = Vec::new();
        for (name, entry) in children(dir)? {
            let Some(number) = number(&entry.join("partition")) else { continue };
            let path = self.node(&name);
            partitions.push(Partition {
                number: u32::try_from(number).unwrap_or(u32::MAX),
                start: self.sectors(&entry.join("start"))?,
                size: self.sectors(&entry.join("size"))?,
                holders: self.holders(&entry)?,
                mounts: self.in_use.mounts_of(self.dev(&entry)?, &path),
                swap: self.in_use.is_swap(&path),
                name,
            });
        }
        partitions.sort_by_key(|partition| partition.number);
        Ok(partitions)
    }

    fn holders(&self, dir: &Path) -> Result<Vec<Holder>, ListError> {
        let holders = dir.join("holders");
        if !holders.exists() {
            return Ok(Vec::new());
        }
        children(&holders)?.into_iter().map(|(name, _)| self.holder(name)).collect()
    }

    fn holder(&self, name: String) -> Result<Holder, ListError> {
        let dir = self.roots.sys.join("block").join(&name);
        let path = self.node(&name);
        let dm_name = attribute(&dir.join("dm/name"));
        let dm_uuid = attribute(&dir.join("dm/uuid")).unwrap_or_default();
        let kind = match dm_name {
            Some(dm) if dm_uuid.starts_with("LVM-") => HolderKind::Lvm(dm),
            Some(dm) if dm_uuid.starts_with("mpath-") => HolderKind::Multipath(dm),
            Some(dm) => HolderKind::DeviceMapper(dm),
            None if dir.join("md").exists() => {
                HolderKind::Md(attribute(&dir.join("md/level")).unwrap_or_else(|| "inactive".to_owned()))
            }
            None if dir.join("bcache").exists() => HolderKind::Bcache,
            None => HolderKind::Other,
        };
        let dev = self.dev(&dir).unwrap_or_default();
        let mounts = if dev == (0, 0) { Vec::new() } else { self.in_use.mounts_of(dev, &path) };
        let mut holders = self.holders(&dir)?;
        let partitions = if dir.exists() { self.partitions(&dir)? } else { Vec::new() };
        holders.extend(partitions.into_iter().map(|partition| self.partition_of(&name, partition)));
        let swap = self.in_use.is_swap(&path);
        let size = self.sectors(&dir.join("size")).unwrap_or(0);
        let (suspended, below) = (flag(&dir.join("dm/suspended")), below(&dir)?);
        Ok(Holder { name, kind, path, dev, size, suspended, below, mounts, swap, holders })
    }

    /// A partition of a holder.
    fn partition_of(&self, holder: &str, partition: Partition) -> Holder {
        let Partition { name, size, holders, mounts, swap, .. } = partition;
        let (path, below) = (self.node(&name), vec![holder.to_owned()]);
        let dev = self.dev(&self.roots.sys.join("class/block").join(&name)).unwrap_or_default();
        let kind = HolderKind::Partition;
        Holder { name, kind, path, dev, size, suspended: false, below, mounts, swap, holders }
    }

    fn node(&self, name: &str) -> PathBuf {
        self.roots.dev.join(name.replace('!', "/"))
    }

    fn dev(&self, dir: &Path) -> Result<(u32, u32), ListError> {
        required(&dir.join("dev"), "a device number", parse_dev)
    }

    /// sysfs counts in sectors of 512 bytes whatever the disk's own are.
    fn sectors(&self, path: &Path) -> Result<u64, ListError> {
        required(path, "a number of sectors", |text| text.parse::<u64>().ok()?.checked_mul(512))
    }
}

/// The whole devices that a holder is built on.
fn below(dir: &Path) -> Result<Vec<String>, ListError> {
    let slaves = dir.join("slaves");
    let mut names = Vec::new();
    for (name, entry) in if slaves.exists() { children(&slaves)? } else { Vec::new() } {
        // The directory of a partition is in that of its disk.
        let device = entry.canonicalize().unwrap_or_else(|_| entry.clone());
        let whole = device.parent().and_then(Path::file_name).filter(|_| device.join("partition").exists());
        names.push(whole.map_or(name, |whole| whole.to_string_lossy().into_owned()));
    }
    // An array of a container (IMSM, DDF) has the disks below it, and goes before the container.
    let container = attribute(&dir.join("md/metadata_version"))
        .and_then(|version| Some(version.strip_prefix("external:/")?.split_once('/')?.0.to_owned()));
    names.extend(container);
    names.dedup();
    Ok(names)
}

fn required<T>(
    path: &Path,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, ListError> {
    let content =
        fs::read_to_string(path).map_err(|source| ListError::Read { path: path.to_owned(), source })?;
    parse(content.trim()).ok_or_else(|| ListError::Malformed { path: path.to_owned(), content, expected })
}

/// Whole sectors only, in bytes.
pub(crate) fn usable(size: u64, logical_block: u32) -> u64 {
    size / u64::from(logical_block) * u64::from(logical_block)
}

fn block_size(path: &Path) -> Result<u32, ListError> {
    required(path, "a block size", |text| text.parse().ok().filter(|size: &u32| size.is_power_of_two()))
}

fn children(dir: &Path) -> Result<Vec<(String, PathBuf)>, ListError> {
    let error = |source| ListError::Read { path: dir.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(error)? {
        let entry = entry.map_err(error)?;
        found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    found.sort();
    Ok(found)
}

/// An optional attribute: absent, unreadable and blank are the same, unknown.
fn attribute(path: &Path) -> Option<String> {
    identity::text(&fs::read(path).ok()?)
}

fn number(path: &Path) -> Option<u64> {
    attribute(path)?.parse().ok()
}

fn flag(path: &Path) -> bool {
    number(path).is_some_and(|value| value != 0)
}

/// How a disk is attached, from the path of its device.
fn transport(name: &str, path: &str) -> Option<&'static str> {
    let has = |part: &str| path.contains(part);
    let ata = path.split('/').any(|part| {
        part.strip_prefix("ata").is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    });
    Some(match () {
        () if name.starts_with("loop") => "loop",
        () if name.starts_with("nvme") => "nvme",
        () if name.starts_with("mmcblk") => "mmc",
        () if name.starts_with("vd") => "virtio",
        () if has("/usb") => "usb",
        () if ata => "sata",
        () if has("/end_device-") => "sas",
        () if has("/rport-") => "fc",
        () if has("/session") => "iscsi",
        () if has("/host") => "scsi",
        () => return None,
    })
}

fn hctl(device: &Path) -> Option<String> {
    let target = device.canonicalize().ok()?;
    let name = target.file_name()?.to_string_lossy().into_owned();
    let fields: Vec<&str> = name.split(':').collect();
    let numeric = |field: &&str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    (fields.len() == 4 && fields.iter().all(numeric)).then_some(name)
}
