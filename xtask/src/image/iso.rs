//! `image --iso`: kernel, initramfs and boot loaders as one ISO that boots by BIOS and by UEFI, for an Ironic that takes a ready one
//! (`deploy_iso`). It is the medium of `boot-media` with nothing of one boot in it: the ramdisk gets that from the Ironic, on a
//! drive next to it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use boot_media::signed::{KERNEL, RAMDISK};
use boot_media::{Loaders, Overlay, Piece, Sizes, Source, Template};
use fs_err as fs;

use crate::args::Args;
use crate::sh;

/// Says to the ramdisk that an Ironic's virtual media have booted it.
const VIRTUAL_MEDIA: &str = "boot_method=vmedia";

/// What is to be made.
pub struct ReadyIso {
    /// More kernel arguments.
    append: String,
    /// Directory of kernel, initramfs and loaders, if they are not to be built.
    pub from: Option<PathBuf>,
    to: PathBuf,
}

impl ReadyIso {
    /// As the command line says; `None` without `--iso`.
    pub fn take(args: &mut Args) -> Result<Option<Self>> {
        if !args.flag("--iso") {
            return Ok(None);
        }
        if args.flag("--sign") {
            bail!("--iso and --sign are two commands: a ready ISO is not signed");
        }
        Ok(Some(Self {
            append: args.option("--append")?.unwrap_or_default(),
            from: args.option("--from")?.map(PathBuf::from),
            to: args.option("--to")?.map_or_else(|| sh::root().join("image/out/anneal.iso"), PathBuf::from),
        }))
    }

    /// Makes the ISO of what is in a directory such as `image/out`.
    pub fn make(&self, from: &Path) -> Result<()> {
        let read = |name: &str| fs::read(from.join(name)).context("--from");
        let loaders = Loaders {
            isolinux: read("medium/isolinux.bin")?,
            ldlinux: read("medium/ldlinux.c32")?,
            stub: read("medium/linuxx64.efi.stub")?,
        };
        let (kernel, initramfs) = (read("vmlinuz")?, read("initramfs")?);
        let sizes = Sizes { kernel: kernel.len() as u64, archives: vec![initramfs.len() as u64] };
        let template = Template::new(&loaders, &sizes, &arguments(&self.append)).context("--append")?;
        let nothing = Overlay::new("", None)?;
        let part = self.to.with_extension("part");
        let mut file = std::io::BufWriter::new(fs::File::create(&part)?);
        for piece in template.pieces(&nothing, 0, u64::MAX) {
            match piece {
                Piece::Bytes(bytes) => file.write_all(bytes)?,
                Piece::Zeros(count) => file.write_all(&vec![0; usize::try_from(count)?])?,
                Piece::Source { source, offset, count } => {
                    let of = match source {
                        Source::Kernel => &kernel,
                        Source::Archive(_) => &initramfs,
                        other @ (Source::Program | Source::Shim | Source::SystemdBoot) => {
                            bail!("the template of an ISO for an Ironic has {other:?}")
                        }
                    };
                    let at = usize::try_from(offset)?;
                    file.write_all(&of[at..at + usize::try_from(count)?])?;
                }
            }
        }
        file.into_inner().context("cannot write the ISO")?.sync_all()?;
        fs::rename(&part, &self.to)?;
        println!("{}: {} bytes, boots by BIOS and by UEFI", self.to.display(), template.length());
        Ok(())
    }
}

/// The kernel command line, which Ironic cannot change any more.
fn arguments(append: &str) -> String {
    format!("{RAMDISK} quiet {KERNEL} {VIRTUAL_MEDIA} {append}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(words: &[&str]) -> Result<Option<ReadyIso>> {
        ReadyIso::take(&mut Args::new(words.iter().map(|word| (*word).to_owned()).collect()))
    }

    #[test]
    fn an_iso_is_made_where_it_is_asked_for() {
        assert!(taken(&["--append", "x"]).unwrap().is_none());
        let iso = taken(&["--iso", "--from", "there", "--append=console=ttyS0"]).unwrap().unwrap();
        assert_eq!((iso.from.as_deref(), &*iso.append), (Some(Path::new("there")), "console=ttyS0"));
        assert!(iso.to.ends_with("image/out/anneal.iso"));
        assert!(taken(&["--iso", "--sign", "db.key", "db.crt"]).is_err());
    }

    #[test]
    fn it_says_that_virtual_media_boot_it_and_the_last_word_is_the_operators() {
        let line = arguments("console=ttyS0");
        assert!(line.starts_with("anneal.ramdisk quiet "), "{line}");
        assert!(line.ends_with(" boot_method=vmedia console=ttyS0"), "{line}");
        assert!(arguments("").ends_with(" boot_method=vmedia"));
    }

    #[test]
    fn what_is_missing_is_named_and_no_half_an_iso_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let iso = ReadyIso { append: String::new(), from: None, to: dir.path().join("x.iso") };
        let error = format!("{:#}", iso.make(dir.path()).unwrap_err());
        assert!(error.contains("isolinux.bin"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
