//! Time-stamps (RFC 3161): the request for one, and the verification of a reply.
//!
//! ```text
//!   digest ── query ──▶ bytes for the authority     reply ── verify(reply, digest, roots) ──▶ TimeStamp, or why not
//! ```
//!
//! How request and reply travel is left to others: `curl`, or `openssl ts` as one's own authority.

mod reply;
mod request;
mod root;
mod signature;

pub use reply::{TimeStamp, verify};
pub use request::query;
pub use root::{Roots, RootsError};

/// Bytes of the digests that are stamped: SHA-256.
pub const DIGEST: usize = 32;

/// Why a reply is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not of the form of RFC 3161.
    #[error("the reply of the time-stamping authority cannot be read: {0}")]
    Unreadable(String),
    /// The authority stamped nothing.
    #[error("the time-stamping authority refused the request: status {0}")]
    NotGranted(u8),
    /// A stamp of something else.
    #[error("the time-stamp is one of another digest")]
    AnotherDigest,
    /// The signature does not hold.
    #[error("the time-stamp is not signed by the certificate that it names: {0}")]
    Signature(&'static str),
    /// The certificate leads to no authority that is trusted for time-stamps.
    #[error("the certificate of the time-stamping authority is not trusted: {0}")]
    Untrusted(String),
}
