//! The files of the cache. A file has its name only once it is complete and has the digest of its name.

use image_source::{Checksum, ImageUrl};
use ring::digest::{SHA256, digest};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Suffix of a file that is still arriving.
const PART: &str = ".part";

/// The name of an image in the cache: its URL without secrets, and its digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheName(String);

impl CacheName {
    pub(crate) fn of(url: &ImageUrl, checksum: &Checksum) -> Self {
        Self(format!("{}{}-{}", Self::prefix(url), checksum.algorithm, checksum.value))
    }

    /// What the names of all images of a URL begin with.
    pub(crate) fn prefix(url: &ImageUrl) -> String {
        let hash = digest(&SHA256, url.to_string().as_bytes());
        format!("{}-", image_source::digest::hex(hash.as_ref()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One complete file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// When a run last asked for it.
    pub(crate) used: SystemTime,
}

/// The directory of the cache.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Opens `directory`, creating it with mode 0700 if it is missing, and removes what an earlier process left unfinished.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(PART) {
                tracing::info!(file = %path.display(), "removed an image that had not arrived completely");
                fs::remove_file(path)?;
            }
        }
        Ok(Self { directory })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A complete file, marked as used now.
    pub(crate) fn file(&self, name: &CacheName) -> io::Result<Option<File>> {
        let file = match File::open(self.directory.join(name.as_str())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.set_modified(SystemTime::now())?;
        Ok(Some(file))
    }

    /// A file for what arrives.
    pub(crate) fn begin(&self, name: &CacheName) -> io::Result<Part> {
        let path = self.directory.join(format!("{}{PART}", name.as_str()));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        Ok(Part { file, path, whole: self.directory.join(name.as_str()) })
    }

    /// All complete files.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(found) = entry.metadata() else { continue };
            if found.is_file() && !name.ends_with(PART) {
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Entry { name, bytes: found.len(), used });
            }
        }
        Ok(entries)
    }

    /// Bytes of the files that are still arriving.
    pub(crate) fn arriving(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().ends_with(PART) {
                bytes += entry.metadata().map_or(0, |found| found.len());
            }
        }
        Ok(bytes)
    }

    /// Removes a complete file. Nodes that read it go on.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }
}

/// A file that arrives; removed when dropped before it is complete.
pub(crate) struct Part {
    pub(crate) file: File,
    path: PathBuf,
    whole: PathBuf,
}

impl Part {
    /// It is complete and has the digest of its name.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.whole)?;
        let directory = self.whole.parent().unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It no longer exists if it was finished.
        let _ = fs::remove_file(&self.path);
    }
}
