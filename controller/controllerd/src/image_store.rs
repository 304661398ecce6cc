//! The images that this controller serves.

use crate::config::Config;
use crate::identity::Identity;
use anyhow::{Error, Result};
use images::{Endpoint, ImageStore, Wanted};
use model::{AgentApi, Node, ProvisionState, RunKind};
use std::sync::{Arc, mpsc};
use store::{Members, Store};
use tokio::runtime::Handle;

/// States of a node whose run deploys an image.
const DEPLOYING: [ProvisionState; 3] =
    [ProvisionState::Deploying, ProvisionState::DeployWait, ProvisionState::DeployHold];

/// How many other controllers the agent that writes an image knows of.
const OTHERS: usize = 4;

/// Opens what `[images]` names. The members are the controllers that have the same images.
pub fn open(
    config: &Config,
    identity: &Identity,
    store: Arc<dyn Store>,
    members: Members,
) -> Result<ImageStore> {
    let endpoint = config
        .image_endpoint()
        .map(|address| Endpoint { address, pin: (!address.ip().is_loopback()).then(|| identity.pin()) });
    let handle = Handle::current();
    let users = move || in_use(&handle, &store);
    let opened = ImageStore::open(config.images(), config.closed_to_images(), endpoint, users);
    let opened = opened.map_err(Error::msg)?;
    Ok(opened.alongside(move || copies(&members)))
}

/// Where else agents get an image: here over IPv6, where the first address is of IPv4, and at the other controllers.
fn copies(members: &Members) -> Vec<AgentApi> {
    let own = members.agent_api().into_iter().flat_map(AgentApi::by_url).skip(1);
    let others = members.other_agent_apis(OTHERS);
    own.chain(others.iter().flat_map(AgentApi::by_url)).collect()
}

/// The images that runs deploy now. The threads of the image store ask, some of them from within a runtime of their own: waiting for the
/// answer with `block_on` would panic there.
fn in_use(runtime: &Handle, store: &Arc<dyn Store>) -> Result<Vec<Wanted>, String> {
    let ((answer, answered), store) = (mpsc::channel(), store.clone());
    runtime.spawn(async move { answer.send(store.nodes_in(&DEPLOYING).await) });
    let nodes = answered.recv().map_err(|_| "the controller stops".to_owned())?;
    let nodes = nodes.map_err(|error| error.chain())?;
    Ok(nodes.iter().filter(|node| is_deployed(node)).filter_map(|node| Wanted::of(node).ok()).collect())
}

fn is_deployed(node: &Node) -> bool {
    let run = node.run.as_ref().filter(|run| run.is_active());
    run.is_some_and(|run| matches!(run.kind, RunKind::Deploy | RunKind::Rebuild))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Cursor, Run, Timestamp};
    use serde_json::json;
    use store::memory::MemoryStore;
    use store::prelude::*;
    use tokio::runtime::{Builder, Runtime};
    use uuid::Uuid;

    /// As an image that arrives does: it is received within a runtime of its thread.
    #[test]
    fn which_images_are_in_use_is_asked_from_within_another_runtime() {
        let (runtime, store) = (Runtime::new().unwrap(), Arc::new(MemoryStore::new()));
        let mut node = Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(0));
        let info = json!({"image_source": "http://192.0.2.1/a", "image_checksum": "0a".repeat(32)});
        node.instance_info = info.as_object().unwrap().clone();
        node.provision_state = ProvisionState::DeployWait;
        let cursor = Cursor::AwaitAgent;
        node.run = Some(Run { cursor, booted: true, ..Run::new(RunKind::Deploy, Timestamp(0)) });
        runtime.block_on(store.create_node(node.clone(), Vec::new())).unwrap();
        let (handle, store) = (runtime.handle().clone(), store as Arc<dyn Store>);
        let thread = std::thread::spawn(move || {
            Builder::new_current_thread().build().unwrap().block_on(async { in_use(&handle, &store) })
        });
        assert_eq!(thread.join().expect("no panic"), Ok(vec![Wanted::of(&node).unwrap()]));
    }
}
