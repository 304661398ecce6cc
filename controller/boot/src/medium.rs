//! The boot medium of one boot over HTTP: the template that all share, the overlay of the boot, and the files of kernel and
//! initramfs, or of the signed program, read where they are. No medium is ever written to a file.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{HeaderMap, Response};
use boot_media::{Loaders, Overlay, Piece, Sizes, Source, Template};
use http_server::file::{self, RangeAnswer};
use tokio::fs::{self, File};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};

/// What the media are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediumConfig {
    /// Directory of the boot loaders: `isolinux.bin`, `ldlinux.c32`, `linuxx64.efi.stub`.
    pub loader_dir: PathBuf,
    /// The kernel arguments that all boots have. The others are in the overlay.
    pub arguments: String,
    /// The signed program that the media carry instead of loaders, kernel and initramfs.
    pub signed_uki: Option<PathBuf>,
}

/// Makes templates, and streams media.
pub struct Media {
    config: MediumConfig,
    kernel: PathBuf,
    initramfs: PathBuf,
    rescue: PathBuf,
    /// The newest template without and with the archive of a rescue.
    made: [Mutex<Option<Made>>; 2],
}

/// A template, and the files that it was made for.
#[derive(Clone)]
struct Made {
    files: Vec<Version>,
    template: Arc<Template>,
}

/// A file as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    length: u64,
    modified: SystemTime,
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;

impl Media {
    /// Of this kernel and these archives.
    pub fn new(config: MediumConfig, kernel: PathBuf, initramfs: PathBuf, rescue: PathBuf) -> Self {
        Self { config, kernel, initramfs, rescue, made: Default::default() }
    }

    fn archives(&self, rescue: bool) -> Vec<&Path> {
        let rescue = rescue.then_some(self.rescue.as_path());
        std::iter::once(self.initramfs.as_path()).chain(rescue).collect()
    }

    /// The template of the files that are there now. Made again when one of them was replaced.
    async fn template(&self, rescue: bool) -> std::io::Result<Made> {
        match &self.config.signed_uki {
            Some(program) => signed(program, rescue).await,
            None => self.unsigned(rescue).await,
        }
    }

    async fn unsigned(&self, rescue: bool) -> std::io::Result<Made> {
        let loader = |name: &str| self.config.loader_dir.join(name);
        let [isolinux, ldlinux, stub] = ["isolinux.bin", "ldlinux.c32", "linuxx64.efi.stub"].map(loader);
        let archives = self.archives(rescue);
        let mut files = Vec::new();
        for path in archives.iter().copied().chain([&*self.kernel, &*isolinux, &*ldlinux, &*stub]) {
            files.push(Version::of(path).await?);
        }
        let kept = &self.made[usize::from(rescue)];
        let known = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.files == files) {
            return Ok(known);
        }
        let read = async |path: &Path| fs::read(path).await.map_err(|error| named(path, &error));
        let loaders = Loaders {
            isolinux: read(&isolinux).await?,
            ldlinux: read(&ldlinux).await?,
            stub: read(&stub).await?,
        };
        let lengths: Vec<u64> = files.iter().map(|file| file.length).collect();
        let sizes = Sizes { kernel: lengths[archives.len()], archives: lengths[..archives.len()].to_vec() };
        let template =
            Template::new(&loaders, &sizes, &self.config.arguments).map_err(std::io::Error::other)?;
        tracing::info!(bytes = template.length(), rescue, "boot medium: made a template");
        let made = Made { files, template: Arc::new(template) };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.clone());
        Ok(made)
    }

    /// The answer to a request for the medium with this overlay.
    ///
    /// # Errors
    /// A file cannot be read, or no template can be made of them.
    pub async fn answer(
        &self,
        overlay: &Overlay,
        rescue: bool,
        headers: &HeaderMap,
    ) -> std::io::Result<Response<Body>> {
        let Made { files, template } = self.template(rescue).await?;
        // The overlay is the same for all requests of a boot, whose URL no other boot has.
        let newest = files.iter().map(|file| file.modified).max().unwrap_or(UNIX_EPOCH);
        let age = newest.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        match file::ranged(template.length(), &format!("\"{:x}-{age:x}\"", template.length()), headers)? {
            RangeAnswer::Whole(answer) => Ok(answer),
            RangeAnswer::Part { head, start, count } => {
                let mut content: Reader = Box::new(tokio::io::empty());
                for piece in template.pieces(overlay, start, count) {
                    content = Box::new(content.chain(self.reader(rescue, piece).await?));
                }
                file::streamed(head, content)
            }
        }
    }

    async fn reader(&self, rescue: bool, piece: Piece<'_>) -> std::io::Result<Reader> {
        Ok(match piece {
            Piece::Bytes(bytes) => Box::new(std::io::Cursor::new(bytes.to_vec())),
            Piece::Zeros(count) => Box::new(tokio::io::repeat(0).take(count)),
            Piece::Source { source, offset, count } => {
                let path = match source {
                    Source::Kernel => &self.kernel,
                    Source::Archive(index) => self.archives(rescue)[index],
                    Source::Program => self.config.signed_uki.as_deref().unwrap_or(Path::new("")),
                };
                let mut file = File::open(path).await.map_err(|error| named(path, &error))?;
                file.seek(SeekFrom::Start(offset)).await?;
                Box::new(file.take(count))
            }
        })
    }
}

impl Version {
    async fn of(path: &Path) -> std::io::Result<Self> {
        let found = fs::metadata(path).await.map_err(|error| named(path, &error))?;
        Ok(Self { length: found.len(), modified: found.modified()? })
    }
}

/// The template of a signed program, which takes microseconds.
async fn signed(program: &Path, rescue: bool) -> std::io::Result<Made> {
    if rescue {
        return Err(std::io::Error::other("a signed program has no login for a rescue"));
    }
    let file = Version::of(program).await?;
    let template = Template::signed(file.length).map_err(std::io::Error::other)?;
    Ok(Made { files: vec![file], template: Arc::new(template) })
}

fn named(path: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
