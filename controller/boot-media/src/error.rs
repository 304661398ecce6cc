//! Why no medium can be made, and the limits that say so.

/// Largest image for EFI, in bytes. A FAT 16 has no more than 2 GiB.
pub(crate) const EFI_IMAGE_MAX: u64 = 2_000_000_000;
/// Most characters of a kernel command line (`COMMAND_LINE_SIZE` of x86), without its end.
pub(crate) const COMMAND_LINE: usize = 2047;

/// Why no medium can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The stub is no EFI program to which sections can be added.
    #[error("the EFI stub cannot be used: {0}")]
    Stub(&'static str),
    /// isolinux is not what it is called.
    #[error("isolinux.bin cannot be used: it has no room for the boot information table")]
    Isolinux,
    /// The file system for EFI cannot hold them.
    #[error("kernel and initramfs are too large for a boot medium: {0} bytes of at most {max}", max = EFI_IMAGE_MAX)]
    TooLarge(u64),
    /// A file that is to be booted as it is.
    #[error("the signed program cannot be used: {0}")]
    Program(&'static str),
    /// What a signed program is to obey.
    #[error(
        "a signed ramdisk needs the certificates of the controllers that it obeys, each as sha256: and 64 hexadecimal digits, \
         in one list"
    )]
    Pins,
    /// The kernel reads no more, and isolinux takes a line as it is.
    #[error(
        "the kernel arguments cannot be used for a boot medium: they are longer than {COMMAND_LINE} characters, or contain control characters"
    )]
    Arguments,
}
