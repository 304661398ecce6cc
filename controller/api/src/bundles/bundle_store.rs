//! The files of bundles: a directory in which each is named by its digest. Files that the store does not list are removed.

use crate::error::ApiError;
use axum::body::{Body, HttpBody};
use bundle::{Rejected, Trust, Verified, is_digest};
use http_body_util::BodyExt;
use model::{Bundle, Event, Scope};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use store::ApiStore;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;
use uuid::Uuid;

/// Suffix of files that are still arriving.
const PART: &str = ".part";

/// Stores the files of bundles.
pub struct BundleStore {
    directory: PathBuf,
    trust: Trust,
    max_bytes: u64,
    /// Locked while files and rows change together.
    changing: Mutex<()>,
}

/// A file that has arrived and is not stored yet; removed when dropped.
pub struct Upload(PathBuf);

impl Drop for Upload {
    fn drop(&mut self) {
        // It no longer exists if it was stored.
        let _ = fs::remove_file(&self.0);
    }
}

impl BundleStore {
    /// Opens `directory`, creating it with mode 0700 if it is missing, and removes unfinished uploads of an earlier
    /// process. Files above `max_bytes` and those that `trust` does not accept are rejected. Blocks; call it at start-up.
    pub fn open(directory: PathBuf, trust: Trust, max_bytes: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(PART) {
                fs::remove_file(path)?;
            }
        }
        Ok(Self { directory, trust, max_bytes, changing: Mutex::new(()) })
    }

    /// Receive a file and verify it. `length` is its size in bytes as the client declares it.
    pub async fn receive(&self, mut body: Body, length: Option<u64>) -> Result<(Upload, Verified), ApiError> {
        let known = length.or_else(|| body.size_hint().exact());
        if known.is_some_and(|length| length > self.max_bytes) {
            return Err(self.too_large());
        }
        let upload = Upload(self.directory.join(format!("{}{PART}", Uuid::new_v4())));
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&upload.0);
        let mut file = tokio::fs::File::from_std(file.map_err(|error| failed("kept", &error))?);
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ApiError::invalid(format!("The file broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            size += data.len() as u64;
            if size > self.max_bytes {
                return Err(self.too_large());
            }
            file.write_all(&data).await.map_err(|error| failed("kept", &error))?;
        }
        file.sync_all().await.map_err(|error| failed("kept", &error))?;
        let (mut file, trust) = (file.into_std().await, self.trust.clone());
        let judged = tokio::task::spawn_blocking(move || bundle::verify(&mut file, &trust)).await;
        match judged.map_err(|_| ApiError::internal("judging a bundle"))? {
            Ok(found) => Ok((upload, found)),
            Err(Rejected::Trailer(bundle::trailer::TrailerError::Io(error))) => Err(failed("read", &error)),
            Err(rejected) => Err(ApiError::invalid(format!("The bundle is refused: {rejected}"))),
        }
    }

    /// Store an upload, with an event for the log; returns the bundle that it replaces.
    pub async fn keep(
        &self,
        store: &dyn ApiStore,
        upload: Upload,
        bundle: Bundle,
        event: Event,
    ) -> Result<Option<Bundle>, ApiError> {
        let _changing = self.changing.lock().await;
        // The file first, so that no row names a missing file.
        let path = self.directory.join(&bundle.digest);
        let named = fs::rename(&upload.0, path).and_then(|()| sync(&self.directory));
        named.map_err(|error| failed("kept", &error))?;
        let stored = store.put_bundle(bundle, event).await;
        self.sweep(store).await?;
        Ok(stored?)
    }

    /// Remove a bundle from a scope, or from all, with an event for the log.
    pub async fn remove(
        &self,
        store: &dyn ApiStore,
        digest: &str,
        scope: Option<&Scope>,
        event: Event,
    ) -> Result<Vec<Bundle>, ApiError> {
        let _changing = self.changing.lock().await;
        let gone = store.delete_bundle(digest, scope, event).await?;
        self.sweep(store).await?;
        Ok(gone)
    }

    /// An open file and its size in bytes.
    pub async fn open_file(&self, digest: &str) -> Result<(tokio::fs::File, u64), ApiError> {
        // Anything else could be a path.
        if !is_digest(digest) {
            return Err(ApiError::no_bundle(digest));
        }
        let open = async {
            let file = tokio::fs::File::open(self.directory.join(digest)).await?;
            let size = file.metadata().await?.len();
            Ok((file, size))
        };
        open.await.map_err(|error: io::Error| failed("read", &error))
    }

    /// Remove the files that no row names. Downloads that have begun go on.
    async fn sweep(&self, store: &dyn ApiStore) -> Result<(), ApiError> {
        let bundles = store.bundles().await?;
        let unknown = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            is_digest(&name) && bundles.iter().all(|bundle| bundle.digest != name)
        };
        let sweep = || -> io::Result<()> {
            for entry in fs::read_dir(&self.directory)? {
                let path = entry?.path();
                if unknown(&path) {
                    fs::remove_file(&path)?;
                }
            }
            Ok(())
        };
        sweep().map_err(|error| failed("tidied", &error))
    }

    fn too_large(&self) -> ApiError {
        ApiError::client(413, format!("The bundle is larger than {} bytes", self.max_bytes))
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

/// 500: the controller's disk.
fn failed(what: &str, error: &io::Error) -> ApiError {
    tracing::error!(%error, "bundle directory I/O failed");
    ApiError::client(500, format!("The controller's directory of bundles cannot be {what}; see its log."))
}
