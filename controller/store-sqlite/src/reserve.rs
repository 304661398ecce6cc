//! Space kept for deletes. Every write first goes to the log, so on a full disk nothing could be deleted either. A file
//! next to the database holds the space; it is removed for the time of a delete that finds the disk full.

use nix::fcntl::posix_fallocate;
use rusqlite::ErrorCode;
use std::error::Error;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::StoreError;

/// Room for the log of some hundred deletes; the log has space of its own, too, once the writer was idle (`log_space.rs`).
const BYTES: i64 = 8 << 20;

/// The file of one database.
#[derive(Clone)]
pub struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// The reserve of the database at `path`; not filled.
    pub fn of(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".reserve");
        Self { path: PathBuf::from(name) }
    }

    /// Take the space if the reserve does not have it; without room, leave things as they are until the next call.
    pub fn fill(&self) {
        let length = std::fs::metadata(&self.path).map(|metadata| metadata.len());
        if length.is_ok_and(|length| length == BYTES.unsigned_abs()) {
            return;
        }
        let filled = || -> io::Result<()> {
            let file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
            Ok(posix_fallocate(&file, 0, BYTES)?)
        };
        if let Err(error) = filled() {
            tracing::warn!(file = %self.path.display(), %error, "cannot reserve space for deletes");
            self.release();
        }
    }

    /// Give the space back to the file system. Returns whether there was any.
    pub fn release(&self) -> bool {
        std::fs::remove_file(&self.path).is_ok()
    }
}

/// Whether a call failed because the disk is full.
pub fn is_full(error: &StoreError) -> bool {
    let StoreError::Failed { source: Some(cause), .. } = error else { return false };
    let mut cause: Option<&dyn Error> = Some(&**cause);
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(is_full_sqlite) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The same of an error of SQLite.
pub fn is_full_sqlite(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::Cause;

    #[test]
    fn the_space_is_taken_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(&dir.path().join("db"));
        let file = dir.path().join("db.reserve");
        assert!(!reserve.release());
        for _ in 0..2 {
            reserve.fill();
            assert_eq!(std::fs::metadata(&file).unwrap().len(), BYTES.unsigned_abs());
        }
        assert!(reserve.release() && !file.exists());
        // One that was cut short is filled.
        std::fs::write(&file, "x").unwrap();
        reserve.fill();
        assert_eq!(std::fs::metadata(&file).unwrap().len(), BYTES.unsigned_abs());
    }

    #[test]
    fn a_full_disk_is_distinguished_from_other_failures() {
        let failed = |code| -> StoreError {
            let source: Cause =
                Arc::new(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None));
            StoreError::Failed { doing: "committing".to_owned(), source: Some(source) }
        };
        assert!(is_full(&failed(rusqlite::ffi::SQLITE_FULL)));
        assert!(!is_full(&failed(rusqlite::ffi::SQLITE_CORRUPT)));
        assert!(!is_full(&StoreError::failed("x")));
    }
}
