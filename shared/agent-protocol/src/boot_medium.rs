//! What a boot medium (virtual media) passes to the ramdisk, in files that the controller adds to the initramfs.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// File with parameters in the form of a kernel command line; they count as if they stood on it.
pub const PARAMETERS: &str = "etc/anneal/boot-parameters";

/// File with a [`StaticNetwork`] in JSON. Where it is, no DHCP server is asked.
pub const NETWORK: &str = "etc/anneal/network.json";

/// Kernel parameter of a signed ramdisk: the certificates of the controllers that it obeys, `sha256:` and 64 hexadecimal digits
/// each, separated by commas. It counts on the kernel command line alone, which is signed.
pub const OBEYS: &str = "anneal.obeys";

/// Where the ramdisk finds an [`OverlayFile`] in JSON, if a signed ramdisk was booted from a medium: systemd's stub puts the file of this
/// name from next to its program there. Nothing signs it.
pub const OVERLAY_FILE: &str = ".extra/credentials/anneal.cred";

/// What a boot medium passes to a signed ramdisk. Without `Debug`: it contains a nonce.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayFile {
    /// In the form of a kernel command line. Contains the nonce of the boot.
    pub parameters: String,
    /// The network of the node, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<StaticNetwork>,
}

/// The network of a node, which needs no DHCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticNetwork {
    /// The interfaces to configure; the others stay down.
    pub interfaces: Vec<StaticInterface>,
    /// Name servers, at most three.
    #[serde(default)]
    pub dns: Vec<Ipv4Addr>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticInterface {
    /// MAC address of the network card, lower case with colons.
    pub mac: String,
    /// Bytes, 576 to 9216.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Its addresses.
    pub addresses: Vec<StaticAddress>,
    /// Routes through it.
    #[serde(default)]
    pub routes: Vec<StaticRoute>,
}

/// An address with the length of its network's prefix (0 to 32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticAddress {
    /// The address.
    pub ip: Ipv4Addr,
    /// Length of the prefix.
    pub prefix: u8,
}

/// A route; with the prefix 0 the default route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticRoute {
    /// The destination.
    pub network: Ipv4Addr,
    /// Length of its prefix (0 to 32).
    pub prefix: u8,
    /// The router.
    pub gateway: Ipv4Addr,
}
