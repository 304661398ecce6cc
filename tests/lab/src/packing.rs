//! The forms in which an image is served.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::efi_image::as_qcow2;

/// A form of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As it is on the disk.
    Raw,
    /// qcow2 with compressed clusters.
    Qcow2,
    /// Raw, by gzip.
    Gzip,
    /// Raw, by xz.
    Xz,
    /// Raw, by zstd.
    Zstd,
    /// Raw, by bzip2.
    Bzip2,
}

impl Packing {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Raw, Self::Qcow2, Self::Gzip, Self::Xz, Self::Zstd, Self::Bzip2];

    /// The word used in names of files and in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
            Self::Gzip => "gz",
            Self::Xz => "xz",
            Self::Zstd => "zst",
            Self::Bzip2 => "bz2",
        }
    }

    /// `image_disk_format` of such an image.
    #[must_use]
    pub fn disk_format(self) -> &'static str {
        if self == Self::Qcow2 { "qcow2" } else { "raw" }
    }

    /// Writes `raw` in this form.
    ///
    /// # Errors
    /// When the tool is missing or fails.
    pub fn pack(self, raw: &Path, to: &Path) -> Result<()> {
        let (tool, level) = match self {
            Self::Raw => {
                std::fs::copy(raw, to)?;
                return Ok(());
            }
            Self::Qcow2 => return as_qcow2(raw, to),
            Self::Gzip => ("gzip", "-1"),
            Self::Xz => ("xz", "-0"),
            Self::Zstd => ("zstd", "-1"),
            Self::Bzip2 => ("bzip2", "-1"),
        };
        let mut command = Command::new(tool);
        command.args([level, "--stdout"]).stdin(File::open(raw)?).stdout(File::create(to)?);
        let status = command.status().with_context(|| format!("cannot start {tool}"))?;
        ensure!(status.success(), "{tool}: {status}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_begins_with_its_signature() {
        let dir = tempfile::tempdir().unwrap();
        let raw = dir.path().join("image");
        std::fs::write(&raw, [b'x'; 4096]).unwrap();
        for (packing, signature) in Packing::ALL.into_iter().zip([
            &b"xxxx"[..],
            b"QFI\xfb",
            b"\x1f\x8b",
            b"\xfd7zXZ",
            b"\x28\xb5\x2f\xfd",
            b"BZh1",
        ]) {
            let to = dir.path().join(packing.as_str());
            packing.pack(&raw, &to).unwrap();
            let begins = std::fs::read(to).unwrap().starts_with(signature);
            assert!(begins, "{}", packing.as_str());
        }
    }
}
