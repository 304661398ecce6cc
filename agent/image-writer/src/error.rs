//! Why an image was not written.

use image_source::{Algorithm, MaskedUrl, SourceError};
use std::io;

/// Why an image was not written. Nothing on the disk can be booted.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It was not fetched.
    #[error(transparent)]
    Source(SourceError),
    /// What was asked to be compared with is unusable.
    #[error("checksum: {0}")]
    Checksum(String),
    /// The image is another one than was asked for.
    #[error("the {algorithm} of {url} is {found}, not {expected}")]
    Digest {
        /// The URL.
        url: MaskedUrl,
        /// Algorithm.
        algorithm: Algorithm,
        /// As computed.
        found: String,
        /// As asked for.
        expected: String,
    },
    /// Compression.
    #[error("the {kind} stream of the image: {problem}")]
    Unpack {
        /// `gzip`
        kind: &'static str,
        /// Why.
        problem: String,
    },
    /// The image format.
    #[error("the image: {0}")]
    Format(String),
    /// More than the disk holds.
    #[error("the image has {} bytes, {disk} holds {size}", image.map_or("more".to_owned(), |bytes| bytes.to_string()))]
    TooLarge {
        /// Bytes of the image, where known.
        image: Option<u64>,
        /// The disk.
        disk: String,
        /// Its bytes.
        size: u64,
    },
    /// The partition table.
    #[error("the partition table of the image: {0}")]
    Table(String),
    /// The configuration drive.
    #[error("the configdrive: {0}")]
    ConfigDrive(String),
    /// The disk.
    #[error("{disk}: {what} at byte {offset}: {source}")]
    Disk {
        /// The disk.
        disk: String,
        /// `write of 4096 bytes`
        what: String,
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// The disk does not return what was written.
    #[error("{disk} does not return what was written to it: {what}")]
    ReadBack {
        /// The disk.
        disk: String,
        /// In what they differ.
        what: String,
    },
    /// It was asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A stage ended without saying why.
    #[error("the writer failed: {0}")]
    Internal(String),
}

impl From<SourceError> for ImageError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Cancelled => Self::Cancelled,
            error => Self::Source(error),
        }
    }
}

impl ImageError {
    /// As an I/O error, to pass through a decoder.
    pub(crate) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// An error of a decoder: what the stage before it met, or what `own` makes of it.
    pub(crate) fn from_io(error: io::Error, own: impl FnOnce(io::Error) -> Self) -> Self {
        if !error.get_ref().is_some_and(|inner| inner.is::<Self>()) {
            return own(error);
        }
        let inner = error.into_inner().and_then(|inner| inner.downcast::<Self>().ok());
        inner.map_or_else(|| Self::Internal("an error without a cause".to_owned()), |inner| *inner)
    }
}
