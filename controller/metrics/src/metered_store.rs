//! A store whose calls are timed, and whose writes of nodes, heartbeats and leases are counted.

use crate::counts::Counts;
use async_trait::async_trait;
use model::agent::{Contact, UnsignedAgent};
use model::boot::{Boot, BootNonce};
use model::boot_proof::BootProof;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot};
use model::{
    Bundle, Catalogue, Certificate, ConductorReport, DeadLetter, Delivery, Event, EventKind, Inventory, Node,
    ProvisionState, Resource, ResourceKind, Scope, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    AgentStore, Bell, ConductorStore, DiscoveryStore, EventCursor, EventPage, EventStore, FieldValue,
    HeartbeatRecord, Inspected, KeptEvents, Lease, NodeChange, NodeField, NodePage, NodeQuery, NodeStore,
    ResourcePage, ResourceQuery, ResourceStore, ResourceWrite, Result, ScriptFetch, ScriptGrant, StepKind,
    Store, StoreError, TokenGrant, TokenRequest, UnknownBootGrant,
};
use tokio::time::Instant;
use uuid::Uuid;

/// Times the calls of another store.
pub struct MeteredStore {
    pub store: Arc<dyn Store>,
    pub counts: Arc<Counts>,
}

impl MeteredStore {
    async fn timed<T>(&self, operation: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        let began = Instant::now();
        let result = call.await;
        self.counts.store_calls.took([operation], began.elapsed());
        if let Err(StoreError::Failed { .. }) = &result {
            self.counts.store_failures.count([]);
        }
        result
    }

    /// Count that a write of a node was stored.
    fn wrote(&self, node: &Node, entered: bool) {
        if entered {
            self.counts.transitions.count([node.provision_state.as_str()]);
        }
        self.counts.erases.rests(node);
    }
}

/// Whether a write with these events moves its node to another state.
fn enters(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == EventKind::Transition)
}

