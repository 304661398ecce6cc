//! The store of one life of the controller: the one in memory, in which every call takes time, may be the
//! controller's last, and is judged.

use crate::controller::Life;
use crate::held;
use crate::invariants::{self, By};
use crate::world::World;
use async_trait::async_trait;
use model::agent::{Contact, UnsignedAgent};
use model::boot::{Boot, BootNonce};
use model::boot_proof::BootProof;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot};
use model::request::RESCUE_HASH;
use model::{
    Bundle, Catalogue, Certificate, ConductorReport, DeadLetter, Delivery, Event, Inventory, Node, Resource,
    ResourceKind, Scope, StepKind, Timestamp,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use store::prelude::*;
use store::{
    Bell, EventCursor, EventPage, FieldValue, HeartbeatRecord, Inspected, KeptEvents, Lease, NodeChange,
    NodeField, NodePage, NodeQuery, ResourcePage, ResourceQuery, ResourceWrite, Result, ScriptFetch,
    ScriptGrant, StoreError, TokenGrant, TokenRequest, UnknownBootGrant,
};
use tokio::task::yield_now;
use tokio::time::sleep;
use uuid::Uuid;

/// Calls at one moment after which the controller counts as running in circles.
const SPIN: u32 = 20_000;

/// A store that is watched.
pub struct WatchedStore {
    world: Arc<World>,
    life: Life,
    bell: Bell,
    moment: AtomicI64,
    calls: AtomicU32,
}

impl WatchedStore {
    /// The store of a controller of this life, which hears this bell.
    pub fn new(world: Arc<World>, life: Life, bell: Bell) -> Self {
        Self { world, life, bell, moment: AtomicI64::new(0), calls: AtomicU32::new(0) }
    }

    /// Before a call that reads.
    async fn enter(&self) -> Result<()> {
        self.begin().await;
        self.reach().await
    }

    /// Before a call that writes.
    async fn enter_to_write(&self) -> Result<()> {
        self.begin().await;
        if self.life.host.writes() { Ok(()) } else { self.reach().await }
    }

    /// Others may go first, and a fuse may have burnt down.
    async fn begin(&self) {
        self.life.goes_on().await;
        let now = self.world.now().0;
        if self.moment.swap(now, Ordering::Relaxed) != now {
            self.calls.store(0, Ordering::Relaxed);
        }
        if self.calls.fetch_add(1, Ordering::Relaxed) > SPIN {
            self.world.violated("no_task_runs_in_circles", format!("{SPIN} store calls at one moment"));
            pending::<()>().await;
        }
        yield_now().await;
        self.life.goes_on().await;
        self.burn(false).await;
    }

    /// After a call that wrote: it is stored, and its caller may never get the answer.
    async fn leave(&self) -> Result<()> {
        self.burn(true).await;
        yield_now().await;
        self.life.goes_on().await;
        self.reach().await
    }

    /// An error, after a while, when the database cannot be reached.
    async fn reach(&self) -> Result<()> {
        if self.life.host.reaches_store() {
            return Ok(());
        }
        sleep(self.world.rng.millis(5..5000)).await;
        self.life.goes_on().await;
        Err(StoreError::failed("the database cannot be reached"))
    }

    async fn burn(&self, after: bool) {
        let host = self.life.host.index;
        let burnt = {
            let mut fuse = held(&self.world.fuse);
            match fuse.as_mut().filter(|fuse| fuse.after == after && fuse.host == host) {
                Some(left) if left.calls == 0 => fuse.take().is_some(),
                Some(left) => {
                    left.calls -= 1;
                    false
                }
                None => false,
            }
        };
        if burnt {
            let how = if after { "after a write" } else { "before a call of the store" };
            self.world.kill_controller(host, how);
            pending::<()>().await;
        }
    }

    async fn read<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.enter().await?;
        call.await
    }

    /// A write; the trace stores `record`.
    async fn write<T>(&self, record: impl Serialize, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.enter_to_write().await?;
        let result = call.await;
        if result.is_ok() {
            self.world.trace.write(&record);
        }
        self.leave().await?;
        result
    }

    /// A write of the node that was read at this version.
    async fn write_node(
        &self,
        read_at: u64,
        events: &[Event],
        lease: Option<Lease>,
        call: impl Future<Output = Result<Node>>,
    ) -> Result<Node> {
        self.enter_to_write().await?;
        let result = call.await;
        if let Ok(new) = &result {
            self.written(read_at, new, events, lease);
        }
        self.leave().await?;
        result
    }

    /// The trace stores the row without the salted hash of a password, which no seed repeats; the rules see it whole.
    fn written(&self, read_at: u64, new: &Node, events: &[Event], lease: Option<Lease>) {
        let mut row = self.world.trace.hashes().then(|| new.clone());
        if let Some(hash) = row.as_mut().and_then(|row| row.instance_info.get_mut(RESCUE_HASH)) {
            *hash = "hash".into();
        }
        self.world.trace.write(&("update", row, events, lease.map(|lease| lease.epoch)));
        invariants::written(&self.world, read_at, new, events, By { lease });
    }
}

