//! The images that this controller serves.

use crate::config::Config;
use crate::identity::Identity;
use anyhow::{Error, Result};
use images::{Endpoint, ImageStore, Wanted};
use model::{Node, ProvisionState, RunKind};
use std::sync::Arc;
use store::Store;
use tokio::runtime::Handle;

/// States of a node whose run deploys an image.
const DEPLOYING: [ProvisionState; 3] =
    [ProvisionState::Deploying, ProvisionState::DeployWait, ProvisionState::DeployHold];

/// Opens what `[images]` names.
pub fn open(config: &Config, identity: &Identity, store: Arc<dyn Store>) -> Result<ImageStore> {
    let endpoint = config
        .image_endpoint()
        .map(|address| Endpoint { address, pin: (!address.ip().is_loopback()).then(|| identity.pin()) });
    let handle = Handle::current();
    // Asked on the threads of the image store, which are none of the runtime's.
    let users = move || {
        let nodes = handle.block_on(store.nodes_in(&DEPLOYING)).map_err(|error| error.chain())?;
        Ok(nodes.iter().filter(|node| is_deployed(node)).filter_map(|node| Wanted::of(node).ok()).collect())
    };
    let opened = ImageStore::open(config.images(), config.closed_to_images(), endpoint, users);
    opened.map_err(Error::msg)
}

fn is_deployed(node: &Node) -> bool {
    let run = node.run.as_ref().filter(|run| run.is_active());
    run.is_some_and(|run| matches!(run.kind, RunKind::Deploy | RunKind::Rebuild))
}
