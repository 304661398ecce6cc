//! The path of a database.

use crate::open_error::OpenError;
use std::io;
use std::path::{Path, PathBuf};

/// The canonical path of the file, so that every path to it finds the same lock.
pub fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    match path.canonicalize() {
        Ok(found) if found.is_file() => Ok(found),
        Ok(path) => Err(OpenError::Foreign { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or_else(|| io(io::ErrorKind::InvalidFilename.into()))?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(parent.unwrap_or(Path::new(".")).canonicalize().map_err(io)?.join(name))
        }
        Err(error) => Err(io(error)),
    }
}
