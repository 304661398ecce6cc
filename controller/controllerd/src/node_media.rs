//! Boot media of nodes that boot by virtual media or UEFI HTTP boot: whether a node can have one, where it is, and what is on it besides kernel
//! and initramfs.

use crate::config::Config;
use agent_protocol::boot_medium::StaticNetwork;
use boot_media::static_network;
use conductor::BootMedia;
use model::boot::{BootNonce, RamdiskAgent};
use model::boot_medium::MediumKind;
use model::{Node, boot_medium};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Files of [`crate::config::Boot::medium_loader_dir`].
const LOADERS: [&str; 3] = ["isolinux.bin", "ldlinux.c32", "linuxx64.efi.stub"];

/// Boot media as this controller is configured.
#[derive(Debug, Clone)]
pub struct NodeMedia {
    /// Where boot HTTP is served, IPv4 first; nowhere: it is switched off.
    served_at: Vec<SocketAddr>,
    loader_dir: PathBuf,
}

impl NodeMedia {
    /// As configured.
    pub fn of(config: &Config) -> Self {
        let served_at = config.boot.http_addresses().collect();
        Self { served_at, loader_dir: config.boot.medium_loader_dir.clone() }
    }

    /// Whether the node can be booted from a medium, as far as can be known without its BMC. Base URL of boot HTTP for who reads
    /// it: over IPv6 for a BMC that is managed at such an address.
    ///
    /// # Errors
    /// Why it cannot, in words for its operator.
    pub fn check(&self, node: &Node) -> Result<String, String> {
        let served_at = self.served_at.iter().find(|at| at.is_ipv6() == is_read_over_ipv6(node));
        let served_at = served_at.or(self.served_at.first()).ok_or(
            "this controller serves no boot media ([boot] enabled), from which the boot interfaces redfish-virtual-media and \
             redfish-https boot nodes",
        )?;
        if let Some(name) = LOADERS.into_iter().find(|name| !self.loader_dir.join(name).is_file()) {
            return Err(format!(
                "boot.medium_loader_dir of the controller's configuration has no file {name} (`cargo xtask image` makes it)"
            ));
        }
        if RamdiskAgent::of(&node.properties) == RamdiskAgent::IronicPythonAgent {
            return Err(
                "a boot medium boots Anneal's agent, and the property agent_kind names another".to_owned()
            );
        }
        if node.never_powers_off() {
            return Err(
                "disable_power_off is set, and a medium is made for a boot after an observed power-off"
                    .to_owned(),
            );
        }
        network(node)?;
        Ok(format!("http://{served_at}"))
    }
}

impl BootMedia for NodeMedia {
    fn url(&self, node: &Node, nonce: &BootNonce) -> Result<String, String> {
        let base_url = self.check(node)?;
        Ok(format!("{base_url}/boot/media/{}", boot_medium::file_name(node.uuid, nonce)))
    }
}

fn is_read_over_ipv6(node: &Node) -> bool {
    let bmc = bmc::host(&node.driver, &node.driver_info);
    boot_medium::way(node) != Some(MediumKind::HttpBoot)
        && bmc.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
}

/// The node's own network.
///
/// # Errors
/// What in its `network_data` cannot be used.
pub fn network(node: &Node) -> Result<Option<StaticNetwork>, String> {
    let data = node.other.get("network_data").unwrap_or(&serde_json::Value::Null);
    static_network(data).map_err(|why| format!("network_data: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    fn media(dir: &std::path::Path) -> NodeMedia {
        for name in LOADERS {
            std::fs::write(dir.join(name), "x").unwrap();
        }
        let served_at = ["192.0.2.1:8089", "[2001:db8::1]:8089"].map(|at| at.parse().unwrap());
        NodeMedia { served_at: served_at.to_vec(), loader_dir: dir.to_owned() }
    }

    #[test]
    fn what_stands_in_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let media = media(dir.path());
        let node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        let nonce = BootNonce::fresh();
        let url = media.url(&node, &nonce).unwrap();
        assert!(url.starts_with("http://192.0.2.1:8089/boot/media/anneal-00000000-0000-"), "{url}");
        assert!(url.ends_with(".iso") && !url.contains(nonce.expose()), "{url}");

        let mut over_ipv6 = node.clone();
        over_ipv6.driver_info.insert("redfish_address".to_owned(), json!("https://[2001:db8::9]"));
        let url = media.url(&over_ipv6, &nonce).unwrap();
        assert!(url.starts_with("http://[2001:db8::1]:8089/boot/media/"), "{url}");

        let says = |media: &NodeMedia, node: &Node| media.url(node, &nonce).unwrap_err();
        assert!(
            says(&NodeMedia { served_at: Vec::new(), ..media.clone() }, &node).contains("[boot] enabled")
        );
        let mut theirs = node.clone();
        theirs.properties.insert("agent_kind".to_owned(), json!("ironic-python-agent"));
        assert!(says(&media, &theirs).contains("agent_kind"));
        let mut on = node.clone();
        on.other.insert("disable_power_off".to_owned(), json!(true));
        assert!(says(&media, &on).contains("disable_power_off"));
        let mut networked = node.clone();
        let link = json!({"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"});
        let network = json!({"id": "n", "link": "l", "network_id": "x", "type": "ipv6_dhcp"});
        let data = json!({"links": [link], "networks": [network], "services": []});
        networked.other.insert("network_data".to_owned(), data);
        assert!(says(&media, &networked).contains("network_data: networks of type ipv6_dhcp"));
        std::fs::remove_file(dir.path().join("ldlinux.c32")).unwrap();
        assert!(says(&media, &node).contains("no file ldlinux.c32"));
    }
}
