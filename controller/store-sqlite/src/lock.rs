//! One controller per file: an advisory lock on `<file>.lock`, which holds the pid of its owner.
//!
//! It is a file of its own because closing any descriptor of the database itself would drop the locks
//! SQLite holds on it (fcntl(2)). The kernel releases the lock when the process ends, however it ends; the
//! file stays.

use crate::open_error::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The lock; released when dropped.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Lock the database at `path`.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let lock = lock_path(path);
        let io = |source| OpenError::Io { path: lock.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = std::fs::read_to_string(&lock).ok().and_then(|text| text.trim().parse().ok());
                return Err(OpenError::InUse { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io)?;
        Ok(Self { _file: file })
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
