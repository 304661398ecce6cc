//! The port through which the services ask what a node boots.

use async_trait::async_trait;
use mac::Mac;
use std::net::IpAddr;

/// What the node with some MAC boots next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootAnswer {
    /// The ramdisk, with this kernel command line (see [`crate::ramdisk_cmdline`]); `BOOTIF=` and
    /// `initrd=` are added by the script.
    Ramdisk {
        /// Kernel arguments, one line.
        kernel_args: String,
    },
    /// Not yet, or not to this address: ask again.
    Wait,
    /// The node is known and is not to boot the ramdisk: leave network boot.
    LocalDisk,
    /// No node has this MAC: leave network boot as well.
    Unknown,
}

/// Decides what a node boots; asked once for each script, at the moment the node asks.
#[async_trait]
pub trait BootDirectory: Send + Sync {
    /// What the node with this MAC address boots; `from`: where the request came from.
    async fn boot_for(&self, mac: Mac, from: IpAddr) -> BootAnswer;

    /// The first byte of a boot file (`vmlinuz`, `initramfs`, `ipxe` for the script) is about to go to
    /// the node with this MAC (`None` if the request does not name it). For measuring; does nothing
    /// unless overridden.
    async fn first_byte(&self, _mac: Option<&str>, _file: &str) {}
}
