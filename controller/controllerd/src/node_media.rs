//! Boot media of nodes that boot by virtual media or UEFI HTTP boot: whether a node can have one, where it is, and what is on it besides kernel
//! and initramfs.

use crate::config::Config;
use crate::predictions::Predictions;
use agent_protocol::boot_medium::StaticNetwork;
use api::BootMediumKind;
use boot::medium::{SHIM, SYSTEMD_BOOT};
use boot_media::{signed, static_network};
use conductor::BootMedia;
use model::boot::{BootNonce, RamdiskAgent};
use model::boot_medium::{MediumFormat, MediumKind};
use model::{AgentApi, Node, RunKind, boot_medium, capabilities};
use std::fs::File;
use std::io::Read;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of [`crate::config::Boot::medium_loader_dir`].
const LOADERS: [&str; 3] = ["isolinux.bin", "ldlinux.c32", "linuxx64.efi.stub"];
/// The same for nodes with Secure Boot.
const SIGNED_LOADERS: [&str; 2] = [SHIM, SYSTEMD_BOOT];

/// Boot media as this controller is configured.
#[derive(Debug, Clone)]
pub struct NodeMedia {
    /// Where boot HTTP is served, IPv4 first; nowhere: it is switched off.
    served_at: Vec<SocketAddr>,
    loader_dir: PathBuf,
    signed_uki: Option<PathBuf>,
    predictions: Predictions,
    /// SHA-256 of the certificate that agents see; `None` without TLS.
    pin_sha256: Option<String>,
}

impl NodeMedia {
    /// As configured, for agents that reach this controller there.
    pub fn of(config: &Config, reached_at: Option<&AgentApi>) -> Self {
        let boot = &config.boot;
        Self {
            served_at: boot.http_addresses().collect(),
            loader_dir: boot.medium_loader_dir.clone(),
            signed_uki: boot.signed_uki().map(Into::into),
            predictions: Predictions::default(),
            pin_sha256: reached_at.and_then(|api| api.pin_sha256.clone()),
        }
    }

