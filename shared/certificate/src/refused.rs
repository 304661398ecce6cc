//! Errors of evidence and certificates. Each has a name that never changes.

use std::fmt;

/// Which of the two signed texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// What the agent signed.
    Evidence,
    /// What the controller signed.
    Certificate,
    /// The certificate before it.
    Previous,
    /// The change of the key that signs certificates.
    KeyChange,
}

impl fmt::Display for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Document::Evidence => "the agent's evidence",
            Document::Certificate => "the certificate",
            Document::Previous => "the previous certificate",
            Document::KeyChange => "the change of the key",
        })
    }
}

/// Why it is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not of the form at all.
    #[error("{0} cannot be read: {1}")]
    Unreadable(Document, String),
    /// Signed with another key.
    #[error("{what} is signed by key {signed_by}, not by {key}")]
    WrongKey {
        /// Which text.
        what: Document,
        /// The key it names.
        signed_by: String,
        /// The key it was to be signed by.
        key: String,
    },
    /// The signature is not one of this text.
    #[error("{0} was changed after it was signed")]
    Tampered(Document),
    /// Of a version that is not known here.
    #[error("{0} has version {1}; this program knows version {known}", known = crate::VERSION)]
    UnknownVersion(Document, u64),
    /// A disk counts as erased without a verification that passed.
    #[error("disk {0} is called erased without a method and a verification that passed")]
    Unverified(String),
    /// A disk counts as erased by a method that `docs/erase.md` does not give.
    #[error("disk {disk} is called erased by {method:?}, which is no method for that")]
    UnknownMethod {
        /// The disk.
        disk: String,
        /// What its record names.
        method: String,
    },
    /// A disk counts as erased to a level that its method does not reach.
    #[error("disk {disk} is called erased to the level {level:?}, which {method} does not reach")]
    WrongLevel {
        /// The disk.
        disk: String,
        /// Its method.
        method: String,
        /// What its record names; `none` where it names none.
        level: String,
    },
    /// A disk counts as erased, and the bytes that were erased are not those of the disk.
    #[error("disk {disk} is called erased, and {erased} of its {size} bytes were")]
    WrongExtent {
        /// The disk.
        disk: String,
        /// Bytes erased, by the record.
        erased: u64,
        /// Bytes of the disk.
        size: u64,
    },
    /// A disk counts as verified, and was not read back so far that it could be.
    #[error("disk {disk} is called verified, and was not read back: {why}")]
    NotReadBack {
        /// The disk.
        disk: String,
        /// What is missing.
        why: String,
    },
    /// The finding is not what the records of the disks amount to.
    #[error("the finding is {stated:?}, but the records of the disks say {found:?}")]
    Contradiction {
        /// What the certificate says.
        stated: &'static str,
        /// What follows from its evidence.
        found: &'static str,
    },
    /// Of another node.
    #[error("it is of node {found}, not of {wanted}")]
    AnotherNode {
        /// Whose it is.
        found: String,
        /// Whose it was to be.
        wanted: String,
    },
    /// Of another command, boot or step than was asked for.
    #[error("the evidence is of {what} {found:?}, not of {wanted:?}")]
    AnotherCommand {
        /// `command`, `boot`, `step`.
        what: &'static str,
        /// Whose it is.
        found: String,
        /// Whose it was to be.
        wanted: String,
    },
    /// The evidence differs from the result it came with.
    #[error("the evidence and the result of the step disagree about {0}")]
    AnotherResult(&'static str),
    /// The disk is not in it.
    #[error("no disk with the serial number or WWN {0} is in it")]
    AnotherDisk(String),
    /// The disk is in it, and was not erased.
    #[error("disk {disk} was not erased: it is {outcome}")]
    NotErased {
        /// What it was asked for by.
        disk: String,
        /// What happened to it.
        outcome: String,
    },
    /// A disk counts as deployed, and its record does not show it.
    #[error("the image is not on disk {disk}: {why}")]
    NotWritten {
        /// The disk.
        disk: String,
        /// What the record shows.
        why: String,
    },
    /// It is of another image, or of no deployment.
    #[error("the digest of the image is {found}, not {wanted}")]
    AnotherImage {
        /// Digest of the file as it was downloaded; `none` where no image was written.
        found: String,
        /// The digest that was given.
        wanted: String,
    },
    /// It does not follow the certificate it should follow.
    #[error("the chain of the node's certificates is broken: {0}")]
    BrokenChain(String),
    /// The chain ends before the log of heads says so.
    #[error("the chain of the node's certificates is cut: {0}")]
    CutChain(String),
    /// Another certificate has the place of one that the log of heads names.
    #[error("the chain of the node's certificates is forked: {0}")]
    ForkedChain(String),
    /// The log of heads itself is not whole.
    #[error("the log of the heads of all chains is broken: {0}")]
    BrokenLog(String),
}

impl Refused {
    /// Its name, for scripts and `docs/certificate.md`.
    pub fn name(&self) -> &'static str {
        use Document::{Evidence, KeyChange};
        match self {
            Self::Unreadable(KeyChange, _) => "key-change-unreadable",
            Self::WrongKey { what: KeyChange, .. } => "key-change-wrong-key",
            Self::Tampered(KeyChange) => "key-change-tampered",
            Self::Unreadable(Evidence, _) => "evidence-unreadable",
            Self::Unreadable(..) => "unreadable",
            Self::WrongKey { what: Evidence, .. } => "evidence-wrong-key",
            Self::WrongKey { .. } => "wrong-key",
            Self::Tampered(Evidence) => "evidence-tampered",
            Self::Tampered(_) => "tampered",
            Self::UnknownVersion(..) => "unknown-version",
            Self::Unverified(_) => "unverified",
            Self::UnknownMethod { .. } => "unknown-method",
            Self::WrongLevel { .. } => "wrong-level",
            Self::WrongExtent { .. } => "wrong-extent",
            Self::NotReadBack { .. } => "not-read-back",
            Self::Contradiction { .. } => "contradiction",
            Self::AnotherNode { .. } => "another-node",
            Self::AnotherCommand { .. } => "another-command",
            Self::AnotherResult(_) => "another-result",
            Self::AnotherDisk(_) => "another-disk",
            Self::NotErased { .. } => "not-erased",
            Self::NotWritten { .. } => "not-written",
            Self::AnotherImage { .. } => "another-image",
            Self::BrokenChain(_) => "broken-chain",
            Self::CutChain(_) => "cut-chain",
            Self::ForkedChain(_) => "forked-chain",
            Self::BrokenLog(_) => "broken-log",
        }
    }
}
