//! What the NIC with a MAC address boots: the ramdisk while the node's run needs it, the disk otherwise.

use async_trait::async_trait;
use boot::{BootAnswer, BootDirectory, Mac};
use model::{Node, ResourceKind, RunKind};
use std::sync::Arc;
use store::Store;

/// Looks nodes up in the store.
pub struct Directory {
    /// Where nodes and ports are kept.
    pub store: Arc<dyn Store>,
    /// Kernel arguments of the ramdisk.
    pub kernel_args: String,
    /// URL of the API as nodes reach it.
    pub api_url: String,
}

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, mac: Mac) -> BootAnswer {
        let port = self.store.resource_by_key(ResourceKind::Port, &mac.to_string()).await;
        let Some(node) = port.ok().and_then(|port| port.node) else { return BootAnswer::Unknown };
        match self.store.node(node).await {
            Ok(node) if node.boots_ramdisk() => BootAnswer::Ramdisk { kernel_args: self.kernel_args(&node) },
            Ok(_) => BootAnswer::LocalDisk,
            Err(error) => {
                tracing::error!(%mac, error = %error.chain(), "cannot read the node; it boots from its disk");
                BootAnswer::LocalDisk
            }
        }
    }
}

impl Directory {
    /// The kernel arguments; a node that is inspected also gets the URL to send its inventory to.
    fn kernel_args(&self, node: &Node) -> String {
        let inspects = node.run.as_ref().is_some_and(|run| run.is_active() && run.kind == RunKind::Inspect);
        match inspects {
            true => format!(
                "{} ipa-inspection-callback-url={}/v1/continue_inspection",
                self.kernel_args, self.api_url
            ),
            false => self.kernel_args.clone(),
        }
    }
}
