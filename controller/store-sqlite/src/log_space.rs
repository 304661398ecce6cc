//! The space of the log, written before it is needed. A commit that makes the file of the log grow waits for the journal of the
//! file system as well (on ext4 some 4 ms); one that overwrites what the file has waits for its own bytes only. SQLite keeps the
//! file as large as it once was until the last connection is closed, which removes it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The log until it is copied into the database (16 MiB), and what one commit adds to it then.
const BYTES: u64 = 20 << 20;
/// Bytes that are written at a time.
const BLOCK: u64 = 1 << 20;

/// Write zeros behind the log of the open database at `path`, up to its usual size. To SQLite they are no part of the log: each
/// part has a checksum that begins with a number of this log. Nothing else may write to the database meanwhile. Where there
/// is no room, the log grows as it always did.
pub fn fill(path: &Path) {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let name = PathBuf::from(name);
    let filled = || -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&name)?;
        let length = file.metadata()?.len();
        let written = zeros(&file, length).and_then(|()| file.sync_all());
        if written.is_err() {
            file.set_len(length)?;
        }
        written
    };
    if let Err(error) = filled() {
        tracing::warn!(file = %name.display(), %error, "no space for the log of the database: writes wait for the disk longer");
    }
}

fn zeros(file: &File, from: u64) -> io::Result<()> {
    let zeros = vec![0; usize::try_from(BLOCK).map_err(io::Error::other)?];
    let mut at = from;
    while at < BYTES {
        let count = BLOCK.min(BYTES - at);
        file.write_all_at(&zeros[..usize::try_from(count).map_err(io::Error::other)?], at)?;
        at += count;
    }
    Ok(())
}
