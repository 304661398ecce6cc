//! What a plan needs to know of the host, and of a program's root.

use crate::error::Error;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// First of the users that programs run as; far from any that a host gives to people or containers.
const FIRST_USER: u32 = 1_700_000_000;
/// Users of one agent. Two agents of one host differ by their process id.
const USERS: u32 = 64;

/// The host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Where cgroup v2 is mounted, with its controllers.
    pub cgroup: Option<(PathBuf, Vec<String>)>,
    /// `/` is the initial ramfs, which pivot_root(2) refuses.
    pub root_is_rootfs: bool,
    /// Where file systems are mounted except on `/`, the latest first.
    pub mount_points: Vec<PathBuf>,
    /// A user that nothing else runs as.
    pub user: u32,
}

impl Host {
    /// Look. What cannot be read is taken as absent.
    pub fn look() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let turn = NEXT.fetch_add(1, Ordering::Relaxed) % USERS;
        Self {
            cgroup: cgroup_mount(&mounts).map(|path| {
                let controllers = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
                (path, controllers.split_whitespace().map(str::to_owned).collect())
            }),
            root_is_rootfs: root_is_rootfs(&mounts),
            mount_points: mount_points(&mounts),
            // At most 4194304 process ids (proc(5), pid_max) of 64 users each.
            user: FIRST_USER + (std::process::id() % (1 << 22)) * USERS + turn,
        }
    }
}

/// File system type, mount point and whether it is `/`, by line of mountinfo (proc(5)).
fn mounted(mountinfo: &str) -> impl Iterator<Item = (&str, &str)> {
    mountinfo.lines().filter_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        Some((tail.split(' ').next()?, head.split(' ').nth(4)?))
    })
}

fn cgroup_mount(mountinfo: &str) -> Option<PathBuf> {
    mounted(mountinfo).find(|(kind, _)| *kind == "cgroup2").map(|(_, path)| PathBuf::from(path))
}

fn mount_points(mountinfo: &str) -> Vec<PathBuf> {
    let mut points: Vec<_> = mounted(mountinfo).map(|(_, path)| path).filter(|path| *path != "/").collect();
    points.reverse();
    points.into_iter().map(unescaped).collect()
}

/// A path of mountinfo, in which white space and backslashes are octal: `\\040` (proc(5)).
fn unescaped(path: &str) -> PathBuf {
    let mut parts = path.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => bytes.extend([&[code], &part.as_bytes()[3..]].concat()),
            None => bytes.extend([b"\\", part.as_bytes()].concat()),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The last mount on `/` counts: an initrd may have been covered.
fn root_is_rootfs(mountinfo: &str) -> bool {
    mounted(mountinfo).filter(|(_, path)| *path == "/").last().is_some_and(|(kind, _)| kind == "rootfs")
}

/// Something at the top of a program's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What something at the top of a root is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link to this.
    Link(PathBuf),
}

/// The entries of a root, by name. Other kinds than those of [`EntryKind`] are left out.
///
/// # Errors
/// When it cannot be read, or a name is not UTF-8.
pub fn entries(root: &Path) -> Result<Vec<Entry>, Error> {
    let failed = |error| Error::host(format!("root {}", root.display()), error);
    let mut entries = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_string().map_err(|name| {
            Error::Refused(format!("root {}: the name {name:?} is not UTF-8", root.display()))
        })?;
        let kind = entry.file_type().map_err(failed)?;
        let kind = if kind.is_dir() {
            EntryKind::Directory
        } else if kind.is_file() {
            EntryKind::File
        } else if kind.is_symlink() {
            EntryKind::Link(fs::read_link(entry.path()).map_err(failed)?)
        } else {
            continue;
        };
        entries.push(Entry { name, kind });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        let ramdisk = "1 1 0:1 / / rw - rootfs none rw\n\
                       22 1 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n\
                       30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroup_mount(ramdisk), Some("/sys/fs/cgroup".into()));
        assert!(root_is_rootfs(ramdisk));
        let line = r"31 22 253:0 / /mnt/a\040b rw - ext4 /dev/sda1 rw";
        let points = mount_points(&format!("{ramdisk}{line}\n"));
        assert_eq!(points, ["/mnt/a b", "/sys/fs/cgroup", "/sys"].map(PathBuf::from));
        let covered = format!("{ramdisk}40 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        assert!(!root_is_rootfs(&covered));
        assert_eq!(cgroup_mount("1 1 8:1 / / rw - ext4 /dev/sda1 rw\n"), None);
    }
}
