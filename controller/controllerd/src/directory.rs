//! What a MAC boots: the ramdisk while the node's run waits for one, its disk otherwise.

use async_trait::async_trait;
use boot::{BootAnswer, BootDirectory};
use model::port::canonical_mac;
use model::{Node, ProvisionState};
use std::sync::Arc;
use store::Store;

/// Decides by the store.
pub struct Directory {
    /// Where nodes and ports are kept.
    pub store: Arc<dyn Store>,
    /// Kernel arguments of the ramdisk.
    pub kernel_args: String,
}

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, mac: &str) -> BootAnswer {
        let Some(mac) = canonical_mac(mac) else { return BootAnswer::Unknown };
        let Ok(port) = self.store.port_by_address(&mac).await else { return BootAnswer::Unknown };
        match self.store.node(port.node_uuid).await {
            Ok(node) if wants_ramdisk(&node) => BootAnswer::Ramdisk { kernel_args: self.kernel_args.clone() },
            Ok(_) => BootAnswer::LocalDisk,
            Err(error) => {
                tracing::error!(%mac, %error, "cannot tell what the node boots; it gets its disk");
                BootAnswer::LocalDisk
            }
        }
    }
}

fn wants_ramdisk(node: &Node) -> bool {
    matches!(node.provision_state, ProvisionState::Cleaning | ProvisionState::CleanWait)
        && node.run.as_ref().is_some_and(model::Run::is_active)
}
