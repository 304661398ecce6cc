//! The record of a deployment: which disk an image was written to, what of it was read back, and what the firmware starts.
//!
//! It is in the result of the step `write_image`, and of the command `image.install_bootloader`.

use serde::{Deserialize, Serialize};

/// The disk that an image was written to. Made only after the disk returned what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenDisk {
    /// Kernel name at the time, `/dev/sda`; never an identity.
    pub device: String,
    /// Serial number: the identity, with `wwn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// World wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// Other disks that the hints meant as well, or that were as good without hints: `/dev/sdb (serial S2)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// What was written.
    pub record: WrittenImage,
}

/// An image on a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenImage {
    /// URL of the image, its user, password and query masked.
    pub source: String,
    /// `raw` or `qcow2`.
    pub format: String,
    /// `plain`, `gzip`, `xz`, `zstd` or `bzip2`.
    pub compression: String,
    /// Bytes that were downloaded.
    pub downloaded: u64,
    /// Algorithm of [`WrittenImage::download_digest`]: `sha256` or `sha512`.
    pub algorithm: String,
    /// Digest of the file as it was downloaded, which is the one that was asked for.
    pub download_digest: String,
    /// Bytes of the image on the disk.
    pub size: u64,
    /// Bytes of it that the last session wrote; the others were on the disk from a session that was interrupted.
    pub written: u64,
    /// Bytes of a leaf of `written_sum` and `read_back_sum`.
    pub leaf: u64,
    /// Digest of what was written, made from memory and in any order: the sum, modulo 2^256, of one SHA-256 for each leaf that
    /// is not zero, over its offset (eight bytes, little-endian) and its bytes, read as a little-endian number.
    pub written_sum: String,
    /// Bytes that the disk returned.
    pub read_back: u64,
    /// The same sum of what the disk returned.
    pub read_back_sum: String,
    /// SHA-256 of what the disk returned, from its first byte to the image's last, before the edits.
    pub read_back_sha256: String,
    /// Identifier of the disk in its MBR, `0x00000000` for most images with a GPT.
    pub disk_id: String,
    /// What was changed afterwards, in this order.
    pub edits: Vec<Edit>,
}

/// A part of the disk that is not the image's, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// What it is: `configdrive`, `MBR`, a part of the GPT.
    pub what: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// SHA-256 of what is there now, as the disk returned it.
    pub sha256: String,
}

/// The boot entries of the firmware, once they begin with the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootEntries {
    /// Kernel name of the disk.
    pub device: String,
    /// Its serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Its world wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// `Boot0001`: the entry of the image.
    pub entry: String,
    /// Its label.
    pub label: String,
    /// The file that it starts.
    pub loader: String,
    /// The firmware did not have it.
    pub added: bool,
    /// Entries that are gone.
    pub removed: Vec<RemovedEntry>,
    /// `0001`, in the order they are tried.
    pub order: Vec<String>,
    /// Why no entry was removed because its partition is gone; absent where the partitions of all disks are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions_unknown: Option<String>,
}

/// A boot entry that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEntry {
    /// `0001` of `Boot0001`.
    pub number: String,
    /// Its label.
    pub label: String,
    /// `same_label` or `no_such_partition`.
    pub why: String,
}

impl WrittenDisk {
    /// Whether `name` is its serial number or its world wide name.
    pub fn is_called(&self, name: &str) -> bool {
        [&self.serial, &self.wwn].into_iter().any(|own| own.as_deref() == Some(name))
    }
}
