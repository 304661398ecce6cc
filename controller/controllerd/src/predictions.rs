//! What a boot measures: computed once for each version of the files that it boots, and for a boot through a shim with its overlay.

use boot::Overlay;
use boot::medium::{Content, MediumConfig, RamdiskFiles, SHIM, SYSTEMD_BOOT};
use boot_media::{SHIM_OVERLAY_ALIGNMENT, shim_command_line};
use ring::digest::{Context, SHA256};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Mutex;
use tpm::{Digest, Initramfs, Prediction};

/// Largest file that is read, in bytes: several times one.
const LARGEST: u64 = 512 << 20;

/// The newest predictions. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Predictions {
    signed: Arc<Newest<Prediction>>,
    through_shim: Arc<Newest<Loaded>>,
}

/// The last value that was computed, and the versions of the files that it is of.
#[derive(Debug)]
struct Newest<T>(Mutex<Option<(Vec<Version>, Arc<T>)>>);

/// What a boot through a shim measures without the overlay.
#[derive(Debug)]
struct Loaded {
    /// With an initrd that is not its own.
    prediction: Prediction,
    /// SHA-256 of the archives, not finished: the overlay comes behind them.
    archives: Hash,
}

/// A SHA-256 that is not finished.
#[derive(Clone)]
struct Hash(Context);

/// What changes when a file is replaced or written: its path, device, inode, bytes and time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version(PathBuf, u64, u64, u64, SystemTime);

impl Version {
    fn of(file: &Path) -> Result<Self, String> {
        let data = file.metadata().map_err(|error| named(file, &error))?;
        let modified = data.modified().map_err(|error| named(file, &error))?;
        Ok(Self(file.to_owned(), data.dev(), data.ino(), data.len(), modified))
    }

    fn of_all(files: &[PathBuf]) -> Result<Vec<Self>, String> {
        files.iter().map(|file| Self::of(file)).collect()
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        let Self(file, _, _, bytes, _) = self;
        if *bytes > LARGEST {
            return Err(format!("{}: it is larger than {} MiB", file.display(), LARGEST >> 20));
        }
        std::fs::read(file).map_err(|error| named(file, &error))
    }
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + Sync + 'static> Newest<T> {
    /// That of these files. Callers at the same time wait for one that computes it: some tenths of a second.
    async fn of(
        &self,
        files: Vec<PathBuf>,
        compute: impl FnOnce(&[Version]) -> Result<T, String> + Send + 'static,
    ) -> Result<Arc<T>, String> {
        let mut known = self.0.lock().await;
        let versions = Version::of_all(&files)?;
        if let Some((_, value)) = known.as_ref().filter(|(of, _)| *of == versions) {
            return Ok(value.clone());
        }
        let of = versions.clone();
        let computed = tokio::task::spawn_blocking(move || compute(&of)).await;
        let value = Arc::new(computed.map_err(|error| error.to_string())??);
        // Files that were written meanwhile are read again.
        if Version::of_all(&files)? == versions {
            *known = Some((versions, value.clone()));
        }
        Ok(value)
    }
}

impl Predictions {
    /// That of a signed ramdisk.
    ///
    /// # Errors
    /// It cannot be read, or what it measures is not known.
    pub async fn of(&self, file: &Path) -> Result<Arc<Prediction>, String> {
        let compute = |versions: &[Version]| {
            let [version] = versions else { return Err("a signed ramdisk is one file".to_owned()) };
            tpm::predict(&version.read()?).map_err(|error| named(&version.0, &error))
        };
        self.signed.of(vec![file.to_owned()], compute).await
    }

    /// That of a boot through a shim.
    ///
    /// # Errors
    /// A file cannot be read, or what it measures is not known.
    pub async fn through_shim(
        &self,
        medium: &MediumConfig,
        files: &RamdiskFiles,
        content: &Content,
        overlay: &Overlay,
    ) -> Result<Prediction, String> {
        let loaders = [SHIM, SYSTEMD_BOOT].map(|name| medium.loader_dir.join(name));
        let all = [&loaders[..], std::slice::from_ref(&files.kernel), &files.archives(content)].concat();
        let line = shim_command_line(&medium.arguments);
        let loaded = self.through_shim.of(all, move |versions| Loaded::read(versions, &line)).await?;
        loaded.with(overlay)
    }
}

