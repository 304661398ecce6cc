//! The store as the callers of one project see it: only nodes that the project owns or leases, and what hangs on them.
//!
//! It answers for an object of another project as for one that does not exist. It implements every method of
//! [`ApiStore`], so a new method needs a decision here about what a project may see.

use super::identity::Owners;
use async_trait::async_trait;
use model::agent::{Contact, UnsignedAgent};
use model::boot::BootNonce;
use model::boot_proof::BootProof;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot};
use model::{
    Bundle, Catalogue, Certificate, ConductorReport, DeadLetter, Delivery, Event, Inventory, LoggedEvent,
    Node, Resource, ResourceKind, Scope, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    AgentStore, ApiStore, Bell, DiscoveryStore, EventCursor, EventPage, EventStore, FieldValue,
    HeartbeatRecord, KeptEvents, Lease, NodeChange, NodeField, NodeFilter, NodePage, NodeQuery, NodeStore,
    Noun, Ownership, ResourceFilter, ResourcePage, ResourceQuery, ResourceStore, ResourceWrite, Result,
    ScriptFetch, ScriptGrant, StepKind, StoreError, TokenGrant, TokenRequest, UnknownBootGrant,
};
use uuid::Uuid;

/// `store` as `project` may see it.
pub fn of_project(store: &Arc<dyn ApiStore>, project: &str) -> Arc<dyn ApiStore> {
    Arc::new(ProjectScopedStore { store: store.clone(), project: Some(project.to_owned()) })
}

/// `store` without any node, for a request whose target the guard did not find.
pub fn without_nodes(store: &Arc<dyn ApiStore>) -> Arc<dyn ApiStore> {
    Arc::new(ProjectScopedStore { store: store.clone(), project: None })
}

/// The projects of a resource: its own, or those of its node.
pub async fn owners(store: &dyn ApiStore, resource: &Resource) -> Result<Owners> {
    match (resource.kind, resource.node) {
        (ResourceKind::Allocation | ResourceKind::Runbook, _) => {
            Ok(Owners { owner: resource.text("owner").map(str::to_owned), lessee: None })
        }
        (_, Some(node)) => Ok(Owners::of(&store.node(node).await?)),
        (_, None) => Ok(Owners::default()),
    }
}

struct ProjectScopedStore {
    store: Arc<dyn ApiStore>,
    project: Option<String>,
}

impl ProjectScopedStore {
    fn shows(&self, node: &Node) -> bool {
        self.project.as_ref().is_some_and(|project| Owners::of(node).include(project))
    }

    fn shown(&self, node: Node, ident: impl ToString) -> Result<Node> {
        if self.shows(&node) { Ok(node) } else { Err(StoreError::not_found(Noun::Node, ident)) }
    }

