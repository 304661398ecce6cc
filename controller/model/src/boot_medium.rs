//! Boot media as the way into the ramdisk: which nodes use them, how they get there, and how they are called.

use crate::boot::BootNonce;
use crate::node::Node;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Ironic's name of the boot interface of nodes that boot no medium: their firmware gets iPXE by PXE.
pub const IPXE: &str = "ipxe";
/// The same of nodes whose UEFI firmware gets iPXE by HTTP, from where DHCP says.
pub const HTTP_IPXE: &str = "http-ipxe";
/// Ironic's name of the boot interface of [`MediumKind::VirtualDrive`].
pub const VIRTUAL_MEDIA: &str = "redfish-virtual-media";
/// Ironic's name of the boot interface of [`MediumKind::HttpBoot`].
pub const HTTP_BOOT: &str = "redfish-https";

/// How a boot medium gets to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediumKind {
    /// The BMC reads it and shows it to the node as a virtual CD drive.
    VirtualDrive,
    /// The node's UEFI firmware downloads the whole of it from a URL that the BMC passes to it (`HttpBootUri`).
    HttpBoot,
}

/// What is read of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediumFormat {
    /// All of it, as the image of a disc.
    Image,
    /// The EFI program in it alone. A firmware that downloads an image keeps it in memory for as long as the node is on, and a
    /// program only until it starts.
    Program,
}

impl MediumFormat {
    /// That of the medium with this file name.
    pub fn of(file_name: &str) -> Self {
        if file_name.ends_with(Self::Program.suffix()) { Self::Program } else { Self::Image }
    }

    /// Some BMCs take no URL of an image that ends otherwise, and a firmware knows by it what it downloads.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Image => ".iso",
            Self::Program => ".efi",
        }
    }
}

const PREFIX: &str = "anneal-";

/// How the node boots the ramdisk from a medium; `None`: it boots otherwise.
pub fn way(node: &Node) -> Option<MediumKind> {
    match node.interfaces.get("boot_interface")?.as_str() {
        VIRTUAL_MEDIA => Some(MediumKind::VirtualDrive),
        HTTP_BOOT => Some(MediumKind::HttpBoot),
        _ => None,
    }
}

/// Whether the firmware of the node is to boot from the network by HTTP, from where DHCP says, and not by PXE.
pub fn is_http_ipxe(node: &Node) -> bool {
    node.interfaces.get("boot_interface").is_some_and(|name| name == HTTP_IPXE)
}

/// What the names of all media of a node begin with: a BMC that shows it shows a medium of ours.
pub fn mark(node: Uuid) -> String {
    format!("{PREFIX}{node}")
}

/// The file name of the medium of one boot. It cannot be guessed without the nonce, and the nonce cannot be computed from it.
pub fn file_name(node: Uuid, nonce: &BootNonce, form: MediumFormat) -> String {
    let digest = Sha256::new().chain_update("boot medium ").chain_update(nonce.expose()).finalize();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digits}{}", mark(node), form.suffix())
}

/// The node that a file name is of, which the name alone does not prove.
pub fn node_of(file_name: &str) -> Option<Uuid> {
    const UUID: usize = 36;
    file_name.strip_prefix(PREFIX)?.get(..UUID)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_boot_and_does_not_show_its_nonce() {
        let (node, nonce) = (Uuid::from_u128(7), BootNonce::fresh());
        let name = file_name(node, &nonce, MediumFormat::Image);
        assert!(name.starts_with("anneal-00000000-0000-0000-0000-000000000007-"), "{name}");
        assert_eq!(name.len(), 7 + 36 + 1 + 64 + 4);
        assert!(name.starts_with(&mark(node)) && name.ends_with(".iso") && !name.contains(nonce.expose()));
        assert_eq!(node_of(&name), Some(node));
        assert_ne!(name, file_name(node, &BootNonce::fresh(), MediumFormat::Image));
        assert_ne!(name, file_name(Uuid::from_u128(8), &nonce, MediumFormat::Image));
        let program = file_name(node, &nonce, MediumFormat::Program);
        assert_eq!(program.strip_suffix(".efi"), name.strip_suffix(".iso"));
        assert_eq!(
            [&name, &program].map(|name| MediumFormat::of(name)),
            [MediumFormat::Image, MediumFormat::Program]
        );
        for other in ["", "anneal-", "anneal-00000000-0000-0000-0000-00000000000", "x.iso", "anneal-\u{e4}"] {
            assert_eq!(node_of(other), None, "{other}");
        }
    }
}
