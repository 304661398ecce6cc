//! The Unix socket of operators: the file system decides who may open it.

use anyhow::{Context, Result, ensure};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use tokio::net::UnixListener;

/// Owner and group may connect.
const MODE: u32 = 0o660;

/// Listen at `path`. A socket that a process left behind is replaced.
pub fn bind(path: &Path) -> Result<UnixListener> {
    let name = || format!("api.socket {}", path.display());
    match fs::symlink_metadata(path) {
        Ok(found) => {
            ensure!(found.file_type().is_socket(), "{}: is there already, and is no socket", name());
            let used = std::os::unix::net::UnixStream::connect(path).is_ok();
            ensure!(!used, "{}: another process listens there", name());
            fs::remove_file(path).with_context(name)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(name),
    }
    // Until the mode is set, no umask lets others connect: that takes the right to write.
    let listener = UnixListener::bind(path).with_context(name)?;
    fs::set_permissions(path, Permissions::from_mode(MODE)).with_context(name)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_was_left_is_replaced_and_one_in_use_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        let first = bind(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, MODE);
        let error = format!("{:#}", bind(&path).unwrap_err());
        assert!(error.contains("another process listens there"), "{error}");
        drop(first);
        bind(&path).unwrap();
        let file = dir.path().join("notes");
        fs::write(&file, "text").unwrap();
        let error = format!("{:#}", bind(&file).unwrap_err());
        assert!(error.contains("no socket") && file.exists(), "{error}");
    }
}