#[async_trait]
impl NodeStore for WatchedStore {
    async fn create_node(&self, node: Node, events: Vec<Event>) -> Result<Node> {
        self.enter_to_write().await?;
        let result = self.world.disk.create_node(node, events.clone()).await;
        if let Ok(new) = &result {
            self.world.trace.write(&json!({"create": new, "events": events}));
            invariants::enrolled(&self.world, new);
        }
        self.leave().await?;
        result
    }

    async fn node(&self, uuid: Uuid) -> Result<Node> {
        self.read(self.world.disk.node(uuid)).await
    }

    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        self.read(self.world.disk.node_by_ident(ident)).await
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        self.read(self.world.disk.nodes()).await
    }

    async fn node_page(&self, query: NodeQuery) -> Result<NodePage> {
        self.read(self.world.disk.node_page(query)).await
    }

    async fn count_nodes(
        &self,
        fields: &[NodeField],
        project: Option<&str>,
    ) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
        self.read(self.world.disk.count_nodes(fields, project)).await
    }

    async fn update_node(&self, node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        let read_at = node.version;
        let write = self.world.disk.update_node(node, events.clone(), lease);
        self.write_node(read_at, &events, lease, write).await
    }

    async fn delete_node(&self, uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()> {
        self.write(json!({"delete": uuid}), self.world.disk.delete_node(uuid, version, events)).await
    }

    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        self.read(self.world.disk.history(node)).await
    }

    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        self.read(self.world.disk.certificates(node)).await
    }

    async fn certificate(&self, id: &str) -> Result<Certificate> {
        self.read(self.world.disk.certificate(id)).await
    }

    async fn certificate_log(&self, from: u64, limit: usize) -> Result<Vec<String>> {
        self.read(self.world.disk.certificate_log(from, limit)).await
    }

    async fn add_key_change(&self, change: String) -> Result<()> {
        self.write(json!({"key_change": change}), self.world.disk.add_key_change(change.clone())).await
    }

    async fn key_changes(&self) -> Result<Vec<String>> {
        self.read(self.world.disk.key_changes()).await
    }

    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        self.read(self.world.disk.catalogue(node, kind)).await
    }

    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        self.read(self.world.disk.inventory(node)).await
    }

    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        let record = json!({"inventory": inventory, "of": node});
        self.write(record, self.world.disk.put_inventory(node, inventory)).await
    }

    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        self.read(self.world.disk.lease_holder(node, now)).await
    }

    async fn conductors(&self) -> Result<Vec<ConductorReport>> {
        self.read(self.world.disk.conductors()).await
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}

#[async_trait]
impl EventStore for WatchedStore {
    async fn events(&self, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
        self.read(self.world.disk.events(after, limit)).await
    }

    async fn newest_event(&self) -> Result<EventCursor> {
        self.read(self.world.disk.newest_event()).await
    }

    async fn prune_events(&self, kept: KeptEvents, now: Timestamp) -> Result<u64> {
        self.write(json!("prune"), self.world.disk.prune_events(kept, now)).await
    }

