//! How a ramdisk reaches a node.
//!
//! ```text
//!   firmware ── DHCP ─────────▶ dhcp    address (server mode) and boot file; proxy mode: boot file only
//!            ── IPv6 ─────────▶ ra, dhcp6     prefix of the network; address and boot file
//!            ── TFTP / HTTP ──▶ tftp, http    undionly.kpxe (BIOS), snponly.efi (UEFI)
//!   iPXE     ── DHCP ─────────▶ dhcp    http://…/boot/ipxe?mac=<mac>
//!            ── HTTP ─────────▶ http ── BootDirectory ──▶ who decides: ramdisk, local disk, unknown
//!            ── HTTP ─────────▶ http    /boot/vmlinuz, /boot/initramfs, of a rescue /boot/rescue, /boot/firmware/…
//!   BMC      ── HTTP ─────────▶ http ── BootDirectory, medium    /boot/media/…, the boot medium of virtual media
//! ```
//!
//! Each service is optional and runs until its [`CancellationToken`] is cancelled. Nothing here knows of
//! nodes: the decision what a MAC boots is the [`BootDirectory`] port's.

mod cmdline;
pub mod dhcp;
pub mod dhcp6;
mod directory;
mod error;
pub mod firmware;
pub mod http;
pub mod loaders;
pub mod medium;
pub mod ra;
pub mod script;
mod templates;
pub mod tftp;

pub use boot_media::Overlay;
pub use cmdline::{
    CmdlineError, RamdiskParams, boot_parameters, inspection_callback, kernel_arguments, ramdisk_cmdline,
};
pub use directory::{BootAnswer, BootDirectory, HelloAnswer, MediumAnswer};
pub use error::BootError;
pub use mac::{Mac, MacError};
pub use tokio_util::sync::CancellationToken;