    /// Whether the project sees a node of this UUID.
    async fn has(&self, node: Uuid) -> Result<bool> {
        match self.store.shared_node(node).await {
            Ok(node) => Ok(self.shows(&node)),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn shown_resource(&self, resource: Resource, ident: &str) -> Result<Resource> {
        let shown = match (self.shows_apart_from_node(&resource), resource.node) {
            (None, Some(node)) => self.has(node).await?,
            (shown, _) => shown == Some(true),
        };
        if shown { Ok(resource) } else { Err(StoreError::not_found(resource.kind, ident)) }
    }

    async fn needs(&self, node: Uuid) -> Result<()> {
        if self.has(node).await? { Ok(()) } else { Err(StoreError::not_found(Noun::Node, node)) }
    }

    /// Whether the project sees a resource, as far as that does not depend on the node it belongs to. Chassis, deploy
    /// templates and inspection rules belong to no project: the policies of their endpoints guard them.
    fn shows_apart_from_node(&self, resource: &Resource) -> Option<bool> {
        match resource.kind {
            ResourceKind::Chassis | ResourceKind::DeployTemplate | ResourceKind::InspectionRule => Some(true),
            ResourceKind::Allocation | ResourceKind::Runbook => {
                Some(self.project.is_some() && resource.text("owner") == self.project.as_deref())
            }
            _ if resource.node.is_none() => Some(false),
            _ => None,
        }
    }
}

#[async_trait]
impl NodeStore for ProjectScopedStore {
    async fn create_node(&self, node: Node, events: Vec<Event>) -> Result<Node> {
        self.store.create_node(node, events).await
    }
    async fn node(&self, uuid: Uuid) -> Result<Node> {
        self.shown(self.store.node(uuid).await?, uuid)
    }
    async fn shared_node(&self, uuid: Uuid) -> Result<Arc<Node>> {
        let node = self.store.shared_node(uuid).await?;
        if self.shows(&node) { Ok(node) } else { Err(StoreError::not_found(Noun::Node, uuid)) }
    }
    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        self.shown(self.store.node_by_ident(ident).await?, ident)
    }
    async fn nodes(&self) -> Result<Vec<Node>> {
        Ok(self.node_page(NodeQuery::first(usize::MAX, NodeFilter::default())).await?.nodes)
    }
    async fn node_page(&self, mut query: NodeQuery) -> Result<NodePage> {
        let Some(project) = &self.project else { return Ok(NodePage::default()) };
        query.filter = query.filter.within(project);
        self.store.node_page(query).await
    }
    async fn node_page_once(&self, query: NodeQuery) -> Result<NodePage> {
        self.node_page(query).await
    }
    async fn count_nodes(
        &self,
        fields: &[NodeField],
        project: Option<&str>,
    ) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
        match self.project.as_deref() {
            Some(own) if project.is_none_or(|asked| asked == own) => {
                self.store.count_nodes(fields, Some(own)).await
            }
            _ => Ok(BTreeMap::new()),
        }
    }
    async fn check_writable(&self) -> Result<()> {
        self.store.check_writable().await
    }
    async fn update_node(&self, node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        self.needs(node.uuid).await?;
        self.store.update_node(node, events, lease).await
    }
    async fn delete_node(&self, uuid: Uuid, version: u64, events: Vec<Event>) -> Result<()> {
        self.needs(uuid).await?;
        self.store.delete_node(uuid, version, events).await
    }
    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        if self.has(node).await? { self.store.history(node).await } else { Ok(Vec::new()) }
    }
    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        if self.has(node).await? { self.store.certificates(node).await } else { Ok(Vec::new()) }
    }
    async fn certificate(&self, id: &str) -> Result<Certificate> {
        let certificate = self.store.certificate(id).await?;
        let shown = self.has(certificate.node).await?;
        shown.then_some(certificate).ok_or_else(|| StoreError::not_found(Noun::Certificate, id))
    }
    /// The log names every node: it is for callers without a project.
    async fn certificate_log(&self, _from: u64, _limit: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    async fn add_key_change(&self, _change: String) -> Result<()> {
        Err(StoreError::failed("a change of the key of certificates is none of a project's"))
    }
    async fn key_changes(&self) -> Result<Vec<String>> {
        self.store.key_changes().await
    }
    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        if self.has(node).await? { self.store.catalogue(node, kind).await } else { Ok(None) }
    }
    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        if self.has(node).await? { self.store.inventory(node).await } else { Ok(None) }
    }
    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        self.needs(node).await?;
        self.store.put_inventory(node, inventory).await
    }
    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        if self.has(node).await? { self.store.lease_holder(node, now).await } else { Ok(None) }
    }
    /// What they say belongs to no project.
    async fn conductors(&self) -> Result<Vec<ConductorReport>> {
        self.store.conductors().await
    }
    /// It says no more than that something about a node changed.
    fn bell(&self) -> &Bell {
        self.store.bell()
    }
}

#[async_trait]
impl EventStore for ProjectScopedStore {
    /// The events of the nodes that the project sees now; of deleted nodes, those of which it was owner or lessee then.
    async fn events(&self, after: Option<EventCursor>, limit: usize) -> Result<EventPage> {
        let mut page = self.store.events(after, limit).await?;
        let Some(project) = &self.project else { return Ok(EventPage { events: Vec::new(), ..page }) };
        let mut known: BTreeMap<Uuid, Option<Owners>> = BTreeMap::new();
        for (_, event) in &mut page.events {
            let Some(node) = event.node else { continue };
            let now = match known.get(&node) {
                Some(now) => now.clone(),
                None => match self.store.shared_node(node).await {
                    Ok(node) => Some(Owners::of(&node)),
                    Err(StoreError::NotFound { .. }) => None,
                    Err(error) => return Err(error),
                },
            };
            known.insert(node, now.clone());
            if let Some(Owners { owner, lessee }) = now {
                (event.owner, event.lessee) = (owner, lessee);
            }
        }
        let shown = |event: &LoggedEvent| {
            [&event.owner, &event.lessee].into_iter().any(|of| of.as_deref() == Some(project.as_str()))
        };
        page.events.retain(|(_, event)| shown(event));
        Ok(page)
    }
    /// A place says nothing of an event.
    async fn newest_event(&self) -> Result<EventCursor> {
        self.store.newest_event().await
    }
    async fn prune_events(&self, _kept: KeptEvents, _now: Timestamp) -> Result<u64> {
        Err(StoreError::failed("deleting old events is none of a project's"))
    }
    // Webhooks get events of all nodes: they are for callers without a project.
    async fn take_webhook(
        &self,
        _webhook: &str,
        _holder: &str,
        _now: Timestamp,
        _until: Timestamp,
    ) -> Result<Option<Delivery>> {
        Ok(None)
    }
    async fn put_delivery(&self, _delivery: Delivery, _letter: Option<DeadLetter>) -> Result<bool> {
        Ok(false)
    }
    async fn deliveries(&self) -> Result<Vec<Delivery>> {
        Ok(Vec::new())
    }
    async fn dead_letters(&self, _webhook: &str, _retried: bool, _limit: usize) -> Result<Vec<DeadLetter>> {
        Ok(Vec::new())
    }
    async fn put_dead_letter(&self, _letter: DeadLetter) -> Result<()> {
        Err(StoreError::failed("a dead letter is none of a project's"))
    }
    async fn remove_dead_letter(&self, _webhook: &str, _place: u64) -> Result<()> {
        Err(StoreError::failed("a dead letter is none of a project's"))
    }
}

