//! Drives in user space (`tests/drive`) for a node: an initramfs with them, shared memory for their content.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::controller::QUICK_KERNEL;
use lab::disk::Bus;
use lab::node::Firmware;
use lab::site::{Site, SiteNode};

use crate::disk::OldDisk;
use crate::stage::{NODE, Stage, enrol_redfish};

/// Content of each drive, in MiB: a power of two, as QEMU wants it.
const MIB: u64 = 8;
/// Memory of all drives in bytes, and of each (`drive::rig`).
const KEPT: u64 = 1 << 20;
const PAGE: usize = 4096;

/// Drives, before there is a node.
#[derive(Debug)]
pub struct Rig {
    dir: PathBuf,
    words: String,
    disks: Vec<OldDisk>,
}

impl Rig {
    /// Drives with a past. `specs` are what `drive::Spec::parse` takes.
    ///
    /// # Errors
    /// When a file cannot be written, or the image has no rig.
    pub fn new(stage: &Stage, specs: &[&str]) -> Result<Self> {
        let dir = stage.dir.join("rig");
        let from = image_dir()?;
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let read = |name: &str| {
            let path = from.join(name);
            fs::read(&path).with_context(|| format!("{} is missing: cargo xtask image --rig", path.display()))
        };
        write(&dir.join("vmlinuz"), &read("vmlinuz")?)?;
        write(&dir.join("initramfs"), &[read("initramfs")?, read("rig")?].concat())?;
        symlink(from.join("medium").canonicalize()?, dir.join("medium")).context("the boot loaders")?;
        File::create(dir.join("kept")).and_then(|file| file.set_len(KEPT)).context("memory of the drives")?;
        let serials =
            specs.iter().map(|spec| spec.split(',').nth(1).context("a drive without serial number"));
        let disks = serials
            .map(|serial| OldDisk::make(&dir, serial?, Bus::Scsi, MIB << 20))
            .collect::<Result<_>>()?;
        let words: Vec<String> = specs.iter().map(|spec| format!("drive={spec}")).collect();
        Ok(Self { dir, words: words.join(" "), disks })
    }

    /// The directory of kernel, initramfs and boot loaders with the drives in it, and the kernel arguments that plug them in: with their
    /// content in the ramdisk, as a kernel that is locked down demands.
    ///
    /// # Errors
    /// When a file cannot be written, or the image has no rig.
    pub fn inside(stage: &Stage, specs: &[&str]) -> Result<(PathBuf, String)> {
        let rig = Self::new(stage, &[])?;
        let words: Vec<String> = specs.iter().map(|spec| format!("drive={spec}")).collect();
        Ok((rig.dir, format!("rdinit=/rig/drive drives=own {}", words.join(" "))))
    }

    /// A site whose nodes have such drives.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn site(&self, stage: &Stage) -> Result<Site> {
        let boot = format!("kernel_append = \"{QUICK_KERNEL} rdinit=/rig/drive {}\"\n", self.words);
        Site::start_with(&stage.dir, Some(self.dir.clone()), &format!("{boot}{}", crate::stage::SETTINGS))
            .await
    }

    /// The node with the drives and no others, enrolled and manageable.
    ///
    /// # Errors
    /// When a part does not start or the controller refuses.
    pub async fn node(&self, site: &mut Site) -> Result<SiteNode> {
        // The rings of the drives are in the node's memory, too.
        let mut extra = vec!["-m".to_owned(), "512".to_owned()];
        extra.extend(memory("kept", &self.dir.join("kept"), KEPT));
        for (index, disk) in self.disks.iter().enumerate() {
            extra.extend(memory(&format!("drive{index}"), &disk.spec.file, MIB << 20));
        }
        let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
        let node = site.node_with(NODE, Firmware::Bios, Vec::new(), &extra).await?;
        enrol_redfish(site, &node).await?;
        Ok(node)
    }

    /// The disks, in the order of the drives.
    pub fn disks(&self) -> &[OldDisk] {
        &self.disks
    }

    /// The disk with this serial number.
    ///
    /// # Errors
    /// When there is none.
    pub fn disk(&self, serial: &str) -> Result<&OldDisk> {
        self.disks.iter().find(|disk| disk.serial() == serial).with_context(|| format!("no drive {serial}"))
    }

    /// Whether this drive has a password (byte 4 of what `drive::memory` keeps).
    ///
    /// # Errors
    /// When its memory was never written.
    pub fn has_password(&self, serial: &str) -> Result<bool> {
        let index = self.disks.iter().position(|disk| disk.serial() == serial).context("no such drive")?;
        let kept = fs::read(self.dir.join("kept")).context("memory of the drives")?;
        let page = kept.get(index * PAGE..).unwrap_or_default();
        ensure!(page.starts_with(b"DRV1"), "drive {serial} has never remembered anything");
        Ok(page[4] == 1)
    }
}

/// QEMU's words for memory that is a file here.
fn memory(id: &str, file: &Path, bytes: u64) -> Vec<String> {
    let backend = format!("memory-backend-file,id={id},share=on,mem-path={},size={bytes}", file.display());
    ["-object", &backend, "-device", &format!("ivshmem-plain,memdev={id}")].map(str::to_owned).to_vec()
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
