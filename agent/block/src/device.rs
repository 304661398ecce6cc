//! A disk opened for erasing: exclusively, past the page cache, and only if it is still the disk that was
//! judged.

use crate::disk::Disk;
use crate::drive::Drive;
use crate::list::{Roots, usable};
use crate::nvme::{self, NvmeCommand, SecureErase};
use crate::paths;
use crate::probe::Probe;
use crate::signature::Signature;
use crate::signatures::{Found, find};
use crate::sys;
use crate::target::Target;
use crate::temperature::{self, Temperature};
use crate::transport::Transport;
use nix::sys::stat::{major, minor};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A whole disk, held exclusively (`O_EXCL`) until it is dropped.
#[derive(Debug)]
pub struct Device {
    probe: Probe,
    /// Of the disk in sysfs.
    sys_dir: PathBuf,
    /// Of what its content goes through: the disk, or its multipath map.
    way_dir: PathBuf,
    /// `O_DIRECT`: all content goes this way.
    direct: File,
    /// Through the page cache: for libblkid, which reads where and as much as it likes.
    cached: File,
    /// The first path, for commands to the drive, where the content goes through a map.
    path: Option<File>,
    /// The other paths to the disk, held so that nothing uses it over them.
    others: Vec<File>,
}

/// Why a disk could not be opened for erasing. Nothing has been written.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel did not let it be opened.
    #[error("cannot open {disk} exclusively for writing{}", busy(source))]
    Open {
        /// The disk.
        disk: String,
        /// Why; `EBUSY` when something uses the disk.
        source: io::Error,
    },
    /// What was opened is no longer the disk that was judged.
    #[error("{disk} is not the disk that was judged: {difference}")]
    Changed {
        /// The disk.
        disk: String,
        /// In what it differs.
        difference: String,
    },
}

fn busy(source: &io::Error) -> &'static str {
    if source.raw_os_error() == Some(libc::EBUSY) { ", something else uses it" } else { "" }
}

impl Device {
    /// Open the disk of `probe`, which must have been judged before.
    ///
    /// # Errors
    /// [`OpenError`] when the disk is in use, gone, write-protected, or another one by now.
    pub fn open(roots: &Roots, probe: &Probe) -> Result<Self, OpenError> {
        let disk = &probe.disk;
        let failed = |source| OpenError::Open { disk: disk.describe(), source };
        let mut exclusive = OpenOptions::new();
        exclusive.read(true).write(true).custom_flags(libc::O_DIRECT | libc::O_EXCL);
        let (name, way) = match &probe.map {
            Some(map) => (&map.name, &map.path),
            None => (&disk.name, &disk.path),
        };
        let direct = paths::open_exclusively(&exclusive, way).map_err(failed)?;
        let cached = File::open(way).map_err(failed)?;
        // The map has taken its paths for itself.
        let path = probe.map.as_ref().map(|_| OpenOptions::new().read(true).write(true).open(&disk.path));
        let path = path.transpose().map_err(failed)?;
        let dir = |name: &String| roots.sys.join("block").join(name);
        let (sys_dir, way_dir) = (dir(&disk.name), dir(name));
        let (probe, others) = (probe.clone(), Vec::new());
        let mut device = Device { probe, sys_dir, way_dir, direct, cached, path, others };
        let changed = |difference| OpenError::Changed { disk: disk.describe(), difference };
        if let Some(difference) = device.difference().map_err(failed)? {
            return Err(changed(difference));
        }
        device.others = paths::hold(roots, disk, &device.direct, device.path.is_some())
            .map_err(failed)?
            .map_err(changed)?;
        Ok(device)
    }

    /// The disk as it was judged.
    pub fn disk(&self) -> &Disk {
        &self.probe.disk
    }

    /// The probe as it was judged.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// What commands to the drive go through.
    fn commands(&self) -> &File {
        self.path.as_ref().unwrap_or(&self.direct)
    }

