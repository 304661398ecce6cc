//! The temperature of a drive, and when it has to rest.

use std::fs;
use std::path::{Path, PathBuf};

/// How much cooler than its warning a drive must be before it works on, in thousandths of a degree.
const RELIEF: i64 = 5_000;

/// What a drive says of its temperature, in thousandths of a degree Celsius.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Temperature {
    /// Now.
    pub now: i64,
    /// From which on it warns (NVMe: WCTEMP; SATA: the recommended maximum of its SCT status).
    pub warning: i64,
}

/// Returns whether work has to rest: from the warning on, until the drive is five degrees cooler. Work on a drive
/// that reports no temperature never rests.
pub fn must_rest(resting: bool, temperature: Option<Temperature>) -> bool {
    temperature
        .is_some_and(|seen| if resting { seen.now > seen.warning - RELIEF } else { seen.now >= seen.warning })
}

/// The temperature of the disk of this directory (`/sys/block/sda`): by the kernel's `hwmon` of NVMe controllers, or by
/// its `drivetemp`. `None` where there is none, or the drive names no warning.
pub fn of_disk(disk: &Path) -> Option<Temperature> {
    let device = disk.join("device");
    // Where NVMe multipath is on, the device of a disk is its subsystem, and that has links to its controllers.
    let controllers = children(&device, "nvme");
    let monitors = std::iter::once(device).chain(controllers).flat_map(|base| {
        // drivetemp's are below a directory of the class, those of NVMe are next to it or in it.
        children(&base, "hwmon").into_iter().flat_map(|found| {
            let below = children(&found, "hwmon");
            std::iter::once(found).chain(below)
        })
    });
    monitors.filter_map(|monitor| read(&monitor)).max_by_key(|seen| seen.now - seen.warning)
}

fn children(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect()
}

fn read(monitor: &Path) -> Option<Temperature> {
    let value = |name: &str| fs::read_to_string(monitor.join(name)).ok()?.trim().parse::<i64>().ok();
    Some(Temperature { now: value("temp1_input")?, warning: value("temp1_max").filter(|&max| max > 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_drive_rests_from_its_warning_on_until_it_is_five_degrees_cooler() {
        let mut resting = false;
        let course = [(60, false), (69, false), (70, true), (75, true), (66, true), (65, false), (69, false)];
        for (degrees, wanted) in course {
            resting = must_rest(resting, Some(Temperature { now: degrees * 1000, warning: 70_000 }));
            assert_eq!(resting, wanted, "at {degrees}");
        }
        assert!(!must_rest(true, None), "a drive that stops reporting is not waited for");
    }

    #[test]
    fn temperatures_are_found_where_the_kernel_has_them() {
        let hot = Some(Temperature { now: 71_000, warning: 70_000 });
        for place in
            ["device/hwmon/hwmon3", "device/hwmon1", "device/nvme0/hwmon2", "device/nvme1/hwmon/hwmon2"]
        {
            let (input, max) = (format!("{place}/temp1_input"), format!("{place}/temp1_max"));
            let disk = tree(&[(&input, "71000\n"), (&max, "70000\n")]);
            assert_eq!(of_disk(disk.path()), hot, "{place}");
        }
        // The hotter of two controllers counts; one without a warning does not.
        let disk = tree(&[
            ("device/nvme0/hwmon0/temp1_input", "50000"),
            ("device/nvme0/hwmon0/temp1_max", "70000"),
            ("device/nvme1/hwmon1/temp1_input", "71000"),
            ("device/nvme1/hwmon1/temp1_max", "70000"),
            ("device/hwmon9/temp1_input", "99000"),
        ]);
        assert_eq!(of_disk(disk.path()), hot);
        // Hotter is what is nearer to its own warning, or further beyond it.
        let disk = tree(&[
            ("device/nvme0/hwmon0/temp1_input", "80000"),
            ("device/nvme0/hwmon0/temp1_max", "95000"),
            ("device/nvme1/hwmon1/temp1_input", "71000"),
            ("device/nvme1/hwmon1/temp1_max", "70000"),
        ]);
        assert_eq!(of_disk(disk.path()), hot);
        assert_eq!(of_disk(tree(&[("device/hwmon9/temp1_input", "99000")]).path()), None);
        assert_eq!(of_disk(Path::new("/nonexistent")), None);
    }
}
