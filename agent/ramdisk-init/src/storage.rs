//! Waits until all disks are there: one that appears after the agent looked would stay unerased on
//! a node that is called clean.
//!
//! Most of it is done by the kernel: loading a module returns only when the asynchronous probing
//! that was begun meanwhile has ended (`async_synchronize_full` in `do_init_module`), and that is how
//! SCSI hosts are scanned, libata ports probed and disks attached. What is left to work queues is
//! asked for here: NVMe controllers, USB disks, SCSI disks without their block device. Hosts are not
//! made to scan again: for libata that is a reset of every port.

use super::{Exit, end, uevents};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A disk that is not there after this is not waited for; the log names what was.
const DEADLINE: Duration = Duration::from_secs(60);
/// A USB disk is looked at one second after it was plugged in (`delay_use` of usb-storage); a port
/// that nothing answers at stays without.
const USB_TIME: Duration = Duration::from_secs(5);
/// No device may have appeared or gone for this long.
const QUIET: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);

/// How far the search for disks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It has found nothing yet that can be relied on.
    Searching,
    /// No device that is known is unfinished, but for USB disks, which take up to [`USB_TIME`]. Another one may still appear.
    Found,
    /// Nothing has appeared for a while, or the deadline has passed.
    Settled,
}

/// The search for the disks of this machine, which goes on while the agent speaks with its controller.
#[derive(Debug)]
pub struct Storage {
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Storage {
    /// A search that others do.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { progress: Mutex::new(Progress::Searching), changed: Condvar::new() })
    }

    /// Begins to search. A search that breaks restarts the machine.
    pub(super) fn search() -> Arc<Self> {
        let storage = Self::new();
        let searching = storage.clone();
        let search = thread::spawn(move || settle(&searching));
        thread::spawn(move || {
            if search.join().is_err() {
                tracing::error!("the search for disks broke; the machine reboots");
                end(Exit::Reboot);
            }
        });
        storage
    }

    /// Returns when no device that is known is unfinished, but for USB disks. Then [`Storage::wait_until_settled`] returns within
    /// seconds, unless more devices appear.
    pub fn wait_until_found(&self) {
        self.wait(Progress::Found);
    }

    /// Returns when all disks are there, or after a minute. Nothing may look at disks before.
    pub fn wait_until_settled(&self) {
        self.wait(Progress::Settled);
    }

    fn wait(&self, least: Progress) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        while *progress < least {
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The search is so far now.
    pub fn reached(&self, now: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.changed.notify_all();
    }
}

/// Return when storage has settled, or at the deadline.
fn settle(storage: &Storage) {
    look(storage);
    storage.reached(Progress::Settled);
}

fn look(storage: &Storage) {
    let began = Instant::now();
    let mut seen = uevents::SEEN.load(Ordering::Relaxed);
    let mut still_since = began;
    loop {
        let mut waiting = unfinished(Path::new("/sys"));
        if waiting.is_empty() {
            storage.reached(Progress::Found);
        }
        if began.elapsed() < USB_TIME {
            waiting.extend(empty_usb_hosts(Path::new("/sys")));
        }
        let now = uevents::SEEN.load(Ordering::Relaxed);
        if now != seen || !waiting.is_empty() {
            (seen, still_since) = (now, Instant::now());
        }
        if still_since.elapsed() >= QUIET {
            tracing::info!(seconds = began.elapsed().as_secs_f32(), "storage has settled");
            return;
        }
        if began.elapsed() >= DEADLINE {
            tracing::error!(?waiting, "storage has not settled in time; going on without");
            return;
        }
        thread::sleep(LOOK);
    }
}

/// Devices that are there without their disk.
fn unfinished(sys: &Path) -> Vec<PathBuf> {
    let nvme = list(&sys.join("class/nvme")).into_iter().filter(|controller| {
        ["new", "connecting", "resetting"].contains(&text(&controller.join("state")).as_str())
    });
    // Type 0 is a disk (SPC, peripheral device type); it has a block device once sd has looked at it.
    let scsi = list(&sys.join("class/scsi_device"))
        .into_iter()
        .map(|entry| entry.join("device"))
        .filter(|device| text(&device.join("type")) == "0" && text(&device.join("state")) == "running")
        .filter(|device| list(&device.join("block")).is_empty());
    nvme.chain(scsi).collect()
}

/// SCSI hosts that are USB devices and have no target yet.
fn empty_usb_hosts(sys: &Path) -> Vec<PathBuf> {
    list(&sys.join("class/scsi_host"))
        .into_iter()
        .filter(|host| ["usb-storage", "uas"].contains(&text(&host.join("proc_name")).as_str()))
        .filter(|host| {
            let is_target = |path: &PathBuf| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("target"))
            };
            !list(&host.join("device")).iter().any(is_target)
        })
        .collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn list(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("dir");
        fs::write(path, text).expect("file");
    }

    #[test]
    fn a_disk_counts_as_there_when_it_has_a_block_device() {
        let root = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, text: &str| write(root.path(), path, text);
        write("class/nvme/nvme0/state", "live\n");
        write("class/nvme/nvme1/state", "connecting\n");
        write("class/scsi_device/0:0:0:0/device/type", "0\n");
        write("class/scsi_device/0:0:0:0/device/state", "running\n");
        write("class/scsi_device/1:0:0:0/device/type", "5\n");
        assert_eq!(unfinished(root.path()).len(), 2);
        write("class/nvme/nvme1/state", "live\n");
        write("class/scsi_device/0:0:0:0/device/block/sda/size", "1\n");
        assert_eq!(unfinished(root.path()).len(), 0);
    }

    #[test]
    fn who_waits_for_disks_goes_on_when_they_are_there() {
        let storage = Storage::new();
        let (goes_on, gone_on) = std::sync::mpsc::channel();
        for wait in [Storage::wait_until_found, Storage::wait_until_settled] {
            let (storage, goes_on) = (storage.clone(), goes_on.clone());
            thread::spawn(move || {
                wait(&storage);
                goes_on.send(*storage.progress.lock().expect("not poisoned"))
            });
        }
        let next = || gone_on.recv_timeout(Duration::from_secs(20));
        assert!(gone_on.recv_timeout(Duration::from_millis(100)).is_err(), "nothing is found");
        storage.reached(Progress::Found);
        assert_eq!(next(), Ok(Progress::Found));
        assert!(gone_on.recv_timeout(Duration::from_millis(100)).is_err(), "more may appear");
        storage.reached(Progress::Settled);
        assert_eq!(next(), Ok(Progress::Settled));
    }

    #[test]
    fn a_usb_disk_counts_as_there_when_it_has_a_target() {
        let root = tempfile::tempdir().expect("tempdir");
        write(root.path(), "class/scsi_host/host6/proc_name", "usb-storage\n");
        write(root.path(), "class/scsi_host/host7/proc_name", "ahci\n");
        assert_eq!(empty_usb_hosts(root.path()).len(), 1);
        write(root.path(), "class/scsi_host/host6/device/target6:0:0/type", "x");
        assert_eq!(empty_usb_hosts(root.path()).len(), 0);
    }
}
