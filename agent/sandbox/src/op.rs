//! One thing that the child does to its surroundings before it is confined. Made before the clone, so that doing it
//! needs no memory.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// mount(2).
    Mount {
        /// Device, or what is bound.
        source: Option<CString>,
        /// Where.
        target: CString,
        /// File system type.
        kind: Option<CString>,
        /// `MS_*`.
        flags: libc::c_ulong,
        /// Options.
        data: Option<CString>,
    },
    /// mkdir(2), mode 0755.
    Directory(CString),
    /// An empty file, for something to be bound on.
    File(CString),
    /// mknod(2) and chown(2).
    Node {
        /// Where.
        path: CString,
        /// Type and permissions.
        mode: libc::mode_t,
        /// Device number.
        device: libc::dev_t,
        /// Owner.
        user: u32,
    },
    /// symlink(2).
    Link {
        /// What it points to.
        to: CString,
        /// Where.
        path: CString,
    },
    /// umount2(2), also of what is in use.
    Unmount(CString),
    /// chdir(2).
    Enter(CString),
    /// sethostname(2).
    HostName(CString),
    /// The working directory becomes the root by pivot_root(2), and the old one is unmounted.
    PivotHere,
    /// The working directory, a mount, is moved onto `/` and becomes the root: for the initial ramfs, which
    /// pivot_root(2) refuses. The old root stays mounted below, out of reach without chroot(2).
    MoveHere,
}

impl Op {
    /// Do it. Allocates nothing.
    ///
    /// # Errors
    /// The `errno` of the call that failed.
    pub(crate) fn perform(&self) -> Result<(), i32> {
        match self {
            Self::Mount { source, target, kind, flags, data } => {
                let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
                // SAFETY: all pointers are null or strings that live as long as `self`.
                check(unsafe {
                    libc::mount(pointer(source), target.as_ptr(), pointer(kind), *flags, pointer(data).cast())
                })
            }
            // SAFETY: the path is a string that lives as long as `self`.
            Self::Directory(path) => check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }),
            Self::File(path) => {
                // SAFETY: as above.
                let file = unsafe {
                    libc::open(path.as_ptr(), libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC, 0o644)
                };
                check(file)?;
                // SAFETY: just opened here and used nowhere else.
                check(unsafe { libc::close(file) })
            }
            Self::Node { path, mode, device, user } => {
                // SAFETY: as above.
                check(unsafe { libc::mknod(path.as_ptr(), *mode, *device) })?;
                // SAFETY: as above. mknod's mode is cut by the umask, which is the host's.
                check(unsafe { libc::chmod(path.as_ptr(), *mode & 0o777) })?;
                // SAFETY: as above.
                check(unsafe { libc::chown(path.as_ptr(), *user, *user) })
            }
            // SAFETY: both paths are strings that live as long as `self`.
            Self::Link { to, path } => check(unsafe { libc::symlink(to.as_ptr(), path.as_ptr()) }),
            // SAFETY: as above.
            Self::Unmount(path) => match check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }) {
                // The host has unmounted it in the meantime.
                Err(libc::EINVAL | libc::ENOENT) => Ok(()),
                result => result,
            },
            // SAFETY: as above.
            Self::Enter(path) => check(unsafe { libc::chdir(path.as_ptr()) }),
            // SAFETY: pointer and length are of one string.
            Self::HostName(name) => check(unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) }),
            Self::PivotHere => pivot_here(),
            Self::MoveHere => move_here(),
        }
    }
}

const HERE: &CStr = c".";
const ROOT: &CStr = c"/";

fn pivot_here() -> Result<(), i32> {
    // pivot_root(2), "pivot_root(".", ".")": the old root lands on top of the new one.
    // SAFETY: both paths are static strings.
    let pivoted = unsafe { libc::syscall(libc::SYS_pivot_root, HERE.as_ptr(), HERE.as_ptr()) };
    check(if pivoted == 0 { 0 } else { -1 })?;
    // SAFETY: a static string.
    check(unsafe { libc::umount2(HERE.as_ptr(), libc::MNT_DETACH) })?;
    // SAFETY: a static string.
    check(unsafe { libc::chdir(ROOT.as_ptr()) })
}

fn move_here() -> Result<(), i32> {
    let none = std::ptr::null();
    // SAFETY: static strings, and null where nothing is needed.
    check(unsafe { libc::mount(HERE.as_ptr(), ROOT.as_ptr(), none, libc::MS_MOVE, none.cast()) })?;
    // SAFETY: a static string.
    check(unsafe { libc::chroot(HERE.as_ptr()) })?;
    // SAFETY: a static string.
    check(unsafe { libc::chdir(ROOT.as_ptr()) })
}

/// The `errno` of a call that answered -1.
pub(crate) fn check(answer: libc::c_int) -> Result<(), i32> {
    if answer == -1 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(()) }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &CString| text.to_string_lossy().into_owned();
        match self {
            Self::Mount { source, target, kind, flags, .. } => {
                let what = kind.as_ref().or(source.as_ref()).map_or_else(|| "mount".into(), text);
                write!(f, "mount {what} on {} (flags {flags:#x})", text(target))
            }
            Self::Directory(path) => write!(f, "make directory {}", text(path)),
            Self::File(path) => write!(f, "make file {}", text(path)),
            Self::Node { path, device, .. } => {
                write!(
                    f,
                    "make device node {} ({}:{})",
                    text(path),
                    libc::major(*device),
                    libc::minor(*device)
                )
            }
            Self::Link { to, path } => write!(f, "link {} to {}", text(path), text(to)),
            Self::Unmount(path) => write!(f, "unmount {}", text(path)),
            Self::Enter(path) => write!(f, "enter {}", text(path)),
            Self::HostName(name) => write!(f, "set the host name {}", text(name)),
            Self::PivotHere => f.write_str("pivot_root"),
            Self::MoveHere => f.write_str("move the root"),
        }
    }
}
