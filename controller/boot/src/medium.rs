//! The boot medium of one boot over HTTP: the template that all share, the overlay of the boot, and the files of kernel and
//! initramfs, or of the signed program, read where they are. No medium is ever written to a file.

use crate::firmware::FirmwareDir;
use crate::templates::{ReadyTemplate, Templates, Version};
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::body::Body;
use axum::http::{HeaderMap, Response};
use boot_media::{Loaders, Overlay, Piece, Reader as Agent, ShimSizes, Sizes, Source, Template};
use http_server::file::{self, RangeAnswer};
use tokio::fs::{self, File};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};

/// What the media are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediumConfig {
    /// Directory of the boot loaders: `isolinux.bin`, `ldlinux.c32`, `linuxx64.efi.stub`; [`SHIM`] and [`SYSTEMD_BOOT`] for nodes with
    /// Secure Boot.
    pub loader_dir: PathBuf,
    /// The kernel arguments that all boots have. The others are in the overlay.
    pub arguments: String,
    /// The signed program that the media carry instead of loaders, kernel and initramfs.
    pub signed_uki: Option<PathBuf>,
}

/// Debian's signed loaders, by their names in [`MediumConfig::loader_dir`].
pub const SHIM: &str = "shimx64.efi.signed";
/// See [`SHIM`].
pub const SYSTEMD_BOOT: &str = "systemd-bootx64.efi.signed";

/// By this argument ironic-python-agent knows that its parameters are on a medium.
const BY_VIRTUAL_MEDIA: &str = "boot_method=vmedia";

/// What a medium has besides its overlay. Where there is a signed program, it has that alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// The archive of a rescue behind the initramfs.
    pub rescue: bool,
    /// These archives of add-on firmware behind it ([`FirmwareDir::chosen`]).
    pub firmware: Vec<String>,
    /// Loaders that a firmware with Secure Boot starts.
    pub through_shim: bool,
}

/// The files of the ramdisk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RamdiskFiles {
    /// Its kernel.
    pub kernel: PathBuf,
    /// Its initramfs.
    pub initramfs: PathBuf,
    /// Archive that a rescue boot gets behind it.
    pub rescue: PathBuf,
    /// Add-on firmware, if there is any.
    pub firmware: Option<FirmwareDir>,
}

impl RamdiskFiles {
    /// The archives that the kernel unpacks, one behind the other.
    pub fn archives(&self, content: &Content) -> Vec<PathBuf> {
        let rescue = content.rescue.then(|| self.rescue.clone());
        let firmware = content.firmware.iter().filter_map(|name| self.firmware.as_ref()?.file(name));
        std::iter::once(self.initramfs.clone()).chain(rescue).chain(firmware).collect()
    }
}

/// Makes templates, and streams media.
pub struct Media {
    config: MediumConfig,
    ramdisk: RamdiskFiles,
    made: Templates,
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;

impl Media {
    /// Of this ramdisk.
    pub fn new(config: MediumConfig, ramdisk: RamdiskFiles) -> Self {
        Self { config, ramdisk, made: Templates::default() }
    }

    /// The template of the files that are there now. Made again when one of them was replaced.
    async fn template(&self, agent: Agent, content: &Content) -> std::io::Result<ReadyTemplate> {
        match &self.config.signed_uki {
            Some(program) => signed(program, content).await,
            None => self.unsigned(agent, content).await,
        }
    }