    /// In what the opened device differs from the judged one.
    fn difference(&self) -> io::Result<Option<String>> {
        let disk = &self.probe.disk;
        let named = self.path.as_ref().unwrap_or(&self.direct);
        if let (Some(map), rdev) = (&self.probe.map, self.direct.metadata()?.rdev())
            && (u64::from(map.dev.0), u64::from(map.dev.1)) != (major(rdev), minor(rdev))
        {
            return Ok(Some(format!("its map {} has another device number", map.name)));
        }
        let rdev = named.metadata()?.rdev();
        let (dev, size) = ((major(rdev), minor(rdev)), self.size_now()?);
        let dev = (u32::try_from(dev.0).unwrap_or(u32::MAX), u32::try_from(dev.1).unwrap_or(u32::MAX));
        let sequence = disk.sequence.and_then(|_| sys::blk::sequence(named).ok());
        let block = sys::blk::logical_block(&self.direct)?;
        Ok(if dev != disk.dev {
            Some(format!("device number {}:{} instead of {}:{}", dev.0, dev.1, disk.dev.0, disk.dev.1))
        } else if size != disk.size {
            Some(format!("{size} bytes instead of {}", disk.size))
        } else if sequence != disk.sequence {
            Some("it was replaced".to_owned())
        } else if block != disk.logical_block {
            Some(format!("sectors of {block} bytes instead of {}", disk.logical_block))
        } else if sys::blk::read_only(&self.direct)? {
            Some("it is read-only now".to_owned())
        } else {
            None
        })
    }

    /// Names of the partitions that the kernel has of the disk now.
    fn kernel_partitions(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.way_dir)? {
            let entry = entry?;
            if entry.path().join("partition").exists() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    /// Size in bytes as the kernel has it now; 0 once the medium is gone.
    fn size_now(&self) -> io::Result<u64> {
        sys::blk::size(&self.direct).map(|size| usable(size, self.probe.disk.logical_block))
    }
}

impl Target for Device {
    fn name(&self) -> String {
        self.probe.disk.describe()
    }

    fn size(&self) -> u64 {
        self.probe.disk.size
    }

    fn logical_block(&self) -> u32 {
        self.probe.disk.logical_block
    }

    fn lanes(&self) -> usize {
        // Four keep order enough for a disk that spins, and what says that it spins is often a virtual one. A disk with
        // queues of its own wants more.
        if self.probe.nvme.is_some() { 8 } else { 4 }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.direct.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.direct.write_at(buffer, offset)
    }

    fn zero_out(&self, offset: u64, length: u64) -> io::Result<()> {
        sys::blk::zero_out(&self.direct, offset, length)
    }

    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        sys::blk::discard(&self.direct, offset, length)
    }

    fn secure_discard(&self, offset: u64, length: u64) -> io::Result<()> {
        sys::blk::secure_discard(&self.direct, offset, length)
    }

    fn temperature(&self) -> Option<Temperature> {
        temperature::of_disk(&self.sys_dir)
    }

    fn drive(&self) -> Option<Drive<'_>> {
        Some(Drive { transport: self.commands(), probe: &self.probe })
    }

    fn format(&self, erase: SecureErase) -> io::Result<()> {
        let Some(namespace) = &self.probe.nvme else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        let command = NvmeCommand::format(namespace, erase);
        match self.commands().nvme(&command, &mut [], format_timeout(self.size()))?.status {
            0 => Ok(()),
            status => Err(io::Error::other(nvme::status_text(status))),
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.cached.sync_data()?;
        self.direct.sync_data()?;
        sys::blk::flush_buffers(&self.direct)
    }

    fn present(&self) -> bool {
        let dev = fs::read_to_string(self.way_dir.join("dev")).unwrap_or_default();
        let expected = self.probe.map.as_ref().map_or(self.probe.disk.dev, |map| map.dev);
        crate::mounts::parse_dev(&dev) == Some(expected)
            && self.size_now().is_ok_and(|size| size == self.probe.disk.size)
    }

    fn signatures(&self) -> io::Result<Vec<Signature>> {
        sys::blk::flush_buffers(&self.cached)?;
        Ok(self.found()?.signatures)
    }

    fn ranges(&self) -> io::Result<Vec<(u64, u64)>> {
        Ok(self.found()?.ranges)
    }

    fn forget_partitions(&self) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match sys::blk::reread_partitions(&self.direct) {
                Ok(()) => break,
                // udev, where there is one, looks at every disk that was written.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                // A device that the kernel does not scan, like a loop device without the flag.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(error),
            }
        }
        let left = self.kernel_partitions()?;
        if left.is_empty() {
            return Ok(());
        }
        Err(io::Error::other(format!("the kernel still has partitions {}", left.join(", "))))
    }
}

impl Device {
    /// What libblkid recognises on it now.
    fn found(&self) -> io::Result<Found> {
        let known = self.probe.disk.partitions.iter().map(|partition| (partition.start, partition.size));
        find(&self.cached, self.size(), self.logical_block(), known)
    }
}

/// Ten minutes (nvme-cli's default), or what writing the disk at 50 MB/s would take, but no more than twelve
/// hours: the kernel resets the controller at the end of it.
fn format_timeout(size: u64) -> Duration {
    Duration::from_secs((size / 50_000_000).clamp(600, 12 * 3600))
}