    /// What the medium of the node boots.
    pub fn kind(&self, node: &Node) -> BootMediumKind {
        if self.signed_uki.is_some() {
            BootMediumKind::Signed
        } else if capabilities::has_secure_boot(node) {
            BootMediumKind::Shim
        } else {
            BootMediumKind::Unsigned
        }
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
        match (&self.signed_uki, self.kind(node)) {
            (Some(program), _) => check_program(program, self.pin_sha256.as_deref())?,
            (None, BootMediumKind::Shim) => {
                is_uefi(node)?;
                self.check_loaders(&SIGNED_LOADERS)?;
            }
            (None, _) => self.check_loaders(&LOADERS)?,
        }
        if RamdiskAgent::of(&node.properties) == RamdiskAgent::IronicPythonAgent {
            self.check_for_ironic_python_agent(node)?;
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

    /// What a boot of the signed ramdisk measures, as its file is now.
    ///
    /// # Errors
    /// There is none, or it cannot be predicted, in words for an operator.
    pub async fn predicted(&self) -> Result<Arc<tpm::Prediction>, String> {
        let file = self.signed_uki.as_ref().ok_or(
            "boot.signed_uki names no signed ramdisk, and the node does not boot through a shim (the capability secure_boot:true)",
        )?;
        self.predictions.of(file).await.map_err(|why| format!("boot.signed_uki: {why}"))
    }

    /// It reads its parameters from a drive, whatever else is on that.
    fn check_for_ironic_python_agent(&self, node: &Node) -> Result<(), String> {
        let because = if self.signed_uki.is_some() {
            "boot.signed_uki boots Anneal's agent alone"
        } else if self.kind(node) == BootMediumKind::Shim {
            "a boot through Debian's shim (the capability secure_boot:true) is of Anneal's agent alone"
        } else if boot_medium::way(node) == Some(MediumKind::HttpBoot) {
            "after UEFI HTTP boot there is no drive with the parameters of ironic-python-agent"
        } else if network(node)?.is_some() {
            "ironic-python-agent gets no network_data from a boot medium, and needs DHCP"
        } else {
            return Ok(());
        };
        Err(format!("{because}, and the property agent_kind names ironic-python-agent"))
    }

    fn check_loaders(&self, names: &[&str]) -> Result<(), String> {
        match names.iter().find(|name| !self.loader_dir.join(name).is_file()) {
            Some(name) => Err(format!(
                "boot.medium_loader_dir of the controller's configuration has no file {name} (`cargo xtask image` makes it)"
            )),
            None => Ok(()),
        }
    }
}

/// Whether the program is signed and obeys the controller with this certificate. Whether a firmware accepts the signature cannot be
/// known here.
fn check_program(program: &Path, pin_sha256: Option<&str>) -> Result<(), String> {
    let shown = program.display();
    let mut head = Vec::new();
    File::open(program)
        .and_then(|file| file.take(signed::HEAD).read_to_end(&mut head))
        .map_err(|error| format!("boot.signed_uki {shown}: {error} (`cargo xtask image --sign` makes it)"))?;
    let obeyed = signed::obeyed(&head).map_err(|error| format!("boot.signed_uki {shown}: {error}"))?;
    let Some(pin) = pin_sha256.map(|pin| format!("sha256:{}", pin.to_ascii_lowercase())) else {
        return Err("boot.signed_uki obeys controllers by their certificates, and this one has none: agents reach it by plain \
                    HTTP"
            .to_owned());
    };
    if obeyed.contains(&pin) {
        return Ok(());
    }
    Err(format!(
        "boot.signed_uki {shown} does not obey this controller: it was signed without the pin of its certificate, {pin}"
    ))
}

/// Secure Boot is a thing of UEFI.
fn is_uefi(node: &Node) -> Result<(), String> {
    match capabilities::of(node, capabilities::BOOT_MODE) {
        Some("bios") => Err("properties.capabilities says secure_boot:true and boot_mode:bios: Secure Boot is a feature of UEFI".to_owned()),
        _ => Ok(()),
    }
}

impl BootMedia for NodeMedia {
    fn url(&self, node: &Node, nonce: &BootNonce) -> Result<String, String> {
        let base_url = self.check(node)?;
        // The API refuses the verb; this is for a configuration that was changed since.
        if self.signed_uki.is_some() && node.run.as_ref().is_some_and(|run| run.kind == RunKind::Rescue) {
            return Err("boot.signed_uki has no login for a rescue".to_owned());
        }
        // Where programs are signed, what varies is not in them.
        let form = match (boot_medium::way(node), self.kind(node)) {
            (Some(MediumKind::HttpBoot), BootMediumKind::Unsigned) => MediumFormat::Program,
            _ => MediumFormat::Image,
        };
        Ok(format!("{base_url}/boot/media/{}", boot_medium::file_name(node.uuid, nonce, form)))
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
        for name in LOADERS.iter().chain(&SIGNED_LOADERS) {
            std::fs::write(dir.join(name), "x").unwrap();
        }
        let served_at = ["192.0.2.1:8089", "[2001:db8::1]:8089"].map(|at| at.parse().unwrap());
        NodeMedia {
            served_at: served_at.to_vec(),
            loader_dir: dir.to_owned(),
            signed_uki: None,
            predictions: Predictions::default(),
            pin_sha256: Some("AB".repeat(32)),
        }
    }

    /// A signed program, as far as its headers go.
    fn program(line: &str, is_signed: bool) -> Vec<u8> {
        let mut program = vec![0; 4096];
        let mut put = |at: usize, bytes: &[u8]| program[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x3c, &0x80_u32.to_le_bytes());
        put(0x80, b"PE\0\0");
        put(0x86, &1_u16.to_le_bytes());
        put(0x94, &240_u16.to_le_bytes());
        put(0x98, &0x20b_u16.to_le_bytes());
        put(0x98 + 148, &u32::from(is_signed).to_le_bytes());
        put(0x188, b".cmdline");
        put(0x188 + 8, &u32::try_from(line.len()).unwrap().to_le_bytes());
        put(0x188 + 20, &1024_u32.to_le_bytes());
        put(1024, line.as_bytes());
        program
    }

    #[test]
    fn a_signed_ramdisk_that_does_not_obey_this_controller_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("anneal.efi");
        let media = NodeMedia { signed_uki: Some(file.clone()), ..media(dir.path()) };
        let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        let list =
            |digits: &str| format!("anneal.obeys=sha256:{},sha256:{}", "cd".repeat(32), digits.repeat(32));
        let says = |media: &NodeMedia, bytes: &[u8], node: &Node| {
            std::fs::write(&file, bytes).unwrap();
            media
                .url(node, &BootNonce::fresh())
                .map_err(|why| why.replace(&file.display().to_string(), "FILE"))
        };
        assert!(media.check(&node).unwrap_err().contains("cargo xtask image --sign"), "no file");
        assert!(says(&media, &program(&list("ab"), true), &node).is_ok());
        let foreign = says(&media, &program(&list("ef"), true), &node).unwrap_err();
        assert!(foreign.contains("FILE does not obey this controller") && foreign.contains(&"ab".repeat(32)));
        let unsigned = says(&media, &program(&list("ab"), false), &node).unwrap_err();
        assert!(unsigned.contains("it is not signed"), "{unsigned}");
        let none = says(&media, &program("quiet", true), &node).unwrap_err();
        assert!(none.contains("names no controllers"), "{none}");
        let plain = NodeMedia { pin_sha256: None, ..media.clone() };
        assert!(says(&plain, &program(&list("ab"), true), &node).unwrap_err().contains("plain HTTP"));
        node.run = Some(model::Run::new(RunKind::Rescue, Timestamp(0)));
        assert!(says(&media, &program(&list("ab"), true), &node).unwrap_err().contains("no login"));
    }

    #[test]
    fn a_node_with_secure_boot_boots_through_a_shim_unless_there_is_a_signed_ramdisk() {
        let dir = tempfile::tempdir().unwrap();
        let media = media(dir.path());
        let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        assert_eq!(media.kind(&node), BootMediumKind::Unsigned);
        let mut with = |capabilities: &str| {
            node.properties.insert("capabilities".to_owned(), json!(capabilities));
            node.clone()
        };
        let secure = with("boot_mode:uefi,secure_boot:true");
        assert_eq!(media.kind(&secure), BootMediumKind::Shim);
        let signed = NodeMedia { signed_uki: Some(dir.path().join("anneal.efi")), ..media.clone() };
        assert_eq!(signed.kind(&secure), BootMediumKind::Signed);
        media.check(&secure).unwrap();
        assert!(
            media.check(&with("boot_mode:bios,secure_boot:true")).unwrap_err().contains("boot_mode:bios")
        );
        std::fs::remove_file(dir.path().join("isolinux.bin")).unwrap();
        media.check(&secure).unwrap();
        std::fs::remove_file(dir.path().join(SYSTEMD_BOOT)).unwrap();
        assert!(media.check(&secure).unwrap_err().contains("no file systemd-bootx64.efi.signed"));
    }

    #[test]
    fn ironic_python_agent_boots_by_virtual_media_alone_and_with_dhcp() {
        let dir = tempfile::tempdir().unwrap();
        let media = media(dir.path());
        let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        node.properties.insert("agent_kind".to_owned(), json!("ironic-python-agent"));
        assert!(media.url(&node, &BootNonce::fresh()).unwrap().ends_with(".iso"));
        let says = |media: &NodeMedia, node: &Node| media.url(node, &BootNonce::fresh()).unwrap_err();
        let mut by_http = node.clone();
        by_http.interfaces.insert("boot_interface".into(), boot_medium::HTTP_BOOT.into());
        assert!(says(&media, &by_http).contains("UEFI HTTP boot"));
        let mut networked = node.clone();
        let link = json!({"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"});
        let network = json!({"id": "n", "link": "l", "network_id": "x", "type": "ipv4_dhcp"});
        networked.other.insert("network_data".to_owned(), json!({"links": [link], "networks": [network]}));
        assert!(says(&media, &networked).contains("needs DHCP"));
        let file = dir.path().join("anneal.efi");
        let line = format!("anneal.obeys=sha256:{}", "ab".repeat(32));
        std::fs::write(&file, program(&line, true)).unwrap();
        let signed = NodeMedia { signed_uki: Some(file), ..media };
        assert!(says(&signed, &node).contains("boot.signed_uki boots Anneal's agent alone"));
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

        let mut by_http = node.clone();
        by_http.interfaces.insert("boot_interface".to_owned(), "redfish-https".to_owned());
        assert!(media.url(&by_http, &nonce).unwrap().ends_with(".efi"));

        let mut over_ipv6 = node.clone();
        over_ipv6.driver_info.insert("redfish_address".to_owned(), json!("https://[2001:db8::9]"));
        let url = media.url(&over_ipv6, &nonce).unwrap();
        assert!(url.starts_with("http://[2001:db8::1]:8089/boot/media/"), "{url}");

        let says = |media: &NodeMedia, node: &Node| media.url(node, &nonce).unwrap_err();
        assert!(
            says(&NodeMedia { served_at: Vec::new(), ..media.clone() }, &node).contains("[boot] enabled")
        );
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
