//! Whether a SCSI disk is a volume that a RAID controller makes of other disks. Such a volume comes and goes with the
//! controller's configuration, so it is no disk that a node has.

use std::fs;
use std::path::Path;

/// Whether the SCSI disk at the address `hctl` (`host:channel:target:lun`), with its directory `device` in the sysfs `sys`,
/// is a volume.
///
/// - `raid_level` of the device: hpsa and smartpqi; `N/A` is a physical disk.
/// - `class/raid_devices`: the drivers that register with the kernel's RAID class (mpt3sas, mptspi).
/// - megaraid_sas shows volumes from channel 2 on (`MEGASAS_MAX_PD_CHANNELS`), aacraid on channel 0
///   (`CONTAINER_CHANNEL`), and those of 3ware show nothing else.
pub(crate) fn is_volume(sys: &Path, device: &Path, hctl: &str) -> bool {
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let level = text(&device.join("raid_level"));
    if !level.is_empty() {
        return !level.eq_ignore_ascii_case("n/a");
    }
    if !hctl.is_empty() && sys.join("class/raid_devices").join(hctl).exists() {
        return true;
    }
    let mut address = hctl.split(':').map(|part| part.parse::<u32>().ok());
    let (Some(Some(host)), Some(Some(channel))) = (address.next(), address.next()) else { return false };
    match text(&sys.join(format!("class/scsi_host/host{host}/proc_name"))).as_str() {
        "megaraid_sas" => channel >= 2,
        "aacraid" => channel == 0,
        driver => driver.starts_with("3w-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_distinguished_from_disks_by_what_each_driver_shows() {
        let root = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            fs::write(path, text).expect("file");
        };
        for (host, driver) in
            ["ahci", "megaraid_sas", "aacraid", "3w-sas", "hpsa", "mpt3sas"].iter().enumerate()
        {
            write(&format!("class/scsi_host/host{host}/proc_name"), &format!("{driver}\n"));
        }
        write("volume/raid_level", "RAID 1(1+0)\n");
        write("disk/raid_level", "N/A\n");
        write("class/raid_devices/5:1:0:0/level", "raid1\n");
        for (device, hctl, volume) in [
            ("none", "0:0:0:0", false),
            ("none", "1:0:4:0", false),
            ("none", "1:2:0:0", true),
            ("none", "2:0:0:0", true),
            ("none", "2:1:3:0", false),
            ("none", "3:0:0:0", true),
            ("volume", "4:1:0:0", true),
            ("disk", "4:0:0:0", false),
            ("none", "5:1:0:0", true),
            ("none", "5:0:0:0", false),
            ("none", "9:0:0:0", false),
            ("none", "", false),
        ] {
            assert_eq!(is_volume(root.path(), &root.path().join(device), hctl), volume, "{device} {hctl}");
        }
    }
}
