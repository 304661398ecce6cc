//! What a boot medium (virtual media) passes to the ramdisk, in files that the controller adds to the initramfs.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// File with parameters in the form of a kernel command line; they count as if they stood on it.
pub const PARAMETERS: &str = "etc/anneal/boot-parameters";

/// File with a [`StaticNetwork`] in JSON. Where it is, the ramdisk makes this network and no other.
pub const NETWORK: &str = "etc/anneal/network.json";

/// Kernel parameter of a signed ramdisk: the certificates of the controllers that it obeys, `sha256:` and 64 hexadecimal digits
/// each, separated by commas. It counts on the kernel command line alone, which is signed.
pub const OBEYS: &str = "anneal.obeys";

/// How many servers of a kind a medium names at most: as many name servers as the C library of the ramdisk asks, and as many
/// time servers.
pub const MOST_SERVERS: usize = 3;

/// Whether this can be the name or the address of a time server: 1 to 253 letters, digits, and characters of `-._:`.
#[must_use]
pub fn is_time_server(text: &str) -> bool {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(is_host)
}

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

/// The network of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticNetwork {
    /// The interfaces to configure; the others stay down.
    pub interfaces: Vec<StaticInterface>,
    /// Name servers, at most [`MOST_SERVERS`].
    #[serde(default)]
    pub dns: Vec<IpAddr>,
    /// Time servers (SNTP), at most [`MOST_SERVERS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ntp: Vec<IpAddr>,
}

/// A network card, or a bond of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticInterface {
    /// MAC address of the network card, or the one that the bond gets; lower case with colons.
    pub mac: String,
    /// Bytes, 576 to 9216.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// What makes it a bond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<StaticBond>,
    /// What it carries without a tag.
    #[serde(flatten)]
    pub ip: IpConfiguration,
    /// The VLANs on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<StaticVlan>,
}

/// Several network cards that act as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticBond {
    /// How.
    pub mode: BondMode,
    /// MAC addresses of its cards, at least one; lower case with colons.
    pub cards: Vec<String>,
    /// How often the links of the cards are looked at, in milliseconds; at least 1.
    pub miimon_ms: u32,
    /// What chooses the card of a frame, in the modes that choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_policy: Option<HashPolicy>,
}

/// A VLAN (IEEE 802.1Q) on a network card or a bond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticVlan {
    /// Its number, 1 to 4094.
    pub id: u16,
    /// Its MAC address, lower case with colons.
    pub mac: String,
    /// Bytes, 576 to 9216; at most that of the interface below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// What it carries.
    #[serde(flatten)]
    pub ip: IpConfiguration,
}

/// Addresses and routes of an interface or a VLAN.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpConfiguration {
    /// Its addresses.
    pub addresses: Vec<StaticAddress>,
    /// Routes through it.
    #[serde(default)]
    pub routes: Vec<StaticRoute>,
    /// A DHCP server is asked for one more IPv4 address.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dhcp: bool,
    /// Router advertisements give it IPv6 addresses and routes, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub slaac: bool,
}

/// How the cards of a bond act as one; the names are those of `network_data` and of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BondMode {
    /// Frames leave by the cards in turn.
    #[serde(rename = "balance-rr")]
    BalanceRr,
    /// One card at a time.
    #[serde(rename = "active-backup")]
    ActiveBackup,
    /// A hash chooses the card.
    #[serde(rename = "balance-xor")]
    BalanceXor,
    /// All frames leave by all cards.
    #[serde(rename = "broadcast")]
    Broadcast,
    /// LACP.
    #[serde(rename = "802.3ad")]
    Lacp,
    /// The load chooses the card of what is sent.
    #[serde(rename = "balance-tlb")]
    BalanceTlb,
    /// And of what is received.
    #[serde(rename = "balance-alb")]
    BalanceAlb,
}

/// What chooses the card of a frame; the names are those of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HashPolicy {
    /// MAC addresses.
    #[serde(rename = "layer2")]
    Layer2,
    /// IP addresses and ports.
    #[serde(rename = "layer3+4")]
    Layer34,
    /// MAC and IP addresses.
    #[serde(rename = "layer2+3")]
    Layer23,
    /// As layer2+3, inside tunnels.
    #[serde(rename = "encap2+3")]
    Encap23,
    /// As layer3+4, inside tunnels.
    #[serde(rename = "encap3+4")]
    Encap34,
    /// VLAN and MAC address of the sender.
    #[serde(rename = "vlan+srcmac")]
    VlanSrcMac,
}

/// An address with the length of its network's prefix (0 to 32, IPv6: 0 to 128).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticAddress {
    /// The address.
    pub ip: IpAddr,
    /// Length of the prefix.
    pub prefix: u8,
}

/// A route; with the prefix 0 the default route of its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticRoute {
    /// The destination.
    pub network: IpAddr,
    /// Length of its prefix (0 to 32, IPv6: 0 to 128).
    pub prefix: u8,
    /// The router, of the same family.
    pub gateway: IpAddr,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
