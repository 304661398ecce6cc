//! What is mounted and what is swap, from `/proc/self/mountinfo` and `/proc/swaps` (proc(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What the kernel uses of the block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InUse {
    mounts: Vec<Mount>,
    swaps: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    dev: (u32, u32),
    point: PathBuf,
    /// The source as mounted: file systems over several devices (btrfs) have a device number of their own.
    source: PathBuf,
}

impl InUse {
    /// From the two files' texts.
    pub(crate) fn parse(mountinfo: &[u8], swaps: &[u8]) -> Self {
        let mounts = mountinfo.split(|&byte| byte == b'\n').filter_map(parse_mount).collect();
        let swaps = swaps
            .split(|&byte| byte == b'\n')
            .skip(1)
            .filter_map(|line| line.split(|&byte| byte == b' ' || byte == b'\t').next())
            .filter(|field| !field.is_empty())
            .map(unescape)
            .collect();
        InUse { mounts, swaps }
    }

    /// Mount points of a device, by its number or its node.
    pub(crate) fn mounts_of(&self, dev: (u32, u32), node: &Path) -> Vec<PathBuf> {
        let is = |mount: &&Mount| mount.dev == dev || same_node(&mount.source, node);
        self.mounts.iter().filter(is).map(|mount| mount.point.clone()).collect()
    }

    /// Whether a device is what is seen at a mount point: the last that was mounted there.
    pub(crate) fn is_on_top(&self, dev: (u32, u32), node: &Path, point: &Path) -> bool {
        let last = self.mounts.iter().rev().find(|mount| mount.point == point);
        last.is_some_and(|mount| mount.dev == dev || same_node(&mount.source, node))
    }

    /// Whether a device is swap in use.
    pub(crate) fn is_swap(&self, node: &Path) -> bool {
        self.swaps.iter().any(|swap| same_node(swap, node))
    }
}

/// Whether two names are one node; `/dev/mapper/x` is a link to `/dev/dm-0`, or, where there is no udev, a node of its
/// own for the same device.
fn same_node(name: &Path, node: &Path) -> bool {
    let device = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        found.file_type().is_block_device().then(|| found.rdev())
    };
    let linked = || name.canonicalize().is_ok_and(|canonical| canonical == node);
    name == node || linked() || device(name).is_some_and(|number| device(node) == Some(number))
}

fn parse_mount(line: &[u8]) -> Option<Mount> {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
    let mut fields = line.split(|&byte| byte == b' ');
    let dev = std::str::from_utf8(fields.nth(2)?).ok()?;
    let point = unescape(fields.nth(1)?);
    let source = unescape(fields.skip_while(|&field| field != b"-").nth(2)?);
    Some(Mount { dev: parse_dev(dev)?, point, source })
}

/// `major:minor`.
pub(crate) fn parse_dev(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Octal escapes for space, tab, newline and backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_known_by_another_node_of_the_same_device() {
        use nix::sys::stat::{Mode, SFlag, makedev, mknod};
        let dir = tempfile::tempdir().expect("tempdir");
        let [dm, mapper, other] = ["dm-2", "inner-swap", "dm-3"].map(|name| dir.path().join(name));
        for (path, minor) in [(&dm, 2), (&mapper, 2), (&other, 3)] {
            mknod(path, SFlag::S_IFBLK, Mode::S_IRUSR, makedev(253, minor)).expect("mknod");
        }
        let swaps = format!("Filename Type\n{} partition 1 0 -2\n", mapper.display());
        let in_use = InUse::parse(b"", swaps.as_bytes());
        assert!(in_use.is_swap(&dm) && !in_use.is_swap(&other));
    }

    #[test]
    fn what_is_seen_at_a_place_is_what_was_mounted_there_last() {
        let mountinfo = b"30 1 8:1 / /a rw - ext4 /dev/sda1 rw\n31 30 8:2 / /b rw - ext4 /dev/sda2 rw\n\
            32 30 8:3 / /a rw - ext4 /dev/sda3 rw\n";
        let in_use = InUse::parse(mountinfo, b"");
        let seen = |minor: u32, at: &str| in_use.is_on_top((8, minor), Path::new("/dev/none"), Path::new(at));
        assert!(seen(3, "/a") && seen(2, "/b"));
        assert!(!seen(1, "/a") && !seen(2, "/a") && !seen(3, "/b") && !seen(2, "/c"));
        assert!(in_use.is_on_top((0, 40), Path::new("/dev/sda2"), Path::new("/b")), "by its node");
    }

    #[test]
    fn mounts_are_found_by_number_by_source_and_with_escapes() {
        let mountinfo = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
            36 27 259:1 / /mnt/a\\040b rw master:1 - ext3 /dev/vdb1 rw\n\
            37 27 0:41 /sub /srv rw - btrfs /dev/sdc rw\nrubbish\n";
        let in_use =
            InUse::parse(mountinfo, b"Filename Type Size Used Priority\n/dev/sdd2 partition 1 0 -2\n");
        assert_eq!(in_use.mounts_of((259, 1), Path::new("/dev/vdb1")), [PathBuf::from("/mnt/a b")]);
        assert_eq!(in_use.mounts_of((8, 32), Path::new("/dev/sdc")), [PathBuf::from("/srv")]);
        assert!(in_use.mounts_of((8, 33), Path::new("/dev/sdc1")).is_empty());
        assert!(in_use.is_swap(Path::new("/dev/sdd2")));
        assert!(!in_use.is_swap(Path::new("/dev/sdd")));
    }
}
