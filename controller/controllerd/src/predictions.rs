//! What a boot measures: of the signed ramdisk, computed once for each version of its file; through a shim, computed for each boot.

use boot::Overlay;
use boot::medium::{Content, MediumConfig, RamdiskFiles, SHIM, SYSTEMD_BOOT};
use boot_media::shim_command_line;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Mutex;
use tpm::{Digest, Prediction};

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

/// The prediction of a boot through a shim. Callers at the same time wait for each other: each reads the whole ramdisk.
///
/// # Errors
/// A file cannot be read, or what it measures is not known.
pub async fn through_shim(
    medium: MediumConfig,
    files: RamdiskFiles,
    content: Content,
    overlay: Overlay,
) -> Result<Prediction, String> {
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    let computed = tokio::task::spawn_blocking(move || loaded(&medium, &files, &content, &overlay)).await;
    computed.map_err(|error| error.to_string())?
}

fn loaded(
    medium: &MediumConfig,
    files: &RamdiskFiles,
    content: &Content,
    overlay: &Overlay,
) -> Result<Prediction, String> {
    let read = |file: &Path| {
        let named = |why: String| format!("{}: {why}", file.display());
        let bytes = file.metadata().map_err(|error| named(error.to_string()))?.len();
        if bytes > LARGEST {
            return Err(named(format!("it is larger than {} MiB", LARGEST >> 20)));
        }
        std::fs::read(file).map_err(|error| named(error.to_string()))
    };
    let [shim, systemd_boot] = [SHIM, SYSTEMD_BOOT].map(|name| read(&medium.loader_dir.join(name)));
    let mut initrd = Vec::new();
    for archive in files.archives(content) {
        initrd.extend(read(&archive)?);
    }
    // systemd-boot puts each file at a multiple of 4.
    initrd.resize(initrd.len().next_multiple_of(4), 0);
    initrd.extend(overlay.archive());
    let line = shim_command_line(&medium.arguments);
    let kernel = read(&files.kernel)?;
    tpm::predict_loaded(&[&shim?, &systemd_boot?], &kernel, &line, Digest::of(&initrd))
        .map_err(|error| error.to_string())
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
        let predicted = async |overlay: &Overlay, rescue: bool| {
            let content = Content { rescue, through_shim: true, ..Content::default() };
            through_shim(medium.clone(), files.clone(), content, overlay.clone()).await
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
