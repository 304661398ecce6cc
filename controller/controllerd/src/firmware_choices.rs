//! Which add-on firmware the boots of nodes carry.

use crate::config::Boot;
use boot::firmware::FirmwareDir;
use model::Node;
use model::boot::RamdiskAgent;
use model::inventory::pci_modaliases;
use store::Store;

/// The add-on firmware of boots.
pub struct FirmwareChoices {
    dir: Option<FirmwareDir>,
    /// Media carry a signed program, behind which nothing can be put.
    signed_media: bool,
}

impl FirmwareChoices {
    /// As configured.
    pub fn of(boot: &Boot) -> Self {
        let signed_media = boot.signed_uki().is_some();
        Self { dir: boot.firmware_dir(), signed_media }
    }

    /// Whether boot media carry it.
    pub fn reaches_media(&self) -> bool {
        self.dir.is_some() && !self.signed_media
    }

    /// The archives for a boot of a node, by the PCI functions of its last inventory. ironic-python-agent's ramdisk gets none: it
    /// has its own modules and firmware.
    ///
    /// # Errors
    /// Why it gets none, in words for its operator.
    pub async fn of_boot(&self, store: &dyn Store, node: &Node) -> Result<Vec<String>, String> {
        let Some(dir) = &self.dir else { return Ok(Vec::new()) };
        if RamdiskAgent::of(&node.properties) == RamdiskAgent::IronicPythonAgent {
            return Ok(Vec::new());
        }
        let inventory = store.inventory(node.uuid).await.map_err(|error| error.chain())?;
        let functions = inventory.and_then(|inventory| pci_modaliases(&inventory.plugin_data));
        let firmware = dir.chosen(functions.as_deref()).await.map_err(|error| error.to_string())?;
        tracing::info!(node_uuid = %node.uuid, ?firmware, by_inventory = functions.is_some(), "add-on firmware");
        Ok(firmware)
    }

    /// The archives for a machine that no node is known for.
    pub async fn of_unknown_machine(&self) -> Vec<String> {
        let Some(dir) = &self.dir else { return Vec::new() };
        dir.chosen(None).await.unwrap_or_else(|error| {
            tracing::error!(%error, "no add-on firmware for a machine that no node is known for");
            Vec::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Inventory, Timestamp};
    use serde_json::json;
    use store::memory::MemoryStore;
    use store::prelude::*;
    use uuid::Uuid;

    const NIC: &str = "pci:v000014E4d0000168Esv00001028sd00001F67bc02sc00i00";

    /// With two archives of which a node with [`NIC`] needs one.
    fn add_ons(dir: &std::path::Path, signed: &str) -> FirmwareChoices {
        let piece = |module: &str, pattern: &str| {
            std::fs::write(dir.join(format!("{module}.cpio.zst")), "x").unwrap();
            json!({"module": module, "file": format!("{module}.cpio.zst"), "bytes": 1, "modaliases": [pattern]})
        };
        let pieces = [
            piece("bnx2x", "pci:v000014E4d0000168Esv*sd*bc*sc*i*"),
            piece("qed", "pci:v00001077d00001634sv*sd*bc*sc*i*"),
        ];
        std::fs::write(dir.join("index.json"), json!({"pieces": pieces}).to_string()).unwrap();
        FirmwareChoices::of(&Boot { firmware_dir: dir.into(), signed_uki: signed.into(), ..Boot::default() })
    }

    async fn with_node(agent: &str) -> (MemoryStore, Node) {
        let store = MemoryStore::new();
        let mut node = Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(0));
        node.properties.insert(model::boot::AGENT_KIND.to_owned(), json!(agent));
        let node = store.create_node(node, Vec::new()).await.unwrap();
        (store, node)
    }

    async fn inspected(store: &MemoryStore, node: &Node, modalias: &str) {
        let functions = json!({"extra": {"pci_devices": [{"modalias": modalias}]}});
        let inventory = Inventory {
            inventory: json!({}),
            plugin_data: json!({"anneal": {"managers": {"generic_hardware_manager": functions}}}),
            at: Timestamp(0),
            source: "agent".to_owned(),
            ruled: false,
        };
        store.put_inventory(node.uuid, inventory).await.unwrap();
    }

    #[tokio::test]
    async fn a_boot_carries_what_the_last_inventory_asks_for() {
        let dir = tempfile::tempdir().unwrap();
        let add_ons = add_ons(dir.path(), "");
        assert!(add_ons.reaches_media());
        let (store, node) = with_node("anneal").await;
        let both = ["bnx2x.cpio.zst", "qed.cpio.zst"];
        assert_eq!(add_ons.of_boot(&store, &node).await.unwrap(), both, "nothing is known of it");
        inspected(&store, &node, NIC).await;
        assert_eq!(add_ons.of_boot(&store, &node).await.unwrap(), both[..1]);
        inspected(&store, &node, "pci:v00008086d00001209sv0sd0bc02sc00i00").await;
        assert_eq!(add_ons.of_boot(&store, &node).await.unwrap(), [""; 0]);
        assert_eq!(add_ons.of_unknown_machine().await, both);
    }

    #[tokio::test]
    async fn another_agent_and_a_signed_program_carry_none() {
        let dir = tempfile::tempdir().unwrap();
        let (store, node) = with_node("ironic-python-agent").await;
        let add_ons = add_ons(dir.path(), "/anneal.efi");
        assert_eq!(add_ons.of_boot(&store, &node).await.unwrap(), [""; 0]);
        assert!(!add_ons.reaches_media());
        assert!(!FirmwareChoices::of(&Boot::default()).reaches_media());
    }

    #[tokio::test]
    async fn an_archive_that_is_gone_is_named_and_the_node_boots_without() {
        let dir = tempfile::tempdir().unwrap();
        let add_ons = add_ons(dir.path(), "");
        std::fs::remove_file(dir.path().join("qed.cpio.zst")).unwrap();
        let (store, node) = with_node("anneal").await;
        let error = add_ons.of_boot(&store, &node).await.unwrap_err();
        assert!(error.contains("qed.cpio.zst"), "{error}");
        assert_eq!(add_ons.of_unknown_machine().await, [""; 0]);
        inspected(&store, &node, NIC).await;
        assert_eq!(add_ons.of_boot(&store, &node).await.unwrap(), ["bnx2x.cpio.zst"]);
    }
}
