//! Why a file was not fetched.

use crate::url::MaskedUrl;

/// Why a file was not fetched. No text contains a secret of a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The URL.
    #[error("image URL: {0}")]
    Url(String),
    /// The limits on hosts do not let it be fetched from there.
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
    #[error("the image was not fetched within {0} s")]
    Deadline(u64),
    /// It was asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// This machine.
    #[error("{0}")]
    Internal(String),
}
