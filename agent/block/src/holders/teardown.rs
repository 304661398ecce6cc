//! Doing it. Nothing of a disk's content is written.

use crate::list::Roots;
use crate::mounts::InUse;
use crate::sys;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a device may stay busy: programs that probe new devices (udev) close them again within this time.
const BUSY: Duration = Duration::from_secs(5);
/// How long a device that stops in its own time may take.
const GOING: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// One thing to take down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeardownStep {
    /// Stop using a device as swap.
    SwapOff {
        /// Kernel name.
        what: String,
    },
    /// Unmount.
    Unmount {
        /// Kernel name of what is mounted.
        what: String,
        /// Where.
        at: PathBuf,
    },
    /// Stop an md array, running or not.
    StopArray {
        /// Kernel name.
        what: String,
        /// Its level.
        level: String,
    },
    /// Remove a device-mapper device: an LVM volume, an opened LUKS volume, a multipath map, or another.
    Remove {
        /// Kernel name.
        what: String,
        /// Its own name.
        name: String,
        /// Device number, `major:minor`.
        dev: (u32, u32),
    },
    /// Stop a disk with a cache, and the cache.
    StopBcache {
        /// Kernel name.
        what: String,
    },
}

impl fmt::Display for TeardownStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TeardownStep::SwapOff { what } => write!(f, "swap {what}"),
            TeardownStep::Unmount { what, at } => write!(f, "mount of {what} at {}", at.display()),
            TeardownStep::StopArray { what, level } => write!(f, "md array {what} ({level})"),
            TeardownStep::Remove { what, name, .. } => write!(f, "device-mapper device {name} ({what})"),
            TeardownStep::StopBcache { what } => write!(f, "bcache device {what}"),
        }
    }
}

/// What could not be taken down. What came before it in the plan is down; no disk has been written.
#[derive(Debug, thiserror::Error)]
#[error("cannot take down the {step}")]
pub struct TakeDownError {
    /// What.
    pub step: TeardownStep,
    /// Why.
    pub source: io::Error,
}

/// Take all of it down, in the order given.
///
/// # Errors
/// [`TakeDownError`] for the first that cannot be; those after it are not tried.
pub fn take_down(roots: &Roots, steps: &[TeardownStep]) -> Result<(), TakeDownError> {
    for step in steps {
        let deadline = Instant::now() + BUSY;
        let result = loop {
            match once(roots, step) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                    std::thread::sleep(POLL);
                }
                result => break result,
            }
        };
        result.map_err(|source| TakeDownError { step: step.clone(), source })?;
        tracing::info!(%step, "taken down");
    }
    Ok(())
}

fn once(roots: &Roots, step: &TeardownStep) -> io::Result<()> {
    match step {
        TeardownStep::SwapOff { what } => sys::teardown::swap_off(&roots.dev.join(what)),
        TeardownStep::Unmount { what, at } => unmount(roots, what, at),
        TeardownStep::StopArray { what, .. } => sys::teardown::stop_array(&File::open(roots.dev.join(what))?),
        TeardownStep::Remove { what, name, dev } => {
            let now = fs::read_to_string(roots.sys.join("block").join(what).join("dm/name"))?;
            if now.trim_end() != name {
                return Err(io::Error::other(format!("it is {:?} by now", now.trim_end())));
            }
            sys::teardown::remove(&File::open(roots.dev.join("mapper/control"))?, *dev)
        }
        TeardownStep::StopBcache { what } => stop_bcache(roots, what),
    }
}

/// Unmount, and only what was meant: a place may have been mounted over.
fn unmount(roots: &Roots, what: &str, at: &Path) -> io::Result<()> {
    let mounts = InUse::parse(&fs::read(roots.proc.join("self/mountinfo"))?, b"");
    let dev = holder_dev(roots, what)?;
    if !mounts.is_on_top(dev, &roots.dev.join(what.replace('!', "/")), at) {
        return Err(io::Error::other("something else is mounted over it"));
    }
    Ok(nix::mount::umount2(at, nix::mount::MntFlags::UMOUNT_NOFOLLOW)?)
}

/// The device number of a disk, volume or partition.
fn holder_dev(roots: &Roots, what: &str) -> io::Result<(u32, u32)> {
    let text = fs::read_to_string(roots.sys.join("class/block").join(what).join("dev"))?;
    crate::mounts::parse_dev(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The cache where there is one, which stops what it is the cache of; another device of it is then gone already.
fn stop_bcache(roots: &Roots, what: &str) -> io::Result<()> {
    let device = roots.sys.join("block").join(what);
    if !device.exists() {
        return Ok(());
    }
    let cache = device.join("bcache/cache").canonicalize().ok();
    let stopped = cache.clone().unwrap_or_else(|| device.join("bcache"));
    fs::write(stopped.join("stop"), "1")?;
    let deadline = Instant::now() + GOING;
    while device.exists() || cache.as_ref().is_some_and(|cache| cache.exists()) {
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not stop"));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
