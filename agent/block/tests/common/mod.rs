//! Loop devices for tests. They need root, and say so; a test that cannot have its device fails.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a temporary file; detached when dropped.
pub struct Loop {
    pub path: PathBuf,
    file: tempfile::NamedTempFile,
    attached: bool,
}

impl Loop {
    /// Over `content`, with sectors of 512 bytes.
    pub fn new(content: &[u8]) -> Self {
        Self::with(content, &[])
    }

    /// With further arguments for losetup (`--read-only`, `--sector-size 4096`).
    pub fn with(content: &[u8], arguments: &[&str]) -> Self {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        file.as_file().sync_all().unwrap();
        Self::attach(file, arguments)
    }

    /// A blank disk of `size` bytes that takes no room until it is written.
    pub fn sparse(size: u64, arguments: &[&str]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(size).unwrap();
        Self::attach(file, arguments)
    }

    /// A part of the disk, from outside.
    pub fn part(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut file = fs::File::open(self.file.path()).unwrap();
        let mut part = vec![0; length];
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.read_exact(&mut part).unwrap();
        part
    }

    /// A blank disk of `size` bytes that answers writes with errors once `room` has taken all it can.
    pub fn failing(room: &SmallRoom, size: u64) -> Self {
        let file = tempfile::NamedTempFile::new_in(room.point.path()).unwrap();
        file.as_file().set_len(size).unwrap();
        Self::attach(file, &[])
    }

    fn attach(file: tempfile::NamedTempFile, arguments: &[&str]) -> Self {
        let backing = file.path().to_str().unwrap().to_owned();
        let mut all = vec!["--find", "--show", "--partscan"];
        all.extend(arguments);
        all.push(&backing);
        let path = PathBuf::from(run("losetup", &all).trim());
        Loop { path, file, attached: true }
    }

    /// Detached and attached again, as by a reboot; perhaps under another name.
    pub fn attach_again(&mut self) {
        run("losetup", &["-d", self.node()]);
        self.path =
            PathBuf::from(run("losetup", &["--find", "--show", "--partscan", &self.backing()]).trim());
    }

    pub fn name(&self) -> String {
        self.path.file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub fn node(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn filter(&self) -> block::Filter {
        block::Filter::Only(vec![self.path.clone()])
    }

    /// The disk as it is listed and probed now.
    pub fn probe(&self) -> block::Probe {
        let disks = block::list(&block::Roots::default(), &self.filter()).unwrap();
        assert_eq!(disks.len(), 1);
        block::probe(&disks[0]).unwrap()
    }

    /// Opened for erasing.
    pub fn open(&self) -> block::Device {
        block::Device::open(&block::Roots::default(), &self.probe()).unwrap()
    }

    /// Let the kernel have the partitions of a table on the disk, as `(start, size)` in 512-byte sectors, on
    /// a kernel that does not read the table itself too.
    pub fn add_partitions(&self, partitions: &[(u64, u64)]) {
        for (number, (start, size)) in (1..).zip(partitions) {
            if !Path::new(&format!("/sys/block/{0}/{0}p{number}", self.name())).exists() {
                let (number, start, size) = (number.to_string(), start.to_string(), size.to_string());
                run("addpart", &[self.node(), &number, &start, &size]);
            }
        }
    }

    /// The node of a partition.
    pub fn partition(&self, number: u32) -> String {
        format!("{}p{number}", self.node())
    }

    /// Write past our own code, through the device.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let mut file = fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(bytes).unwrap();
        file.sync_all().unwrap();
    }

    /// Path of the backing file.
    pub fn backing(&self) -> String {
        self.file.path().to_str().unwrap().to_owned()
    }

    /// What is in the backing file: the disk from outside.
    pub fn outside(&self) -> Vec<u8> {
        let mut content = Vec::new();
        fs::File::open(self.file.path()).unwrap().read_to_end(&mut content).unwrap();
        content
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.attached {
            let detached = Command::new("losetup").arg("-d").arg(&self.path).status();
            if !std::thread::panicking() {
                assert!(detached.unwrap().success(), "losetup -d {}", self.path.display());
            }
        }
    }
}

/// A mounted tmpfs of 2 MiB; must outlive the loop devices over files in it.
pub struct SmallRoom {
    point: tempfile::TempDir,
}

impl SmallRoom {
    pub fn new() -> Self {
        let point = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", "size=2m", "tmpfs", point.path().to_str().unwrap()]);
        SmallRoom { point }
    }
}

impl Drop for SmallRoom {
    fn drop(&mut self) {
        // Lazily: a loop device may let go of its file a moment after it was detached.
        let unmounted = Command::new("umount").arg("-l").arg(self.point.path()).status();
        if !std::thread::panicking() {
            assert!(unmounted.unwrap().success());
        }
    }
}

/// Run a tool, which must succeed; its standard output.
pub fn run(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{tool} cannot be run ({error}): this test needs it"));
    assert!(
        output.status.success(),
        "{tool} {arguments:?} failed (these tests need root and loop devices): {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Content in which every sector is different and none is zero.
pub fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut content = Vec::with_capacity(length + 8);
    while content.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend((state | 1).to_le_bytes());
    }
    content.truncate(length);
    content
}

/// Sectors of 512 bytes that held data before and still hold the same.
pub fn survivors(before: &[u8], after: &[u8]) -> usize {
    let sectors = before.chunks(512).zip(after.chunks(512));
    sectors.filter(|(old, new)| old == new && old.iter().any(|&byte| byte != 0)).count()
}

/// An md superblock of version 1 (`drivers/md/md_p.h`, `struct mdp_superblock_1`) at `sector` of 512 bytes.
pub fn md_superblock(sector: u64) -> Vec<u8> {
    let mut sb = vec![0u8; 256];
    sb[0..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    sb[4..8].copy_from_slice(&1u32.to_le_bytes());
    sb[16..32].copy_from_slice(&[0x5a; 16]);
    sb[32..41].copy_from_slice(b"host:data");
    sb[144..152].copy_from_slice(&sector.to_le_bytes());
    let sum: u64 = sb.chunks(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap()))).sum();
    let folded = u32::try_from((sum & 0xffff_ffff) + (sum >> 32)).unwrap();
    sb[216..220].copy_from_slice(&folded.to_le_bytes());
    sb
}

/// An LVM2 physical volume label (`lib/format_text/layout.h`): in the second sector, without metadata.
pub fn lvm_label() -> Vec<u8> {
    let mut sector = vec![0u8; 512];
    sector[0..8].copy_from_slice(b"LABELONE");
    sector[8..16].copy_from_slice(&1u64.to_le_bytes());
    sector[20..24].copy_from_slice(&32u32.to_le_bytes());
    sector[24..32].copy_from_slice(b"LVM2 001");
    sector[32..64].copy_from_slice(b"abcdefghijklmnopqrstuvwxyz012345");
    let crc = sector[20..].iter().fold(0xf597_a6cf_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    sector[16..20].copy_from_slice(&crc.to_le_bytes());
    sector
}
