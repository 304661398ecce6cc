//! The logs of ramdisks on the controller's disk: one file per run. Their content is never read here.

use crate::settings::Settings;
use std::fs;
use std::io::{self, Write};
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
}

impl LogArchive {
    /// The directory of the settings; created when the first archive is stored.
    pub fn of(settings: &Settings) -> Self {
        let bytes = settings.logs_max_mib.saturating_mul(1 << 20);
        Self {
            directory: settings.logs_directory.clone(),
            max_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            keep: settings.logs_keep.max(1),
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
    /// When it cannot be written, or `name` is no name of a file here.
    pub fn keep(&self, name: &str, archive: &[u8]) -> io::Result<()> {
        if name.contains('/') || !name.ends_with(SUFFIX) || name.len() <= UUID_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of an archive of logs"));
        }
        if self.directory.as_os_str().is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no directory is configured for logs"));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let part = self.directory.join(format!(".{name}.part"));
        // Left by a controller that died while writing.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        let written = file.write_all(archive).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| fs::rename(&part, self.directory.join(name))) {
            // A partial file is useless and takes up the space that ran out.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        self.prune(name.split_at(UUID_LEN).0)
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
