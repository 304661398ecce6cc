//! Why an image was not written.

use crate::checksum::Algorithm;
use crate::url::MaskedUrl;
use std::io;

/// Why an image was not written. Nothing on the disk can be booted.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The URL.
    #[error("image URL: {0}")]
    Url(String),
    /// The limits do not let the agent fetch from there.
    #[error("{url} may not be fetched: {problem}")]
    Host {
        /// The URL.
        url: MaskedUrl,
        /// Why.
        problem: String,
    },
    /// The mirror answered something else than the file.
    #[error("{url} answered {status}")]
    Status {
        /// The URL.
        url: MaskedUrl,
        /// Status code.
        status: u16,
    },
    /// No connection, or it broke, again and again.
    #[error("{url} cannot be fetched: {problem}")]
    Fetch {
        /// The URL.
        url: MaskedUrl,
        /// Why.
        problem: String,
    },
    /// The mirror sends nothing, or next to nothing.
    #[error("{url} stalled: {bytes} bytes in the last {seconds} s, {received} in all")]
    Stalled {
        /// The URL.
        url: MaskedUrl,
        /// In the last seconds.
        bytes: u64,
        /// How many seconds.
        seconds: u64,
        /// In all.
        received: u64,
    },
    /// The file is another one than at the beginning.
    #[error("{url} changed while it was being fetched: {what}")]
    Changed {
        /// The URL.
        url: MaskedUrl,
        /// In what.
        what: String,
    },
    /// It ends before its end.
    #[error("{url} ended after {received} bytes instead of {expected}")]
    Short {
        /// The URL.
        url: MaskedUrl,
        /// Bytes that came.
        received: u64,
        /// Bytes that were promised.
        expected: u64,
    },
    /// The deadline.
    #[error("the image was not written within {0} s")]
    Deadline(u64),
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
