//! Waits until all disks are there: one that appears after the agent looked would stay unerased on
//! a node that is called clean.
//!
//! Most of it is done by the kernel: loading a module returns only when the asynchronous probing
//! that was begun meanwhile has ended (`async_synchronize_full` in `do_init_module`), and that is how
//! SCSI hosts are scanned, libata ports probed and disks attached. What is left to work queues is
//! asked for here: NVMe controllers, USB disks, SCSI disks without their block device. Hosts are not
//! made to scan again: for libata that is a reset of every port.

use super::uevents;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
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

/// Return when storage has settled, or at the deadline.
pub fn settle() {
    let began = Instant::now();
    let mut seen = uevents::SEEN.load(Ordering::Relaxed);
    let mut still_since = began;
    loop {
        let mut waiting = unfinished(Path::new("/sys"));
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
    fn a_usb_disk_counts_as_there_when_it_has_a_target() {
        let root = tempfile::tempdir().expect("tempdir");
        write(root.path(), "class/scsi_host/host6/proc_name", "usb-storage\n");
        write(root.path(), "class/scsi_host/host7/proc_name", "ahci\n");
        assert_eq!(empty_usb_hosts(root.path()).len(), 1);
        write(root.path(), "class/scsi_host/host6/device/target6:0:0/type", "x");
        assert_eq!(empty_usb_hosts(root.path()).len(), 0);
    }
}
