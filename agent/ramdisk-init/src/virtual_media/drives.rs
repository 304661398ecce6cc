//! Which drives can be virtual ones of a BMC, as ironic-python-agent sees it: CD drives, and small disks on USB. Never a
//! partition: a former user of the machine may have written that.

use std::fs;
use std::path::Path;

/// Virtual disks are smaller, in bytes.
const SMALL: u64 = 4 << 30;
/// In which sysfs counts the size of a disk, whatever its sectors are.
const SECTOR: u64 = 512;

/// Names of the drives below `sys` (`/sys`) with something in them, in their order.
pub(super) fn virtual_drives(sys: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(sys.join("block")) else { return Vec::new() };
    let named =
        entries.flatten().filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut names: Vec<String> =
        named.filter(|(name, path)| can_be(name, path)).map(|(name, _)| name).collect();
    names.sort();
    names
}

fn can_be(name: &str, path: &Path) -> bool {
    let size = fs::read_to_string(path.join("size")).ok().and_then(|size| size.trim().parse::<u64>().ok());
    let bytes = size.unwrap_or(0).saturating_mul(SECTOR);
    let is_rom = name.strip_prefix("sr").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    bytes > 0 && (is_rom || (is_usb(path) && bytes < SMALL))
}

/// Whether one of the devices above it is a root hub of USB (`usb1`).
fn is_usb(path: &Path) -> bool {
    let Ok(device) = path.canonicalize() else { return false };
    device
        .components()
        .filter_map(|part| part.as_os_str().to_str()?.strip_prefix("usb"))
        .any(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn cd_drives_with_a_medium_and_small_disks_on_usb() {
        let root = tempfile::tempdir().expect("tempdir");
        let pci = "devices/pci0000:00/0000:00:05.0";
        let drive = |name: &str, below: &str, sectors: u64| {
            let device = root.path().join(pci).join(below).join(name);
            fs::create_dir_all(&device).expect("a device");
            fs::write(device.join("size"), format!("{sectors}\n")).expect("its size");
            fs::create_dir_all(root.path().join("block")).expect("block");
            symlink(device, root.path().join("block").join(name)).expect("a link");
        };
        drive("sda", "ata1/host0", 2880);
        drive("sdb", "usb1/1-1/host1", 2880);
        drive("sdc", "usb1/1-2/host2", (4 << 30) / 512);
        drive("sdd", "usbx/host3", 2880);
        drive("sde", "usb2/2-1/host4", 0);
        drive("sr0", "ata2/host5", 60_000);
        drive("sr1", "usb1/1-3/host6", 0);
        drive("srx", "ata3/host7", 60_000);
        assert_eq!(virtual_drives(root.path()), ["sdb", "sr0"]);
        assert!(virtual_drives(Path::new("/nonexistent")).is_empty());
    }
}
