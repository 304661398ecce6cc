//! Sizes that the formats share.

/// Sizes in bytes of what the medium boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// The kernel (bzImage).
    pub kernel: u64,
    /// The archives of the initramfs, which the kernel unpacks one behind the other.
    pub archives: Vec<u64>,
}

/// A number that the formats keep in 32 bits. What is larger is refused before ([`crate::error::EFI_IMAGE_MAX`]).
pub(crate) fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
