//! Storage that is there without a block device: a dead NVMe controller, a SCSI disk that `sd` could not attach.
//!
//! Its data cannot be erased and must not be forgotten: a node with such a disk is not clean.

use crate::list::Roots;
use std::fs;
use std::path::{Path, PathBuf};

/// What there is of it, each with the reason. Empty on a healthy machine whose storage has settled.
pub fn unattached(roots: &Roots) -> Vec<String> {
    let nvme = entries(&roots.sys.join("class/nvme")).into_iter().filter_map(|controller| {
        let state = text(&controller.join("state"));
        (state != "live").then(|| format!("NVMe controller {} is {state:?}, not live", name(&controller)))
    });
    // SPC peripheral device type 0 is a disk, 0x14 a host-managed zoned one.
    let scsi = entries(&roots.sys.join("class/scsi_device"))
        .into_iter()
        .map(|entry| (name(&entry), entry.join("device")))
        .filter(|(_, device)| ["0", "20"].contains(&text(&device.join("type")).as_str()))
        .filter(|(_, device)| entries(&device.join("block")).is_empty())
        .map(|(hctl, device)| {
            format!("SCSI disk {hctl} ({}) has no block device", text(&device.join("model")))
        });
    nvme.chain(scsi).collect()
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .map(|found| found.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    entries.sort();
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_controller_and_a_disk_without_block_device_are_named() {
        let root = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            fs::write(path, text).expect("file");
        };
        write("class/nvme/nvme0/state", "live\n");
        write("class/scsi_device/0:0:0:0/device/type", "0\n");
        write("class/scsi_device/0:0:0:0/device/block/sda/size", "1\n");
        write("class/scsi_device/1:0:0:0/device/type", "5\n");
        let roots = Roots { sys: root.path().into(), ..Roots::default() };
        assert_eq!(unattached(&roots), Vec::<String>::new());
        write("class/nvme/nvme1/state", "dead\n");
        write("class/scsi_device/2:0:0:0/device/type", "0\n");
        write("class/scsi_device/2:0:0:0/device/model", "ST1000\n");
        assert_eq!(
            unattached(&roots),
            ["NVMe controller nvme1 is \"dead\", not live", "SCSI disk 2:0:0:0 (ST1000) has no block device"]
        );
    }
}
