//! What goes wrong on a disk.

use std::io;

/// Why work on a disk stopped.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A write failed.
    #[error("write of {length} bytes at byte offset {offset} failed")]
    Write {
        /// Where, in bytes.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// Why.
        source: io::Error,
    },
    /// A read failed.
    #[error("read of {length} bytes at byte offset {offset} failed")]
    Read {
        /// Where, in bytes.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// Why.
        source: io::Error,
    },
    /// Another operation failed.
    #[error("{what} failed")]
    Command {
        /// The operation.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// What was read back is not what the method promises.
    #[error("read-back: {0}")]
    Mismatch(String),
    /// The disk is no longer there.
    #[error("the disk vanished: {0}")]
    Vanished(String),
    /// It was asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Fault {
    /// Whether it shows that the disk is gone. The kernel answers ENODEV before it removes the device from sysfs, where
    /// [`Target::present`](crate::Target::present) looks.
    pub(crate) fn is_of_gone_disk(&self) -> bool {
        match self {
            Self::Write { source, .. } | Self::Read { source, .. } | Self::Command { source, .. } => {
                source.raw_os_error() == Some(libc::ENODEV)
            }
            Self::Vanished(_) => true,
            Self::Mismatch(_) | Self::Cancelled => false,
        }
    }
}

/// An error with its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
