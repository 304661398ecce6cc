//! The logs of ramdisks on the controller's disk: one file per run. Their content is never read here.

use crate::settings::Settings;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Digits of the UUID that a file's name begins with.
const UUID_LEN: usize = 36;
/// The end of each file name.
pub const SUFFIX: &str = ".tar.gz";

/// A directory of archives, of each node the newest few.
#[derive(Debug, Clone)]
pub struct LogArchive {
    directory: PathBuf,
    max_bytes: usize,
    keep: usize,
    total_bytes: u64,
    min_free_bytes: u64,
}

impl LogArchive {
    /// The directory of the settings; created when the first archive is stored.
    pub fn of(settings: &Settings) -> Self {
        let bytes = settings.logs_max_mib.saturating_mul(1 << 20);
        Self {
            directory: settings.logs_directory.clone(),
            max_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            keep: settings.logs_keep.max(1),
            total_bytes: settings.logs_total_mib.saturating_mul(1 << 20),
            min_free_bytes: settings.logs_min_free_mib.saturating_mul(1 << 20),
        }
    }

    /// Largest archive that is kept, in bytes.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps `archive` whole or not at all, in place of one of the same name; the node's oldest give way. `name` is
    /// that of `stages/logs.rs`, made of nothing that a node says.
    ///
    /// # Errors
    /// When it cannot be written, too little space would be left, or `name` is no name of a file here.
    pub fn keep(&self, name: &str, archive: &[u8]) -> io::Result<()> {
        let mut incoming = self.receive(name)?;
        incoming.write(archive)?;
        incoming.keep()
    }

    /// Begins to receive an archive of this name.
    ///
    /// # Errors
    /// As [`LogArchive::keep`].
    pub fn receive(&self, name: &str) -> io::Result<IncomingArchive> {
        if name.contains('/') || !name.ends_with(SUFFIX) || name.len() <= UUID_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of an archive of logs"));
        }
        if self.directory.as_os_str().is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no directory is configured for logs"));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.check_floor(0)?;
        let part = self.directory.join(format!(".{name}.part"));
        // Left by a controller that died while writing.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        Ok(IncomingArchive { archive: self.clone(), name: name.to_owned(), part, file, size: 0 })
    }

    /// Delete the oldest archives of all nodes until one of this size fits below the total.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(SUFFIX) && name.is_char_boundary(UUID_LEN) && name.len() > UUID_LEN {
                kept.push((name.split_at(UUID_LEN).1.to_owned(), entry.path(), entry.metadata()?.len()));
            }
        }
        let sizes: Vec<u64> = {
            kept.sort_unstable();
            kept.iter().map(|(_, _, size)| *size).collect()
        };
        let Some(excess) = excess(&sizes, size, self.total_bytes) else {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("it is larger than all logs together may be, {} MiB", self.total_bytes >> 20),
            ));
        };
        kept[..excess].iter().try_for_each(|(_, path, _)| fs::remove_file(path))
    }

    /// An error if so many bytes more would leave too little space for the database, which may be on the same file system.
    fn check_floor(&self, size: u64) -> io::Result<()> {
        let disk = nix::sys::statvfs::statvfs(&self.directory)?;
        let free = disk.blocks_available().saturating_mul(disk.fragment_size());
        if free < size.saturating_add(self.min_free_bytes) {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("less than {} MiB would be left free", self.min_free_bytes >> 20),
            ));
        }
        Ok(())
    }

    /// In a file name the time follows the node, so names sort by age.
    fn prune(&self, node: &str) -> io::Result<()> {
        let mut of_node = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            of_node.extend(name.into_string().ok().filter(|n| n.starts_with(node) && n.ends_with(SUFFIX)));
        }
        of_node.sort_unstable();
        let old = of_node.len().saturating_sub(self.keep);
        of_node[..old].iter().try_for_each(|name| fs::remove_file(self.directory.join(name)))
    }
}

/// An archive that is being received, in a file that is no archive yet. Dropping it deletes the file: a part is useless, and
/// takes up space that may have run out.
pub struct IncomingArchive {
    archive: LogArchive,
    name: String,
    part: PathBuf,
    file: fs::File,
    size: u64,
}

impl IncomingArchive {
    /// Adds bytes.
    ///
    /// # Errors
    /// The archive becomes too large, too little space would be left, or the disk fails.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.size = self.size.saturating_add(count);
        let most = u64::try_from(self.archive.max_bytes).unwrap_or(u64::MAX);
        if self.size > most {
            let text = format!("the agent's logs have more than {} MiB", most >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        self.archive.check_floor(count)?;
        self.file.write_all(bytes)
    }

    /// Keeps it whole, in place of one of the same name; the oldest give way.
    ///
    /// # Errors
    /// It does not fit below the total of all archives, or the disk fails.
    pub fn keep(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.archive.make_room(self.size)?;
        fs::rename(&self.part, self.archive.directory.join(&self.name))?;
        self.archive.prune(self.name.split_at(UUID_LEN).0)
    }
}

impl Drop for IncomingArchive {
    fn drop(&mut self) {
        // After it was kept there is none of this name.
        let _ = fs::remove_file(&self.part);
    }
}

/// How many of the archives of these sizes, oldest first, must go for a new one of `size`; `None` if it never fits.
fn excess(sizes: &[u64], size: u64, total: u64) -> Option<usize> {
    let room = total.checked_sub(size)?;
    let mut left: u64 = sizes.iter().sum();
    let mut gone = 0;
    for size in sizes {
        if left <= room {
            break;
        }
        left -= size;
        gone += 1;
    }
    Some(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(directory: &Path, total_mib: u64, min_free_mib: u64) -> LogArchive {
        LogArchive::of(&Settings {
            logs_directory: directory.to_owned(),
            logs_total_mib: total_mib,
            logs_min_free_mib: min_free_mib,
            ..Settings::default()
        })
    }

    fn name(node: u8, time: u8) -> String {
        format!("{}_2026-01-01-00-00-{time:02}_clean{SUFFIX}", uuid::Uuid::from_u128(node.into()))
    }

    fn names(directory: &Path) -> Vec<String> {
        let found = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = found.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_of_all_nodes_give_way_to_a_new_archive() {
        let dir = tempfile::tempdir().unwrap();
        let logs = archive(dir.path(), 2, 0);
        let bytes = vec![0; 700 << 10];
        for (node, time) in [(9, 1), (1, 2), (5, 3)] {
            logs.keep(&name(node, time), &bytes).unwrap();
        }
        assert_eq!(names(dir.path()), [name(1, 2), name(5, 3)], "that of node 9 was the oldest");
        let error = logs.keep(&name(1, 4), &vec![0; 3 << 20]).unwrap_err();
        assert!(error.to_string().contains("2 MiB"), "{error}");
        assert_eq!(names(dir.path()).len(), 2, "nothing is deleted for what never fits");
    }

    #[test]
    fn an_archive_that_would_use_up_the_disk_is_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let error = archive(dir.path(), 100, u64::MAX >> 20).keep(&name(1, 1), b"logs").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn no_more_goes_than_must() {
        assert_eq!(excess(&[], 5, 5), Some(0));
        assert_eq!(excess(&[], 6, 5), None);
        assert_eq!(excess(&[2, 2, 2], 4, 10), Some(0));
        assert_eq!(excess(&[2, 2, 2], 5, 10), Some(1));
        assert_eq!(excess(&[2, 2, 2], 10, 10), Some(3));
    }
}
