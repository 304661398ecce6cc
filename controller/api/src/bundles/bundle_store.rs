//! The files: a directory in which each is named by its digest. What the store does not know of is removed.

use crate::error::ApiError;
use axum::body::{Body, HttpBody};
use bundle::{Rejected, Trust, Verified, is_digest};
use http_body_util::BodyExt;
use model::{Bundle, Scope};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use store::ApiStore;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;
use uuid::Uuid;

/// End of the names of files that are still arriving.
const PART: &str = ".part";

/// Keeps the files of bundles.
pub struct BundleStore {
    directory: PathBuf,
    trust: Trust,
    max_bytes: u64,
    /// Held while files and rows change together.
    changing: Mutex<()>,
}

/// A file that has arrived and is not yet kept; removed when nobody keeps it.
pub struct Upload(PathBuf);

impl Drop for Upload {
    fn drop(&mut self) {
        // It is not there any more when it was kept.
        let _ = fs::remove_file(&self.0);
    }
}

impl BundleStore {
    /// In `directory`, which is made (mode 0700) where there is none; parts of an earlier process are removed. Files
    /// above `max_bytes` and those that `trust` does not accept are refused. Blocks; meant for start-up.
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

    /// Take a file in and judge it. `length` is what the client says of its size.
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

    /// Keep what has arrived; what it took the place of.
    pub async fn keep(
        &self,
        store: &dyn ApiStore,
        upload: Upload,
        bundle: Bundle,
    ) -> Result<Option<Bundle>, ApiError> {
        let _changing = self.changing.lock().await;
        // The file first: a row never tells of one that is not there.
        let path = self.directory.join(&bundle.digest);
        let named = fs::rename(&upload.0, path).and_then(|()| sync(&self.directory));
        named.map_err(|error| failed("kept", &error))?;
        let stored = store.put_bundle(bundle).await;
        self.sweep(store).await?;
        Ok(stored?)
    }

    /// Take a bundle away from a scope, or from all.
    pub async fn remove(
        &self,
        store: &dyn ApiStore,
        digest: &str,
        scope: Option<&Scope>,
    ) -> Result<Vec<Bundle>, ApiError> {
        let _changing = self.changing.lock().await;
        let gone = store.delete_bundle(digest, scope).await?;
        self.sweep(store).await?;
        Ok(gone)
    }

    /// A file to be read, and its size.
    pub async fn open_file(&self, digest: &str) -> Result<(tokio::fs::File, u64), ApiError> {
        // What is no digest may be a path.
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

    /// Remove the files that no row tells of. Who is reading one goes on reading it.
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
    tracing::error!(%error, "the directory of bundles");
    ApiError::client(500, format!("The controller's directory of bundles cannot be {what}; see its log."))
}
