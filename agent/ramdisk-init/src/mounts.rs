//! The file systems that the kernel offers, and the console.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use std::fs::{File, OpenOptions};
use std::path::Path;

/// Files that external hardware managers have fetched.
pub const FETCHED: &str = "/fetched";

/// Source, target, type, options.
const MOUNTS: [(&str, &str, &str, &str); 10] = [
    ("proc", "/proc", "proc", ""),
    ("sysfs", "/sys", "sysfs", ""),
    // The firmware's log of what it measured into a TPM.
    ("securityfs", "/sys/kernel/security", "securityfs", ""),
    // What kernels have left of their crashes.
    ("pstore", "/sys/fs/pstore", "pstore", ""),
    ("devtmpfs", "/dev", "devtmpfs", "mode=0755"),
    ("devpts", "/dev/pts", "devpts", "mode=0620"),
    ("tmpfs", "/run", "tmpfs", "mode=0755,size=16m"),
    ("tmpfs", "/tmp", "tmpfs", "mode=1777,size=16m"),
    ("tmpfs", FETCHED, "tmpfs", "mode=0755,size=25%"),
    // Bounds what hardware managers of vendors may use.
    ("cgroup2", "/sys/fs/cgroup", "cgroup2", ""),
];

/// Where the kernel has a place for the firmware's variables when it was booted by UEFI.
const EFI_VARIABLES: &str = "/sys/firmware/efi/efivars";

/// Of every mount of theirs.
const EFI_FLAGS: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV).union(MsFlags::MS_NOEXEC);

/// Mount the firmware's variables, to be read only. Its module must be loaded.
pub fn mount_efi_variables() {
    if !Path::new(EFI_VARIABLES).is_dir() {
        return;
    }
    let flags = EFI_FLAGS | MsFlags::MS_RDONLY;
    match mount(Some("efivarfs"), EFI_VARIABLES, Some("efivarfs"), flags, None::<&str>) {
        Ok(()) | Err(Errno::EBUSY) => {}
        Err(error) => tracing::warn!(%error, "the firmware's variables cannot be read"),
    }
}

/// Lets `work` write the firmware's variables, which are read-only before and after.
///
/// # Errors
/// When they are not mounted, or cannot be written; `work` has not run then.
pub fn with_writable_efi_variables<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let writable = Writable::new(Path::new(EFI_VARIABLES));
    let _until_the_end =
        writable.map_err(|error| format!("the firmware's variables cannot be written: {error}"))?;
    Ok(work())
}

/// A mount that is read-only again when this is dropped, also by a panic.
struct Writable<'a>(&'a Path);

impl<'a> Writable<'a> {
    fn new(place: &'a Path) -> nix::Result<Self> {
        remount(place, EFI_FLAGS).map(|()| Self(place))
    }
}

impl Drop for Writable<'_> {
    fn drop(&mut self) {
        if let Err(error) = remount(self.0, EFI_FLAGS | MsFlags::MS_RDONLY) {
            tracing::warn!(%error, "{} stays writable", self.0.display());
        }
    }
}

fn remount(place: &Path, flags: MsFlags) -> nix::Result<()> {
    mount(None::<&str>, place, None::<&str>, flags | MsFlags::MS_REMOUNT, None::<&str>)
}

/// Mount them all; what is mounted already stays. Problems are returned, not fatal: without `/dev`
/// there are no disks, and the log says why.
pub fn mount_all() -> Vec<String> {
    let mut problems = Vec::new();
    for (source, target, kind, options) in MOUNTS {
        let made = std::fs::create_dir_all(target);
        let options = Some(options).filter(|options| !options.is_empty());
        let flags = if target.starts_with("/dev") {
            MsFlags::MS_NOSUID
        } else {
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC
        };
        match mount(Some(source), target, Some(kind), flags, options) {
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(error) => problems.push(format!("cannot mount {target}: {error} (directory: {made:?})")),
        }
    }
    problems
}

/// The kernel's console, for the log.
pub fn console() -> Option<File> {
    OpenOptions::new().write(true).open(Path::new("/dev/console")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::mount::{MntFlags, umount2};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn what_is_writable_for_a_while_is_read_only_afterwards() {
        let place = tempfile::tempdir().expect("a directory");
        let flags = EFI_FLAGS | MsFlags::MS_RDONLY;
        mount(Some("tmpfs"), place.path(), Some("tmpfs"), flags, None::<&str>).expect("root");
        let write = || std::fs::write(place.path().join("variable"), "x");
        let before = write();
        let meanwhile = Writable::new(place.path()).map(|_writable| write());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _writable = Writable::new(place.path()).expect("writable");
            panic!("meanwhile");
        }));
        let after = write();
        umount2(place.path(), MntFlags::MNT_DETACH).expect("unmounted");
        assert!(before.is_err() && panicked.is_err());
        meanwhile.expect("writable").expect("written");
        assert_eq!(after.map_err(|error| error.kind()), Err(std::io::ErrorKind::ReadOnlyFilesystem));
    }
}