    async fn take_webhook(
        &self,
        webhook: &str,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Delivery>> {
        self.write(json!(webhook), self.world.disk.take_webhook(webhook, holder, now, until)).await
    }

    async fn put_delivery(&self, delivery: Delivery, letter: Option<DeadLetter>) -> Result<bool> {
        self.write(json!(delivery), self.world.disk.put_delivery(delivery.clone(), letter)).await
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>> {
        self.read(self.world.disk.deliveries()).await
    }

    async fn dead_letters(&self, webhook: &str, only_retried: bool, limit: usize) -> Result<Vec<DeadLetter>> {
        self.read(self.world.disk.dead_letters(webhook, only_retried, limit)).await
    }

    async fn put_dead_letter(&self, letter: DeadLetter) -> Result<()> {
        self.write(json!(letter), self.world.disk.put_dead_letter(letter.clone())).await
    }

    async fn remove_dead_letter(&self, webhook: &str, place: u64) -> Result<()> {
        self.write(json!(place), self.world.disk.remove_dead_letter(webhook, place)).await
    }
}

#[async_trait]
impl DiscoveryStore for WatchedStore {
    async fn discovered_machines(&self) -> Result<Vec<DiscoveredMachine>> {
        self.read(self.world.disk.discovered_machines()).await
    }

    async fn discovered_machine(&self, id: Uuid) -> Result<DiscoveredMachine> {
        self.read(self.world.disk.discovered_machine(id)).await
    }

    async fn boot_unknown(&self, boot: UnknownBoot, limits: DiscoveryLimits) -> Result<UnknownBootGrant> {
        self.write(json!({"boots": boot.mac}), self.world.disk.boot_unknown(boot, limits)).await
    }

    async fn write_discovered(
        &self,
        machine: DiscoveredMachine,
        change: NodeChange,
        events: Vec<Event>,
    ) -> Result<DiscoveredMachine> {
        let record = json!({"discovered": machine.id});
        self.write(record, self.world.disk.write_discovered(machine, change, events)).await
    }

    async fn forget_discovered(&self, id: Uuid, version: u64) -> Result<()> {
        self.write(json!({"forget": id}), self.world.disk.forget_discovered(id, version)).await
    }
}

#[async_trait]
impl AgentStore for WatchedStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        self.read(self.world.disk.contact(node)).await
    }

    async fn grant_token(&self, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
        self.enter().await?;
        let grant = self.world.disk.grant_token(node, request.clone()).await;
        if let Ok(grant) = &grant {
            self.world.trace.write(&json!({"grant": node, "given": *grant == TokenGrant::Given}));
            invariants::granted(&self.world, node, &request, *grant);
        }
        self.leave().await?;
        grant
    }