    async fn unsigned(&self, agent: Agent, content: &Content) -> std::io::Result<ReadyTemplate> {
        let names: &[&str] = if content.through_shim {
            &[SHIM, SYSTEMD_BOOT]
        } else {
            &["isolinux.bin", "ldlinux.c32", "linuxx64.efi.stub"]
        };
        let archives = self.ramdisk.archives(content);
        let loaders: Vec<PathBuf> = names.iter().map(|name| self.config.loader_dir.join(name)).collect();
        let paths = [archives.clone(), vec![self.ramdisk.kernel.clone()], loaders].concat();
        let archives = archives.len();
        let mut files = Vec::new();
        for path in &paths {
            files.push(Version::of(path).await?);
        }
        let of = (agent, paths);
        if let Some(known) = self.made.get(&of, &files) {
            return Ok(known);
        }
        let lengths: Vec<u64> = files.iter().map(|file| file.length).collect();
        let sizes = Sizes { kernel: lengths[archives], archives: lengths[..archives].to_vec() };
        let loaders = archives + 1;
        let template = if content.through_shim {
            let sizes_of_loaders = ShimSizes { shim: lengths[loaders], systemd_boot: lengths[loaders + 1] };
            Template::through_shim(sizes_of_loaders, &sizes, &self.config.arguments)
        } else {
            let read = async |path: &Path| fs::read(path).await.map_err(|error| named(path, &error));
            let loaders = Loaders {
                isolinux: read(&of.1[loaders]).await?,
                ldlinux: read(&of.1[loaders + 1]).await?,
                stub: read(&of.1[loaders + 2]).await?,
            };
            let arguments = match agent {
                Agent::Anneal => self.config.arguments.clone(),
                Agent::IronicPythonAgent => format!("{} {BY_VIRTUAL_MEDIA}", self.config.arguments),
            };
            Template::read_by(agent, &loaders, &sizes, &arguments)
        };
        let template = template.map_err(std::io::Error::other)?;
        tracing::info!(bytes = template.length(), ?agent, ?content, "boot medium: made a template");
        let made = ReadyTemplate { files, template: Arc::new(template) };
        self.made.keep(of, made.clone());
        Ok(made)
    }

    /// The answer to a request for the medium with this overlay, or for the EFI program in it alone.
    ///
    /// # Errors
    /// A file cannot be read, no template can be made of them, or it has no program that boots by itself.
    pub async fn answer(
        &self,
        overlay: &Overlay,
        content: &Content,
        program_alone: bool,
        headers: &HeaderMap,
    ) -> std::io::Result<Response<Body>> {
        let ReadyTemplate { files, template } = self.template(overlay.reader(), content).await?;
        // The overlay is the same for all requests of a boot, whose URL no other boot has.
        let newest = files.iter().map(|file| file.modified).max().unwrap_or(UNIX_EPOCH);
        let age = newest.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let asked = match program_alone {
            true => {
                template.program().ok_or_else(|| std::io::Error::other("no program of it has the overlay"))?
            }
            false => 0..template.length(),
        };
        let length = asked.end - asked.start;
        match file::ranged(length, &format!("\"{length:x}-{age:x}\""), headers)? {
            RangeAnswer::Whole(answer) => Ok(answer),
            RangeAnswer::Part { head, start, count } => {
                let mut bytes: Reader = Box::new(tokio::io::empty());
                for piece in template.pieces(overlay, asked.start + start, count) {
                    bytes = Box::new(bytes.chain(self.reader(content, piece).await?));
                }
                file::streamed(head, bytes)
            }
        }
    }

    async fn reader(&self, content: &Content, piece: Piece<'_>) -> std::io::Result<Reader> {
        Ok(match piece {
            Piece::Bytes(bytes) => Box::new(std::io::Cursor::new(bytes.to_vec())),
            Piece::Zeros(count) => Box::new(tokio::io::repeat(0).take(count)),
            Piece::Source { source, offset, count } => {
                let path = match source {
                    Source::Kernel => self.ramdisk.kernel.clone(),
                    Source::Archive(index) => self.ramdisk.archives(content).swap_remove(index),
                    Source::Program => self.config.signed_uki.clone().unwrap_or_default(),
                    Source::Shim => self.config.loader_dir.join(SHIM),
                    Source::SystemdBoot => self.config.loader_dir.join(SYSTEMD_BOOT),
                };
                let mut file = File::open(&path).await.map_err(|error| named(&path, &error))?;
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
async fn signed(program: &Path, content: &Content) -> std::io::Result<ReadyTemplate> {
    if content.rescue {
        return Err(std::io::Error::other("a signed program has no login for a rescue"));
    }
    if !content.firmware.is_empty() {
        return Err(std::io::Error::other(
            "a signed program has the firmware that was signed with it, and no other",
        ));
    }
    let file = Version::of(program).await?;
    let template = Template::signed(file.length).map_err(std::io::Error::other)?;
    Ok(ReadyTemplate { files: vec![file], template: Arc::new(template) })
}

fn named(path: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
