//! The port through which the services ask what a node boots.

use crate::medium::Content;
use async_trait::async_trait;
use boot_media::Overlay;
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
        /// With the archive of a rescue, which brings a login, behind the initramfs.
        rescue: bool,
        /// With these archives of add-on firmware behind it ([`crate::firmware::FirmwareDir::chosen`]).
        firmware: Vec<String>,
    },
    /// Its user's own kernel and ramdisk, from these URLs, with these kernel arguments: the deploy interface `ramdisk`.
    Instance {
        /// URL of the kernel.
        kernel: String,
        /// URL of the ramdisk.
        ramdisk: String,
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

/// The answer to a hello of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelloAnswer {
    /// It was awaited, and is stored.
    Heard,
    /// Nothing awaits a hello with this nonce. Which of the possible reasons it is, stays unsaid.
    NotAwaited,
    /// The address sends too many.
    TooMany,
    /// It could not be stored: the instance is to try again.
    Failed,
}

/// The answer to a request for a boot medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediumAnswer {
    /// The medium with this overlay.
    Medium {
        /// What differs from boot to boot.
        overlay: Overlay,
        /// What else it has.
        content: Content,
        /// Only the EFI program in it was asked for.
        program_alone: bool,
    },
    /// There is none of this name for this client. Which of the two it is, stays unsaid.
    NotThere,
    /// It could not be looked up: the BMC is to try again.
    Failed,
}

/// Decides what a node boots; asked once for each script, at the moment the node asks.
#[async_trait]
pub trait BootDirectory: Send + Sync {
    /// What the node with this MAC address boots; `from`: where the request came from.
    async fn boot_for(&self, mac: Mac, from: IpAddr) -> BootAnswer;

    /// The instance with this nonce says that it runs; `from`: where the request came from. None is awaited unless overridden.
    async fn hello(&self, _nonce: &str, _from: Option<IpAddr>) -> HelloAnswer {
        HelloAnswer::NotAwaited
    }

    /// The boot medium of this file name; `from`: where the request came from. There is none unless overridden.
    async fn medium(&self, _file_name: &str, _from: Option<IpAddr>) -> MediumAnswer {
        MediumAnswer::NotThere
    }

    /// The first byte of a boot file (`vmlinuz`, `initramfs`, `rescue`, `firmware`, `ipxe` for the script) is about to go to
    /// the node with this MAC (`None` if the request does not name it). For measuring; does nothing
    /// unless overridden.
    async fn first_byte(&self, _mac: Option<&str>, _file: &str) {}
}
