//! Waits until all disks are there. A disk that appears after the agent looked would stay unerased
//! on a node that is called clean, so this asks the kernel instead of sleeping:
//! every SCSI host is asked to scan, which returns only when its own first scan has ended, and every
//! NVMe controller must be `live` or given up.

use super::uevents;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A disk that is not there after this is not waited for; the log names what was.
const DEADLINE: Duration = Duration::from_secs(90);
/// No device may have appeared for this long.
const QUIET: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(50);

/// Return when storage has settled, or at the deadline.
pub fn settle() {
    let began = Instant::now();
    let mut scanned = Vec::new();
    let mut seen = u64::MAX;
    let mut still_since = Instant::now();
    loop {
        scan_new_hosts(&mut scanned, DEADLINE.saturating_sub(began.elapsed()));
        let waiting = unfinished(Path::new("/sys"));
        let now = uevents::SEEN.load(Ordering::Relaxed);
        if now != seen || !waiting.is_empty() {
            (seen, still_since) = (now, Instant::now());
        }
        if still_since.elapsed() >= QUIET {
            tracing::info!(
                seconds = began.elapsed().as_secs_f32(),
                hosts = scanned.len(),
                "storage has settled"
            );
            return;
        }
        if began.elapsed() >= DEADLINE {
            tracing::error!(?waiting, "storage has not settled in time; going on without");
            return;
        }
        thread::sleep(LOOK);
    }
}

/// Writing to `scan` waits for the host's asynchronous scan (scsi_scan_host_selected in the kernel),
/// for libata also for the port's probing. All hosts at once.
fn scan_new_hosts(scanned: &mut Vec<PathBuf>, limit: Duration) {
    let (sender, receiver) = mpsc::channel();
    let mut begun = 0_usize;
    for host in list(Path::new("/sys/class/scsi_host")) {
        if scanned.contains(&host) {
            continue;
        }
        scanned.push(host.clone());
        begun += 1;
        let sender = sender.clone();
        thread::spawn(move || {
            if let Err(error) = fs::write(host.join("scan"), "- - -") {
                tracing::debug!(host = %host.display(), %error, "host cannot be asked to scan");
            }
            // Nobody listens after the limit.
            let _ = sender.send(());
        });
    }
    let until = Instant::now() + limit;
    for _ in 0..begun {
        if receiver.recv_timeout(until.saturating_duration_since(Instant::now())).is_err() {
            tracing::error!("a SCSI host is still scanning");
            return;
        }
    }
}

/// Devices that are there without their disk.
fn unfinished(sys: &Path) -> Vec<PathBuf> {
    let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let nvme = list(&sys.join("class/nvme")).into_iter().filter(|controller| {
        ["new", "connecting", "resetting"].contains(&text(controller.join("state")).as_str())
    });
    // Type 0 is a disk (SPC, peripheral device type); it has a block device once sd has looked at it.
    let scsi = list(&sys.join("class/scsi_device"))
        .into_iter()
        .map(|entry| entry.join("device"))
        .filter(|device| text(device.join("type")) == "0" && text(device.join("state")) == "running")
        .filter(|device| list(&device.join("block")).is_empty());
    nvme.chain(scsi).collect()
}

fn list(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::unfinished;
    use std::fs;

    #[test]
    fn a_disk_counts_as_there_when_it_has_a_block_device() {
        let root = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("dir");
            fs::write(path, text).expect("file");
        };
        write("class/nvme/nvme0/state", "live\n");
        write("class/nvme/nvme1/state", "connecting\n");
        write("class/scsi_device/0:0:0:0/device/type", "0\n");
        write("class/scsi_device/0:0:0:0/device/state", "running\n");
        write("class/scsi_device/1:0:0:0/device/type", "5\n");
        let names = |found: Vec<std::path::PathBuf>| found.len();
        assert_eq!(names(unfinished(root.path())), 2);
        write("class/nvme/nvme1/state", "live\n");
        write("class/scsi_device/0:0:0:0/device/block/sda/size", "1\n");
        assert_eq!(names(unfinished(root.path())), 0);
    }
}
