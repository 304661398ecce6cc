//! A hello of an instance, as it arrives: whose it is.

use crate::{NodeStore, Result, StoreError};
use model::hello::{AWAITED_IN, HelloNonce};
use model::request::{accept_hello, awaits_hello};
use model::{Node, Timestamp};
use subtle::ConstantTimeEq;

/// How often a write is tried again because the node was written in between.
const TRIES: u32 = 5;

/// Store that the instance with this nonce has said hello. False where no run awaits it: the nonce is of no deployment, of one
/// that has ended, or was used. The caller is unknown, so it cannot learn which of them.
///
/// # Errors
/// The store cannot be read or written.
pub async fn hear<S: NodeStore + ?Sized>(store: &S, shown: &HelloNonce, now: Timestamp) -> Result<bool> {
    for _ in 0..TRIES {
        // Every node that could await one is compared, whichever it is: the time of an answer does not depend on its place.
        let mut found = None;
        for node in store.nodes_in(&AWAITED_IN).await? {
            if awaits(&node, shown) {
                found = Some(node);
            }
        }
        let Some(node) = found else {
            return Ok(false);
        };
        let Some((node, event)) = accept_hello(&node, now) else { return Ok(false) };
        match store.update_node(node, vec![event], None).await {
            Err(StoreError::Stale(_)) => {}
            Err(StoreError::NotFound { .. }) => return Ok(false),
            written => return written.map(|_| true),
        }
    }
    // The instance asks again.
    Ok(false)
}

/// Whether the run of the node awaits the hello with this nonce, compared in constant time.
fn awaits(node: &Node, shown: &HelloNonce) -> bool {
    let Some(run) = node.run.as_ref().filter(|run| awaits_hello(run)) else { return false };
    let known = run.hello.as_ref().map(|hello| hello.nonce.expose()).unwrap_or_default();
    !known.is_empty() && bool::from(known.as_bytes().ct_eq(shown.expose().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use model::hello::{Hello, WAIT_FOR_HELLO};
    use model::{Cursor, ProvisionState, Run, RunKind};
    use serde_json::{Map, json};
    use uuid::Uuid;

    fn hello() -> Hello {
        Hello::wanted(&Map::from_iter([(WAIT_FOR_HELLO.to_owned(), json!(60))])).unwrap()
    }

    /// A node in this state whose run awaits this hello.
    async fn awaiting(store: &MemoryStore, state: ProvisionState, hello: &Hello) -> Uuid {
        let mut node = Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(0));
        let cursor = Cursor::AwaitHello { command_id: "c".into(), since: Timestamp(0) };
        node.run =
            Some(Run { cursor, hello: Some(hello.clone()), ..Run::new(RunKind::Deploy, Timestamp(0)) });
        node.provision_state = state;
        store.create_node(node, Vec::new()).await.unwrap().uuid
    }

    #[tokio::test]
    async fn a_hello_is_heard_by_the_node_whose_nonce_it_shows_and_by_no_other() {
        let (store, hellos) = (MemoryStore::new(), [hello(), hello()]);
        let mut nodes = Vec::new();
        for hello in &hellos {
            nodes.push(awaiting(&store, ProvisionState::DeployWait, hello).await);
        }
        assert!(!hear(&store, &hello().nonce, Timestamp(5)).await.unwrap(), "of no node");
        assert!(hear(&store, &hellos[1].nonce, Timestamp(7)).await.unwrap());
        let heard = async |index: usize| {
            let run = store.node(nodes[index]).await.unwrap().run.unwrap();
            run.hello.unwrap().heard_at
        };
        assert_eq!((heard(0).await, heard(1).await), (None, Some(Timestamp(7))));
        assert!(!hear(&store, &hellos[1].nonce, Timestamp(8)).await.unwrap(), "a second time");
    }

    #[tokio::test]
    async fn a_nonce_that_was_forgotten_is_nobodys() {
        let store = MemoryStore::new();
        let forgotten = Hello { nonce: HelloNonce::default(), ..hello() };
        awaiting(&store, ProvisionState::DeployWait, &forgotten).await;
        assert!(!hear(&store, &HelloNonce::shown(""), Timestamp(5)).await.unwrap());
    }
}