impl Loaded {
    /// Of two loaders, the kernel, and the archives.
    fn read(versions: &[Version], line: &str) -> Result<Self, String> {
        let [shim, systemd_boot, kernel, archives @ ..] = versions else {
            return Err("a boot through a shim has two loaders and a kernel".to_owned());
        };
        let [shim, systemd_boot, kernel] = [shim.read()?, systemd_boot.read()?, kernel.read()?];
        let prediction = tpm::predict_loaded(&[&shim, &systemd_boot], &kernel, line, Digest::ZERO)
            .map_err(|error| error.to_string())?;
        let (mut hash, mut bytes) = (Context::new(&SHA256), 0);
        for archive in archives {
            let content = archive.read()?;
            hash.update(&content);
            bytes += content.len();
        }
        let gap = bytes.next_multiple_of(SHIM_OVERLAY_ALIGNMENT) - bytes;
        hash.update(&[0; SHIM_OVERLAY_ALIGNMENT][..gap]);
        Ok(Self { prediction, archives: Hash(hash) })
    }

    fn with(&self, overlay: &Overlay) -> Result<Prediction, String> {
        let mut hash = self.archives.0.clone();
        hash.update(overlay.archive());
        let digest = Digest::from_slice(hash.finish().as_ref()).ok_or("a SHA-256 of another length")?;
        Ok(Prediction { initramfs: Initramfs::Initrd(digest), ..self.prediction.clone() })
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

fn named(file: &Path, error: &dyn std::error::Error) -> String {
    format!("{}: {error}", file.display())
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

    #[tokio::test]
    async fn a_boot_through_a_shim_measures_loaders_kernel_command_line_and_initrd() {
        let dir = tempfile::tempdir().unwrap();
        let programs =
            ["shim", "loader", "kernel"].map(|text| software_tpm::program(&[(".text", text.as_bytes())]));
        let put = |name: &str, bytes: &[u8]| {
            let file = dir.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            file
        };
        put(SHIM, &programs[0]);
        put(SYSTEMD_BOOT, &programs[1]);
        let files = RamdiskFiles {
            kernel: put("vmlinuz", &programs[2]),
            initramfs: put("initramfs", b"initramfs"),
            rescue: put("rescue", b"login"),
            firmware: None,
        };
        let medium = MediumConfig {
            loader_dir: dir.path().to_owned(),
            arguments: "quiet ".to_owned(),
            signed_uki: None,
        };
        let predictions = Predictions::default();
        let predicted = async |overlay: &Overlay, rescue: bool| {
            let content = Content { rescue, through_shim: true, ..Content::default() };
            predictions.through_shim(&medium, &files, &content, overlay).await
        };
        let overlay = Overlay::new("anneal.boot-nonce=1", None).unwrap();
        for (rescue, archives) in [(false, &b"initramfs\0\0\0"[..]), (true, b"initramfslogin\0\0")] {
            let initrd = [archives, overlay.archive()].concat();
            let line = "initrd=\\initrd.img initrd=\\node.img quiet";
            let [shim, loader, kernel] = &programs;
            let expected = tpm::predict_loaded(&[shim, loader], kernel, line, Digest::of(&initrd)).unwrap();
            assert_eq!(predicted(&overlay, rescue).await.unwrap(), expected, "{rescue}");
        }
        let other = Overlay::new("anneal.boot-nonce=2", None).unwrap();
        assert_ne!(predicted(&other, false).await, predicted(&overlay, false).await, "of another boot");
        put(SYSTEMD_BOOT, b"MZ");
        assert!(predicted(&overlay, false).await.unwrap_err().contains("ends too early"));
        std::fs::remove_file(dir.path().join(SHIM)).unwrap();
        assert!(predicted(&overlay, false).await.unwrap_err().contains(SHIM));
    }
}