    async fn fetch_script(&self, node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant> {
        self.enter().await?;
        let grant = self.world.disk.fetch_script(node, fetch).await;
        if let Ok(grant) = &grant {
            self.world.trace.write(&json!({"script": node, "given": *grant != ScriptGrant::Withheld}));
        }
        self.leave().await?;
        grant
    }

    async fn record_proof(&self, node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool> {
        let record = json!({"proves": node});
        self.write(record, self.world.disk.record_proof(node, nonce, proof)).await
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        self.enter().await?;
        let record = ("beat", node, beat.agent.anneal().cloned(), beat.callback_url.clone());
        let result = self.world.disk.record_heartbeat(node, token, beat).await;
        if result.is_ok() {
            self.world.trace.write(&record);
            invariants::heard(&self.world, node, token);
        }
        self.leave().await?;
        result
    }

    async fn refuse_unsigned(&self, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()> {
        let record = ("unsigned", node, agent.address);
        self.write(record, self.world.disk.refuse_unsigned(node, token, agent)).await
    }
}

#[async_trait]
impl ResourceStore for WatchedStore {
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        of_resource: Vec<Event>,
    ) -> Result<Resource> {
        self.enter().await?;
        let read = node.as_ref().map(|(node, events)| (node.uuid, node.version, events.clone()));
        let result = self.world.disk.write_resource(write, node, of_resource).await;
        if let Ok(written) = &result {
            self.world.trace.write(&json!({"resource": written}));
            if let Some((uuid, read_at, events)) = read {
                let new = self.world.disk.node(uuid).await?;
                self.written(read_at, &new, &events, None);
            }
        }
        self.leave().await?;
        result
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        self.read(self.world.disk.resource(kind, ident)).await
    }

    async fn resource_by_key(&self, kind: ResourceKind, key: &str) -> Result<Resource> {
        self.read(self.world.disk.resource_by_key(kind, key)).await
    }

    async fn resource_page(&self, query: ResourceQuery) -> Result<ResourcePage> {
        self.read(self.world.disk.resource_page(query)).await
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        self.read(self.world.disk.resources(kind, node)).await
    }

    async fn put_bundle(&self, bundle: Bundle, event: Event) -> Result<Option<Bundle>> {
        let record = json!({"bundle": bundle});
        self.write(record, self.world.disk.put_bundle(bundle, event)).await
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        self.read(self.world.disk.bundles()).await
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>> {
        self.write(json!({"delete": digest}), self.world.disk.delete_bundle(digest, scope, event)).await
    }
}

#[async_trait]
impl ConductorStore for WatchedStore {
    fn is_shared(&self) -> bool {
        self.world.disk.is_shared()
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        if !self.is_shared() {
            return Ok(None);
        }
        self.read(async { Ok(Some(self.world.now())) }).await
    }

    async fn report_conductor(&self, report: ConductorReport) -> Result<()> {
        let record = ("report", report.hostname.clone());
        self.write(record, self.world.disk.report_conductor(report)).await
    }

    async fn remove_conductor(&self, hostname: &str) -> Result<()> {
        self.write(json!({"remove": hostname}), self.world.disk.remove_conductor(hostname)).await
    }

    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>> {
        self.enter().await?;
        let result = self.world.disk.take_lease(node, holder, now, until).await;
        if let Ok(Some(lease)) = &result {
            self.world.trace.write(&("lease", node, lease.epoch));
            invariants::taken(&self.world, &self.life.host, *lease, until);
        }
        self.leave().await?;
        result
    }

    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool> {
        let renew = async {
            let renewed = self.world.disk.renew_lease(lease, until).await;
            if let Ok(true) = renewed {
                invariants::renewed(&self.world, lease, until);
            }
            renewed
        };
        self.write(("renew", lease.epoch), renew).await
    }

    async fn release_lease(&self, lease: Lease) -> Result<()> {
        let release = async {
            invariants::released(&self.world, lease);
            self.world.disk.release_lease(lease).await
        };
        self.write(("release", lease.epoch), release).await
    }

    async fn leased_by(&self, holder: &str) -> Result<Vec<Uuid>> {
        self.read(self.world.disk.leased_by(holder)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
        held(&self.world.ground_truth).looks += 1;
        self.read(self.world.disk.due(now, limit)).await
    }

    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.read(self.world.disk.next_due(now)).await
    }

    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)> {
        self.read(self.world.disk.look(uuid, known)).await
    }

    async fn certify(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node> {
        let read_at = node.version;
        let write = self.world.disk.certify(node, events.clone(), lease, certificate);
        self.write_node(read_at, &events, lease, write).await
    }

    async fn update_inspected(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node> {
        let read_at = node.version;
        let write = self.world.disk.update_inspected(node, events.clone(), lease, inspected);
        self.write_node(read_at, &events, lease, write).await
    }

    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>> {
        self.read(self.world.disk.newest_certificate(node)).await
    }

    async fn put_catalogue(
        &self,
        node: Uuid,
        kind: StepKind,
        catalogue: Catalogue,
        lease: Option<Lease>,
    ) -> Result<()> {
        let record = json!({"catalogue": catalogue, "of": node, "kind": kind});
        let put = async {
            let put = self.world.disk.put_catalogue(node, kind, catalogue, lease).await;
            if put.is_ok() {
                invariants::stored_in_addition(&self.world, node, lease);
            }
            put
        };
        self.write(record, put).await
    }

    async fn forget_agent(&self, node: Uuid, next: Option<Boot>, lease: Option<Lease>) -> Result<()> {
        self.enter().await?;
        let result = self.world.disk.forget_agent(node, next, lease).await;
        if result.is_ok() {
            self.world.trace.write(&json!({"forget": node}));
            invariants::stored_in_addition(&self.world, node, lease);
            invariants::forgotten(&self.world, node);
        }
        self.leave().await?;
        result
    }

    async fn shift_clock(&self, by: i64) -> Result<()> {
        let shift = async {
            let shifted = self.world.disk.shift_clock(by).await;
            if shifted.is_ok() {
                self.world.shifted(by);
            }
            shifted
        };
        self.write(json!({"shift": by}), shift).await
    }
}
