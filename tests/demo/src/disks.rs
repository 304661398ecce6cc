//! The disks of the demo: made up and full of recognisable data, or brought by the user.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use lab::disk::{Bus, DiskSpec, SATA_PORTS};
use lab::scan::Snapshot;
use lab::signatures::{Content, Table};
use lab::{fill, signatures};

/// Size of a made-up disk in bytes.
const SIZE: u64 = 256 << 20;
/// Size of one that an operating system is written to: the image, its configuration drive and some room to grow.
const ROOT_SIZE: u64 = 640 << 20;
/// More disks than this on one node is a mistake.
const MOST: usize = 16;

/// `FILE:BUS` of `--disk`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    file: PathBuf,
    bus: Bus,
}

impl FromStr for Brought {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((file, bus)) = text.rsplit_once(':') else {
            bail!("write FILE:nvme, FILE:sata, FILE:scsi or FILE:virtio");
        };
        Ok(Self { file: file.into(), bus: bus.parse()? })
    }
}

/// A disk of a node, and what it held before.
#[derive(Debug)]
pub struct DemoDisk {
    /// As the node has it.
    pub spec: DiskSpec,
    /// Hashes of its sectors before.
    pub before: Snapshot,
    /// Made here, and removed at the end.
    pub made_up: bool,
}

/// Refuses images that cannot be what the user means, before anything is started.
pub fn check(brought: &[Brought]) -> Result<()> {
    for (index, disk) in brought.iter().enumerate() {
        let shown = disk.file.display();
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&disk.file)
            .with_context(|| format!("disk image {shown}"))?;
        let facts = file.metadata().with_context(|| format!("disk image {shown}"))?;
        ensure!(facts.is_file(), "{shown} is no regular file; the demo touches disk images only");
        let whole = facts.len() > 0 && facts.len() % fill::SECTOR as u64 == 0;
        ensure!(whole, "{shown}: {} bytes are no whole number of sectors", facts.len());
        ensure!(!is_qcow2(&file)?, "{shown} is a qcow2 image; make a raw one with qemu-img convert");
        let path = disk.file.canonicalize()?;
        for other in &brought[..index] {
            ensure!(other.file.canonicalize()? != path, "{shown} is given twice");
        }
    }
    for node in 0..2 {
        let mine = brought.iter().skip(node).step_by(2);
        ensure!(mine.clone().count() <= MOST, "more than {MOST} disks for one node");
        let sata = mine.filter(|disk| disk.bus == Bus::Sata).count();
        ensure!(sata <= SATA_PORTS, "{sata} SATA disks for one node, which has {SATA_PORTS} ports");
    }
    Ok(())
}

fn is_qcow2(file: &std::fs::File) -> Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0)?;
    Ok(&magic == b"QFI\xfb")
}

/// The disks of node 0 (BIOS) or 1 (UEFI), of which the first can take an operating system if `deployed`.
pub fn of_node(number: usize, brought: &[Brought], deployed: bool, pool: &Path) -> Result<Vec<DemoDisk>> {
    let mine: Vec<&Brought> = brought.iter().skip(number).step_by(2).collect();
    if mine.is_empty() {
        return made_up(number, deployed, pool);
    }
    let mut disks = Vec::new();
    for (index, disk) in mine.into_iter().enumerate() {
        let serial = format!("YOURS-{}-{}", number + 1, index + 1);
        let spec = DiskSpec::new(disk.file.canonicalize()?, disk.bus, &serial);
        disks.push(DemoDisk { before: Snapshot::take(&disk.file)?, spec, made_up: false });
    }
    Ok(disks)
}

fn made_up(number: usize, deployed: bool, pool: &Path) -> Result<Vec<DemoDisk>> {
    use Content::{Data, LvmPhysicalVolume, MdMember};
    let plans = if number == 0 {
        [
            (Bus::Nvme, Table::Gpt, LvmPhysicalVolume),
            (Bus::Sata, Table::Mbr, MdMember),
            (Bus::Virtio, Table::Gpt, Data),
        ]
    } else {
        [
            (Bus::Nvme, Table::Gpt, MdMember),
            (Bus::Sata, Table::Gpt, LvmPhysicalVolume),
            (Bus::Scsi, Table::Mbr, Data),
        ]
    };
    let mut disks = Vec::new();
    for (index, (bus, table, content)) in plans.into_iter().enumerate() {
        let serial = format!("OLD-{}-{}", number + 1, bus.as_str().to_uppercase());
        let file = pool.join(format!("{serial}-{}.img", std::process::id()));
        fill::fill(&file, &serial, if deployed && index == 0 { ROOT_SIZE } else { SIZE })?;
        signatures::write(&file, table, content)?;
        let mut spec = DiskSpec::new(&file, bus, &serial);
        spec.wwn = Some(0x5000_c500_a000_0000 + 16 * number as u64 + index as u64);
        disks.push(DemoDisk { before: Snapshot::take(&file)?, spec, made_up: true });
    }
    Ok(disks)
}

impl Drop for DemoDisk {
    fn drop(&mut self) {
        if self.made_up
            && let Err(error) = std::fs::remove_file(&self.spec.file)
        {
            eprintln!("cannot remove {}: {error}", self.spec.file.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_in_the_name_belongs_to_the_name() {
        let disk: Brought = "a:b.img:scsi".parse().unwrap();
        assert_eq!(disk, Brought { file: "a:b.img".into(), bus: Bus::Scsi });
        assert!("disk.img".parse::<Brought>().is_err());
        assert!("disk.img:floppy".parse::<Brought>().is_err());
    }

    #[test]
    fn wrong_images_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let image = |name: &str, bytes: &[u8]| {
            let file = dir.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            Brought { file, bus: Bus::Nvme }
        };
        let good = image("good.img", &[1; 1024]);
        check(std::slice::from_ref(&good)).unwrap();
        for (disks, word) in [
            (vec![image("odd.img", &[1; 1000])], "odd.img"),
            (vec![image("q.img", &[b"QFI\xfb".as_slice(), &[0; 508]].concat())], "qcow2"),
            (vec![good.clone(), good], "twice"),
            (vec![Brought { file: dir.path().join("none"), bus: Bus::Nvme }], "none"),
        ] {
            let error = format!("{:#}", check(&disks).unwrap_err());
            assert!(error.contains(word), "{error}");
        }
    }
}
