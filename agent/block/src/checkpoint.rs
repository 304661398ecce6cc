//! Where an interrupted overwrite goes on.

use crate::method::Method;

/// Where an interrupted overwrite goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The method that was running.
    pub method: Method,
    /// In bytes: everything below has been written and flushed.
    pub offset: u64,
    /// Some of the sectors that were sampled before the first byte was written, by their offset, with the first eight
    /// bytes of the SHA-256 of what they held.
    pub samples: Vec<(u64, [u8; 8])>,
}
