//! What a boot of the signed ramdisk measures, computed once for each version of its file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Mutex;
use tpm::Prediction;

/// Largest file that is read, in bytes: several times one.
const LARGEST: u64 = 512 << 20;

/// A prediction, and the version of the file that it is of.
type Known = (Version, Arc<Prediction>);

/// The newest prediction. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Predictions(Arc<Mutex<Option<Known>>>);

/// What changes when a file is replaced or written: its device, inode, bytes and time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version(u64, u64, u64, SystemTime);

impl Version {
    fn of(file: &Path) -> Result<Self, String> {
        let data = file.metadata().map_err(|error| error.to_string())?;
        let modified = data.modified().map_err(|error| error.to_string())?;
        Ok(Self(data.dev(), data.ino(), data.len(), modified))
    }
}

impl Predictions {
    /// That of this file. Callers at the same time wait for one that computes it: some tenths of a second.
    ///
    /// # Errors
    /// It cannot be read, or what it measures is not known.
    pub async fn of(&self, file: &Path) -> Result<Arc<Prediction>, String> {
        let mut known = self.0.lock().await;
        let version = Version::of(file)?;
        if let Some((_, prediction)) = known.as_ref().filter(|(of, _)| *of == version) {
            return Ok(prediction.clone());
        }
        let (path, bytes) = (file.to_owned(), version.2);
        let computed = tokio::task::spawn_blocking(move || predict(&path, bytes)).await;
        let prediction = Arc::new(computed.map_err(|error| error.to_string())??);
        // A file that was written meanwhile is read again.
        if Version::of(file)? == version {
            *known = Some((version, prediction.clone()));
        }
        Ok(prediction)
    }
}

fn predict(file: &Path, bytes: u64) -> Result<Prediction, String> {
    if bytes > LARGEST {
        return Err(format!("it is larger than {} MiB", LARGEST >> 20));
    }
    let content = std::fs::read(file).map_err(|error| error.to_string())?;
    tpm::predict(&content).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use software_tpm::Ramdisk;

    #[tokio::test]
    async fn a_new_file_counts_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("anneal.efi");
        let predictions = Predictions::default();
        assert!(predictions.of(&file).await.unwrap_err().contains("No such file"));
        let put = |line: &str| {
            let new = dir.path().join("new");
            std::fs::write(&new, Ramdisk::new(line, b"initramfs").file).unwrap();
            std::fs::rename(&new, &file).unwrap();
        };
        put("quiet");
        let first = predictions.of(&file).await.unwrap();
        assert!(Arc::ptr_eq(&first, &predictions.of(&file).await.unwrap()), "it is computed once");
        put("other");
        assert_ne!(predictions.of(&file).await.unwrap().command_line, first.command_line);
        std::fs::write(&file, b"MZ").unwrap();
        assert!(predictions.of(&file).await.is_err());
    }
}