/// Implements a trait by timed calls of the other store's methods, and by what stands after `with`.
macro_rules! timed {
    ($trait:ident {
        $(async fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*
    } with { $($other:tt)* }) => {
        #[async_trait]
        impl $trait for MeteredStore {
            $(async fn $name(&self, $($arg: $type),*) -> $result {
                self.timed(stringify!($name), self.store.$name($($arg),*)).await
            })*
            $($other)*
        }
    };
}

timed!(NodeStore {
    async fn node(uuid: Uuid) -> Result<Node>;
    async fn shared_node(uuid: Uuid) -> Result<Arc<Node>>;
    async fn node_by_ident(ident: &str) -> Result<Node>;
    async fn nodes() -> Result<Vec<Node>>;
    async fn node_page(query: NodeQuery) -> Result<NodePage>;
    async fn node_page_once(query: NodeQuery) -> Result<NodePage>;
    async fn count_nodes(fields: &[NodeField], project: Option<&str>) -> Result<BTreeMap<Vec<FieldValue>, usize>>;
    async fn nodes_in(states: &[ProvisionState]) -> Result<Vec<Node>>;
    async fn delete_node(uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()>;
    async fn history(node: Uuid) -> Result<Vec<Event>>;
    async fn certificates(node: Uuid) -> Result<Vec<Certificate>>;
    async fn certificate(id: &str) -> Result<Certificate>;
    async fn certificate_log(from: u64, limit: usize) -> Result<Vec<String>>;
    async fn add_key_change(change: String) -> Result<()>;
    async fn key_changes() -> Result<Vec<String>>;
    async fn catalogue(node: Uuid, kind: StepKind) -> Result<Option<Catalogue>>;
    async fn inventory(node: Uuid) -> Result<Option<Inventory>>;
    async fn put_inventory(node: Uuid, inventory: Inventory) -> Result<()>;
    async fn check_writable() -> Result<()>;
    async fn lease_holder(node: Uuid, now: Timestamp) -> Result<Option<String>>;
    async fn lease_holders(nodes: &[Uuid], now: Timestamp) -> Result<BTreeMap<Uuid, String>>;
    async fn conductors() -> Result<Vec<ConductorReport>>;
} with {
    async fn create_node(&self, node: Node, events: Vec<Event>) -> Result<Node> {
        let created = self.timed("create_node", self.store.create_node(node, events)).await?;
        self.wrote(&created, true);
        Ok(created)
    }

    async fn update_node(&self, node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        let entered = enters(&events);
        let stored = self.timed("update_node", self.store.update_node(node, events, lease)).await?;
        self.wrote(&stored, entered);
        Ok(stored)
    }

    fn bell(&self) -> &Bell {
        self.store.bell()
    }
});

timed!(EventStore {
    async fn events(after: Option<EventCursor>, limit: usize) -> Result<EventPage>;
    async fn newest_event() -> Result<EventCursor>;
    async fn prune_events(kept: KeptEvents, now: Timestamp) -> Result<u64>;
    async fn take_webhook(webhook: &str, holder: &str, now: Timestamp, until: Timestamp) -> Result<Option<Delivery>>;
    async fn put_delivery(delivery: Delivery, letter: Option<DeadLetter>) -> Result<bool>;
    async fn deliveries() -> Result<Vec<Delivery>>;
    async fn dead_letters(webhook: &str, only_retried: bool, limit: usize) -> Result<Vec<DeadLetter>>;
    async fn put_dead_letter(letter: DeadLetter) -> Result<()>;
    async fn remove_dead_letter(webhook: &str, place: u64) -> Result<()>;
} with {});

timed!(DiscoveryStore {
    async fn discovered_machines() -> Result<Vec<DiscoveredMachine>>;
    async fn discovered_machine(id: Uuid) -> Result<DiscoveredMachine>;
    async fn boot_unknown(boot: UnknownBoot, limits: DiscoveryLimits) -> Result<UnknownBootGrant>;
    async fn forget_discovered(id: Uuid, version: u64) -> Result<()>;
} with {
    async fn write_discovered(
        &self,
        machine: DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<DiscoveredMachine> {
        let made = match &change {
            NodeChange::Create(new) => Some(new.node.clone()),
            _ => None,
        };
        let write = self.store.write_discovered(machine, change, events);
        let written = self.timed("write_discovered", write).await?;
        if let Some(node) = made {
            self.wrote(&node, true);
        }
        Ok(written)
    }
});

timed!(AgentStore {
    async fn contact(node: Uuid) -> Result<Contact>;
    async fn contacts(nodes: &[Uuid]) -> Result<Vec<Contact>>;
    async fn shared_contacts(nodes: &[Uuid]) -> Result<Vec<Arc<Contact>>>;
    async fn grant_token(node: Uuid, request: TokenRequest) -> Result<TokenGrant>;
    async fn fetch_script(node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant>;
    async fn record_proof(node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool>;
    async fn refuse_unsigned(node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()>;
} with {
    async fn record_heartbeat(&self, node: Uuid, token: &str, heartbeat: HeartbeatRecord) -> Result<()> {
        let agent = heartbeat.agent.clone();
        self.timed("record_heartbeat", self.store.record_heartbeat(node, token, heartbeat)).await?;
        self.counts.erases.heard(node, &agent);
        Ok(())
    }
});

timed!(ResourceStore {
    async fn resource(kind: ResourceKind, ident: &str) -> Result<Resource>;
    async fn resource_by_key(kind: ResourceKind, key: &str) -> Result<Resource>;
    async fn resources_by_uuid(kind: ResourceKind, uuids: &[Uuid]) -> Result<Vec<Resource>>;
    async fn resource_page(query: ResourceQuery) -> Result<ResourcePage>;
    async fn resources(kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>>;
    async fn put_bundle(bundle: Bundle, event: Event) -> Result<Option<Bundle>>;
    async fn bundles() -> Result<Vec<Bundle>>;
    async fn delete_bundle(digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>>;
} with {
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        events: Vec<Event>,
    ) -> Result<Resource> {
        let moved = node.as_ref().filter(|(_, events)| enters(events)).map(|(node, _)| node.clone());
        let stored = self.timed("write_resource", self.store.write_resource(write, node, events)).await?;
        if let Some(node) = moved {
            self.wrote(&node, true);
        }
        Ok(stored)
    }
});

timed!(ConductorStore {
    async fn clock() -> Result<Option<Timestamp>>;
    async fn report_conductor(report: ConductorReport) -> Result<()>;
    async fn remove_conductor(hostname: &str) -> Result<()>;
    async fn release_lease(lease: Lease) -> Result<()>;
    async fn leased_by(holder: &str) -> Result<Vec<Uuid>>;
    async fn due(now: Timestamp, limit: usize) -> Result<Vec<Uuid>>;
    async fn next_due(now: Timestamp) -> Result<Option<Timestamp>>;
    async fn look(uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)>;
    async fn newest_certificate(node: Uuid) -> Result<Option<Certificate>>;
    async fn put_catalogue(node: Uuid, kind: StepKind, catalogue: Catalogue, lease: Option<Lease>) -> Result<()>;
    async fn forget_agent(node: Uuid, next: Option<Boot>, lease: Option<Lease>) -> Result<()>;
    async fn shift_clock(by: i64) -> Result<()>;
} with {
    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>> {
        let taken = self.timed("take_lease", self.store.take_lease(node, holder, now, until)).await?;
        self.counts.leases.count([if taken.is_some() { "taken" } else { "held" }]);
        Ok(taken)
    }

    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool> {
        let renewed = self.timed("renew_lease", self.store.renew_lease(lease, until)).await?;
        self.counts.leases.count([if renewed { "renewed" } else { "lost" }]);
        Ok(renewed)
    }

    async fn certify(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node> {
        let entered = enters(&events);
        let stored = self.timed("certify", self.store.certify(node, events, lease, certificate)).await?;
        self.wrote(&stored, entered);
        Ok(stored)
    }

    async fn update_inspected(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node> {
        let entered = enters(&events);
        let write = self.store.update_inspected(node, events, lease, inspected);
        let stored = self.timed("update_inspected", write).await?;
        self.wrote(&stored, entered);
        Ok(stored)
    }
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;
    use store::memory::MemoryStore;

    #[tokio::test(flavor = "multi_thread")]
    async fn it_is_the_store_that_it_measures() {
        store_conformance::check(async || MeteredStore {
            store: Arc::new(MemoryStore::new()),
            counts: Arc::new(Counts::new()),
        })
        .await;
    }

    #[tokio::test]
    async fn calls_transitions_and_leases_are_counted() {
        let counts = Arc::new(Counts::new());
        let metered = MeteredStore { store: Arc::new(MemoryStore::new()), counts: counts.clone() };
        let node = Node::enrolled(Uuid::from_u128(1), "fake-hardware", Timestamp(1));
        let node = metered.create_node(node, Vec::new()).await.unwrap();
        let holders = [("a", "taken"), ("b", "held")];
        for (holder, _) in holders {
            metered.take_lease(node.uuid, holder, Timestamp(1), Timestamp(9)).await.unwrap();
        }
        let mut text = Text::default();
        counts.write(&mut text);
        let text = text.into_string();
        assert!(text.contains("anneal_node_transitions_total{provision_state=\"enroll\"} 1\n"), "{text}");
        assert!(
            text.contains("anneal_store_call_duration_seconds_count{operation=\"take_lease\"} 2\n"),
            "{text}"
        );
        for (_, outcome) in holders {
            assert!(text.contains(&format!("anneal_leases_total{{outcome=\"{outcome}\"}} 1\n")), "{text}");
        }
    }
}
