//! The medium from which a node boots the ramdisk by virtual media. Nothing here reads a file or a socket.
//!
//! ```text
//!  loaders, sizes of kernel and archives ─▶ Template ─┐
//!  parameters, network_data of the node ─▶ overlay ───┴▶ Template::pieces(first, count) ─▶ who serves it
//! ```
//!
//! One image boots by BIOS and by UEFI, and holds kernel and initramfs once:
//!
//! ```text
//!  ISO 9660: descriptors, El Torito catalogue, root directory
//!    ISOLINUX.BIN, LDLINUX.C32, ISOLINUX.CFG ──────────── BIOS ── VMLINUZ, INITRD.IMG: extents inside BOOTX64.EFI
//!    FAT 16 (El Torito, platform EFI): /EFI/BOOT/BOOTX64.EFI ── UEFI
//!      stub │ .osrel │ .cmdline │ .linux │ .initrd: archives, overlay
//! ```
//!
//! Each section of the EFI program lies at a multiple of 2048 in the file, the file is contiguous in a FAT with clusters of
//! 2048 bytes, and that begins at a sector of the ISO 9660 file system. So isolinux reads the same bytes. The overlay is an
//! uncompressed cpio archive in [`OVERLAY`] bytes behind the archives, which the kernel unpacks with them.
//!
//! For ironic-python-agent the overlay is a file of the ISO 9660 file system, `PARAMETERS.TXT`, and the label is that of the drive on
//! which it looks for such a file.
//!
//! Under Secure Boot the program is signed, and nothing of it may vary. Then the image boots by UEFI alone:
//!
//! ```text
//!  ISO 9660: descriptors, El Torito catalogue, an empty root directory
//!    FAT 16: /EFI/BOOT/BOOTX64.EFI ── the signed program, unchanged
//!            /EFI/BOOT/BOOTX64.EFI.extra.d/anneal.cred ── the overlay, which its stub passes to the kernel
//! ```
//!
//! Through a shim that Microsoft has signed, systemd-boot starts the same kernel, which its vendor has signed ([`ShimSizes`]):
//!
//! ```text
//!  ISO 9660: descriptors, El Torito catalogue, an empty root directory
//!    FAT 16: /EFI/BOOT/BOOTX64.EFI ── shim ── /EFI/BOOT/GRUBX64.EFI ── systemd-boot
//!            /LOADER/LOADER.CONF, /LOADER/ENTRIES/ANNEAL.CONF
//!            /VMLINUZ, /INITRD.IMG: archives, /NODE.IMG: overlay
//! ```

mod error;
mod fat;
mod iso;
mod long_name;
mod overlay;
mod program_headers;
mod shim;
pub mod signed;
mod sizes;
mod template;
mod uki;

pub use error::TemplateError;
pub use network_data::static_network;
pub use overlay::{OVERLAY, Overlay, OverlayError, Reader};
pub use shim::{SHIM_OVERLAY_ALIGNMENT, ShimSizes, shim_command_line};
pub use sizes::Sizes;
pub use template::{Loaders, Piece, Source, Template};