#[async_trait]
impl AgentStore for ProjectScopedStore {
    async fn contact(&self, node: Uuid) -> Result<Contact> {
        if self.has(node).await? { self.store.contact(node).await } else { Ok(Contact::default()) }
    }
    async fn grant_token(&self, node: Uuid, request: TokenRequest) -> Result<TokenGrant> {
        self.needs(node).await?;
        self.store.grant_token(node, request).await
    }
    async fn fetch_script(&self, node: Uuid, fetch: ScriptFetch) -> Result<ScriptGrant> {
        self.needs(node).await?;
        self.store.fetch_script(node, fetch).await
    }
    async fn record_proof(&self, node: Uuid, nonce: &BootNonce, proof: BootProof) -> Result<bool> {
        self.needs(node).await?;
        self.store.record_proof(node, nonce, proof).await
    }
    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        self.needs(node).await?;
        self.store.record_heartbeat(node, token, beat).await
    }
    async fn refuse_unsigned(&self, node: Uuid, token: &str, agent: UnsignedAgent) -> Result<()> {
        self.needs(node).await?;
        self.store.refuse_unsigned(node, token, agent).await
    }
}

#[async_trait]
impl ResourceStore for ProjectScopedStore {
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        events: Vec<Event>,
    ) -> Result<Resource> {
        match &write {
            ResourceWrite::Create(_) => {}
            ResourceWrite::Update(Resource { kind, uuid, .. }) | ResourceWrite::Delete(kind, uuid, _) => {
                self.resource(*kind, &uuid.to_string()).await?;
            }
        }
        if let ResourceWrite::Create(Resource { node: Some(node), .. })
        | ResourceWrite::Update(Resource { node: Some(node), .. }) = &write
        {
            self.needs(*node).await?;
        }
        if let Some((node, _)) = &node {
            self.needs(node.uuid).await?;
        }
        self.store.write_resource(write, node, events).await
    }
    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        self.shown_resource(self.store.resource(kind, ident).await?, ident).await
    }
    async fn resource_by_key(&self, kind: ResourceKind, key: &str) -> Result<Resource> {
        self.shown_resource(self.store.resource_by_key(kind, key).await?, key).await
    }
    async fn resource_page(&self, mut query: ResourceQuery) -> Result<ResourcePage> {
        if self.project.is_none() && Ownership::of(query.filter.kind) != Ownership::NoProject {
            return Ok(ResourcePage::default());
        }
        query.filter.project.clone_from(&self.project);
        self.store.resource_page(query).await
    }
    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        let filter =
            node.map_or_else(|| ResourceFilter::all(kind), |node| ResourceFilter::of_node(kind, node));
        Ok(self.resource_page(ResourceQuery::first(usize::MAX, filter)).await?.resources)
    }

    // Bundles belong to no project: the policies of their endpoints guard them.
    async fn put_bundle(&self, bundle: Bundle, event: Event) -> Result<Option<Bundle>> {
        self.store.put_bundle(bundle, event).await
    }
    async fn bundles(&self) -> Result<Vec<Bundle>> {
        self.store.bundles().await
    }
    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>> {
        self.store.delete_bundle(digest, scope, event).await
    }
}

/// Machines that no node is known for belong to no project.
#[async_trait]
impl DiscoveryStore for ProjectScopedStore {
    async fn discovered_machines(&self) -> Result<Vec<DiscoveredMachine>> {
        Ok(Vec::new())
    }
    async fn discovered_machine(&self, id: Uuid) -> Result<DiscoveredMachine> {
        Err(StoreError::not_found(Noun::DiscoveredMachine, id))
    }
    async fn boot_unknown(&self, _boot: UnknownBoot, _limits: DiscoveryLimits) -> Result<UnknownBootGrant> {
        Err(StoreError::failed("the boot of an unknown machine is none of a project's"))
    }
    async fn write_discovered(
        &self,
        machine: DiscoveredMachine,
        _change: NodeChange,
        _events: Vec<Event>,
    ) -> Result<DiscoveredMachine> {
        Err(StoreError::not_found(Noun::DiscoveredMachine, machine.id))
    }
    async fn forget_discovered(&self, id: Uuid, _version: u64) -> Result<()> {
        Err(StoreError::not_found(Noun::DiscoveredMachine, id))
    }
}
