//! Bundles: one file with an external hardware manager, from the vendor's desk to the node.
//!
//! ```text
//!   root file system   squashfs, `root_size` bytes, a multiple of 4096
//!   manifest           JSON, at most 64 KiB: who it is, what it runs, what it asks for, SHA-256 of the root
//!   signature          Ed25519 over the manifest's bytes, 64 bytes; zeroes: not signed
//!   trailer            24 bytes: magic, length of the manifest, size of the root
//! ```
//!
//! The root comes first and the rest behind it, so that a loop device over the file needs no offset and a file is
//! written in one pass. Its digest, SHA-256 of the whole file, is its name everywhere.
//!
//! The holder of a file calls [`verify`]; no caller checks a part of it alone. [`Trust`] says whose word counts. Building
//! one (`build`) stands behind a feature that the ramdisk does not have. The text for vendors is `docs/bundles.md`.

#[cfg(feature = "build")]
pub mod build;
mod fields;
pub mod grants;
#[cfg(feature = "build")]
mod image;
pub mod manifest;
pub mod trailer;
#[cfg(feature = "build")]
mod tree;
pub mod verify;

pub use fields::FieldError;
pub use grants::Grants;
pub use manifest::Manifest;
pub use signing::{KeyError, PublicKey, hex};
pub use verify::{Rejected, Trust, Verified, verify};

/// The format that is read and written here.
pub const FORMAT: u64 = 1;

/// Whether a text is a SHA-256 as it is written everywhere: 64 hexadecimal digits, lower case.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
