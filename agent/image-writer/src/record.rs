//! What was written, and what the disk returned.

use crate::format::Format;
use image_source::Algorithm;
use image_source::MaskedUrl;

/// What was written to one disk. Made only after the disk returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where the image came from.
    pub source: MaskedUrl,
    /// What it was.
    pub format: Format,
    /// How it was compressed: `plain`, `gzip`, `xz`, `zstd`, `bzip2`.
    pub compression: String,
    /// Bytes that were downloaded.
    pub downloaded: u64,
    /// Algorithm of [`Record::download_digest`].
    pub algorithm: Algorithm,
    /// Digest of the file as it was downloaded, which is the one that was asked for.
    pub download_digest: String,
    /// Bytes of the image on the disk.
    pub size: u64,
    /// Bytes of it that were written now: the others an earlier session had written.
    pub written: u64,
    /// Bytes of a leaf of the two sums.
    pub leaf: u64,
    /// Digest of what was written, leaf by leaf: `LeafSum`.
    pub written_sum: String,
    /// Bytes that the disk returned.
    pub read_back: u64,
    /// The same digest of what the disk returned.
    pub read_back_sum: String,
    /// SHA-256 of what the disk returned, from its first byte to the image's last, before the edits.
    pub read_back_sha256: String,
    /// Identifier of the disk in its MBR, `0x00000000` for most images with a GPT.
    pub disk_id: String,
    /// What was changed afterwards, in this order.
    pub edits: Vec<Edit>,
}

/// A part of the disk that is not the image's, or no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What it is.
    pub what: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// SHA-256 of what is there now, as the disk returned it.
    pub sha256: String,
}
