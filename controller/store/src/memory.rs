//! The store in memory: for simulations and tests, and the plainest statement of what a store does.
//!
//! All state lies under one mutex and every call takes it once, so every call is atomic. Nothing survives the
//! process.

use crate::Inspected;
use crate::{
    Bell, HeartbeatRecord, Lease, ResourceWrite, Result, StepKind, Store, StoreError, TokenGrant, contact,
    inventory,
};
use async_trait::async_trait;
use model::agent::Contact;
use model::history::StateAtEvent;
use model::{
    Bundle, Catalogue, Certificate, DeployTemplate, Event, Inventory, Node, Port, Resource, ResourceKind,
    Scope, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use uuid::Uuid;

/// A [`Store`] that lives as long as the value.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    bell: Bell,
}

#[derive(Debug, Default, Clone)]
struct State {
    nodes: BTreeMap<Uuid, Row>,
    ports: BTreeMap<Uuid, Port>,
    templates: BTreeMap<Uuid, DeployTemplate>,
    resources: BTreeMap<(ResourceKind, Uuid), Resource>,
    bundles: BTreeMap<(String, Scope), Bundle>,
    /// By node, each from number 1. They outlive it.
    certificates: BTreeMap<Uuid, Vec<Certificate>>,
    /// Largest epoch given out for any node; never reused, even when a node is deleted and enrolled again.
    last_epoch: u64,
}

/// A node with all that goes when it goes (except its ports).
#[derive(Debug, Clone)]
struct Row {
    node: Node,
    history: Vec<Event>,
    contact: Contact,
    catalogues: BTreeMap<StepKind, Catalogue>,
    inventory: Option<Inventory>,
    lease: Option<Held>,
}

#[derive(Debug, Clone)]
struct Held {
    epoch: u64,
    holder: String,
    until: Timestamp,
}

impl Row {
    fn holds(&self, lease: Lease) -> bool {
        self.node.uuid == lease.node && self.lease.as_ref().is_some_and(|held| held.epoch == lease.epoch)
    }
}

impl State {
    fn row(&mut self, node: Uuid) -> Result<&mut Row> {
        self.nodes.get_mut(&node).ok_or_else(|| StoreError::not_found("Node", node))
    }

    fn update(&mut self, node: &mut Node, events: Vec<Event>, lease: Option<Lease>) -> Result<()> {
        let row = self.row(node.uuid)?;
        if row.node.version != node.version || lease.is_some_and(|lease| !row.holds(lease)) {
            return Err(StoreError::Stale(node.uuid));
        }
        self.unique_node(node)?;
        node.version += 1;
        let row = self.row(node.uuid)?;
        row.history.extend(noted(events, &row.node));
        row.node = node.clone();
        self.resources.retain(|_, resource| !resource.ends_with(node));
        Ok(())
    }

    /// Refuses a resource of an unknown node, or with a name or key of another one of its kind.
    fn sound_resource(&self, resource: &Resource) -> Result<()> {
        if let Some(node) = resource.node.filter(|node| !self.nodes.contains_key(node)) {
            return Err(StoreError::not_found("Node", node));
        }
        let others = || {
            let same = |other: &&Resource| other.kind == resource.kind && other.uuid != resource.uuid;
            self.resources.values().filter(same)
        };
        if let Some(name) = &resource.name
            && others().any(|other| other.name.as_ref() == Some(name))
        {
            return Err(StoreError::duplicate("resource name", name));
        }
        if let Some(key) = &resource.key
            && others().any(|other| other.key.as_ref() == Some(key))
        {
            return Err(StoreError::duplicate("resource key", key));
        }
        Ok(())
    }

    /// The resource, if it is still at this version.
    fn at_version(&self, kind: ResourceKind, uuid: Uuid, version: u64) -> Result<&Resource> {
        let stored = self.resources.get(&(kind, uuid));
        let stored = stored.ok_or_else(|| StoreError::not_found(kind.noun(), uuid))?;
        if stored.version == version { Ok(stored) } else { Err(StoreError::Stale(uuid)) }
    }

    fn write_resource(&mut self, write: ResourceWrite) -> Result<Resource> {
        match write {
            ResourceWrite::Create(mut resource) => {
                let place = (resource.kind, resource.uuid);
                if self.resources.contains_key(&place) {
                    return Err(StoreError::duplicate("resource uuid", resource.uuid));
                }
                self.sound_resource(&resource)?;
                resource.version = 1;
                self.resources.insert(place, resource.clone());
                Ok(resource)
            }
            ResourceWrite::Update(mut resource) => {
                self.at_version(resource.kind, resource.uuid, resource.version)?;
                self.sound_resource(&resource)?;
                resource.version += 1;
                self.resources.insert((resource.kind, resource.uuid), resource.clone());
                Ok(resource)
            }
            ResourceWrite::Delete(kind, uuid, version) => {
                let gone = self.at_version(kind, uuid, version)?.clone();
                self.resources.remove(&(kind, uuid));
                Ok(gone)
            }
        }
    }

    /// Refuses a node whose name or instance UUID belongs to another one.
    fn unique_node(&self, node: &Node) -> Result<()> {
        for other in self.nodes.values().map(|row| &row.node).filter(|other| other.uuid != node.uuid) {
            if let Some(name) = node.name.as_ref().filter(|_| other.name == node.name) {
                return Err(StoreError::duplicate("node name", name));
            }
            if let Some(instance) = node.instance_uuid.filter(|_| other.instance_uuid == node.instance_uuid) {
                return Err(StoreError::duplicate("instance uuid", instance));
            }
        }
        Ok(())
    }

    /// Refuses a template whose name belongs to another one.
    fn unique_template(&self, template: &DeployTemplate) -> Result<()> {
        let named = |other: &&DeployTemplate| other.uuid != template.uuid && other.name == template.name;
        match self.templates.values().find(named) {
            Some(_) => Err(StoreError::duplicate("deploy template name", &template.name)),
            None => Ok(()),
        }
    }

    /// Refuses a port of an unknown node, or with the address of another port.
    fn sound_port(&self, port: &Port) -> Result<()> {
        if !self.nodes.contains_key(&port.node_uuid) {
            return Err(StoreError::not_found("Node", port.node_uuid));
        }
        if self.ports.values().any(|other| other.uuid != port.uuid && other.address == port.address) {
            return Err(StoreError::duplicate("port address", &port.address));
        }
        Ok(())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The events, with how `node` stood.
fn noted(mut events: Vec<Event>, node: &Node) -> Vec<Event> {
    let stood = StateAtEvent::of(node);
    events.iter_mut().for_each(|event| event.note(&stood));
    events
}

#[async_trait]
impl Store for MemoryStore {
    async fn create_node(&self, mut node: Node, events: Vec<Event>) -> Result<Node> {
        let mut state = self.state();
        if state.nodes.contains_key(&node.uuid) {
            return Err(StoreError::duplicate("node uuid", node.uuid));
        }
        state.unique_node(&node)?;
        node.version = 1;
        let row = Row {
            node: node.clone(),
            history: noted(events, &node),
            contact: Contact::default(),
            catalogues: BTreeMap::new(),
            inventory: None,
            lease: None,
        };
        state.nodes.insert(node.uuid, row);
        drop(state);
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn node(&self, uuid: Uuid) -> Result<Node> {
        Ok(self.state().row(uuid)?.node.clone())
    }

    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)> {
        let mut state = self.state();
        let row = state.row(uuid)?;
        let node = (known != Some(row.node.version)).then(|| row.node.clone());
        Ok((node, row.contact.clone()))
    }

    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        let state = self.state();
        let by_uuid = Uuid::parse_str(ident).ok().and_then(|uuid| state.nodes.get(&uuid));
        by_uuid
            .or_else(|| state.nodes.values().find(|row| row.node.name.as_deref() == Some(ident)))
            .map(|row| row.node.clone())
            .ok_or_else(|| StoreError::not_found("Node", ident))
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        let mut nodes: Vec<_> = self.state().nodes.values().map(|row| row.node.clone()).collect();
        nodes.sort_by_key(|node| (node.created_at, node.uuid));
        Ok(nodes)
    }

    async fn update_node(&self, mut node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        self.state().update(&mut node, events, lease)?;
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn certify(
        &self,
        mut node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node> {
        let mut state = self.state();
        let known = state.certificates.get(&node.uuid).map_or(0, Vec::len);
        if certificate.node != node.uuid || usize::try_from(certificate.number) != Ok(known + 1) {
            return Err(StoreError::Stale(node.uuid));
        }
        state.update(&mut node, events, lease)?;
        state.certificates.entry(node.uuid).or_default().push(certificate);
        drop(state);
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn update_inspected(
        &self,
        mut node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node> {
        inventory::check(node.uuid, &inspected.inventory)?;
        let mut state = self.state();
        if inspected.ports.iter().any(|port| state.ports.get(&port.read.uuid) != Some(&port.read)) {
            return Err(StoreError::Stale(node.uuid));
        }
        state.update(&mut node, events, lease)?;
        state.row(node.uuid)?.inventory = Some(inspected.inventory);
        state.ports.extend(inspected.ports.into_iter().map(|port| (port.new.uuid, port.new)));
        for port in inspected.new_ports {
            if state.ports.values().all(|other| other.address != port.address) {
                state.ports.insert(port.uuid, port);
            }
        }
        drop(state);
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        Ok(self.state().certificates.get(&node).cloned().unwrap_or_default())
    }

    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>> {
        Ok(self.state().certificates.get(&node).and_then(|all| all.last().cloned()))
    }

    async fn certificate(&self, id: &str) -> Result<Certificate> {
        let state = self.state();
        let found = state.certificates.values().flatten().find(|certificate| certificate.id == id);
        found.cloned().ok_or_else(|| StoreError::not_found("Certificate", id))
    }

    async fn delete_node(&self, uuid: Uuid, version: u64) -> Result<()> {
        let mut state = self.state();
        if state.row(uuid)?.node.version != version {
            return Err(StoreError::Stale(uuid));
        }
        state.nodes.remove(&uuid);
        state.ports.retain(|_, port| port.node_uuid != uuid);
        state.resources.retain(|_, resource| resource.node != Some(uuid));
        state.bundles.retain(|(_, scope), _| *scope != Scope::Node(uuid));
        drop(state);
        self.bell.ring(uuid);
        Ok(())
    }

    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        Ok(self.state().nodes.get(&node).map(|row| row.history.clone()).unwrap_or_default())
    }

    async fn create_port(&self, port: Port) -> Result<Port> {
        let mut state = self.state();
        if state.ports.contains_key(&port.uuid) {
            return Err(StoreError::duplicate("port uuid", port.uuid));
        }
        state.sound_port(&port)?;
        state.ports.insert(port.uuid, port.clone());
        drop(state);
        self.bell.ring(port.node_uuid);
        Ok(port)
    }

    async fn port(&self, uuid: Uuid) -> Result<Port> {
        self.state().ports.get(&uuid).cloned().ok_or_else(|| StoreError::not_found("Port", uuid))
    }

    async fn port_by_address(&self, address: &str) -> Result<Port> {
        let state = self.state();
        let found = state.ports.values().find(|port| port.address == address);
        found.cloned().ok_or_else(|| StoreError::not_found("Port", address))
    }

    async fn ports(&self, node: Option<Uuid>) -> Result<Vec<Port>> {
        let state = self.state();
        let wanted = |port: &&Port| node.is_none_or(|node| port.node_uuid == node);
        let mut ports: Vec<_> = state.ports.values().filter(wanted).cloned().collect();
        ports.sort_by_key(|port| (port.created_at, port.uuid));
        Ok(ports)
    }

    async fn update_port(&self, port: Port) -> Result<Port> {
        let mut state = self.state();
        let Some(old) = state.ports.get(&port.uuid) else {
            return Err(StoreError::not_found("Port", port.uuid));
        };
        let old_node = old.node_uuid;
        state.sound_port(&port)?;
        state.ports.insert(port.uuid, port.clone());
        drop(state);
        self.bell.ring(port.node_uuid);
        if old_node != port.node_uuid {
            self.bell.ring(old_node);
        }
        Ok(port)
    }

    async fn delete_port(&self, uuid: Uuid) -> Result<()> {
        let gone = self.state().ports.remove(&uuid);
        let port = gone.ok_or_else(|| StoreError::not_found("Port", uuid))?;
        self.bell.ring(port.node_uuid);
        Ok(())
    }

    async fn contact(&self, node: Uuid) -> Result<Contact> {
        Ok(self.state().nodes.get(&node).map(|row| row.contact.clone()).unwrap_or_default())
    }

    async fn grant_token(
        &self,
        node: Uuid,
        token: &str,
        boot_id: Option<&str>,
        at: Timestamp,
    ) -> Result<TokenGrant> {
        let grant = contact::grant(&mut self.state().row(node)?.contact, token, boot_id, at);
        self.bell.ring(node);
        Ok(grant)
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        if !contact::beat(&mut self.state().row(node)?.contact, token, beat) {
            return Err(StoreError::Stale(node));
        }
        self.bell.ring(node);
        Ok(())
    }

    async fn forget_agent(&self, node: Uuid) -> Result<()> {
        self.state().row(node)?.contact = Contact::default();
        self.bell.ring(node);
        Ok(())
    }

    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        Ok(self.state().nodes.get(&node).and_then(|row| row.catalogues.get(&kind).cloned()))
    }

    async fn put_catalogue(&self, node: Uuid, kind: StepKind, catalogue: Catalogue) -> Result<()> {
        self.state().row(node)?.catalogues.insert(kind, catalogue);
        self.bell.ring(node);
        Ok(())
    }

    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        Ok(self.state().nodes.get(&node).and_then(|row| row.inventory.clone()))
    }

    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        inventory::check(node, &inventory)?;
        self.state().row(node)?.inventory = Some(inventory);
        self.bell.ring(node);
        Ok(())
    }

    async fn create_template(&self, mut template: DeployTemplate) -> Result<DeployTemplate> {
        let mut state = self.state();
        if state.templates.contains_key(&template.uuid) {
            return Err(StoreError::duplicate("deploy template uuid", template.uuid));
        }
        state.unique_template(&template)?;
        template.version = 1;
        state.templates.insert(template.uuid, template.clone());
        Ok(template)
    }

    async fn template(&self, ident: &str) -> Result<DeployTemplate> {
        let state = self.state();
        let by_uuid = Uuid::parse_str(ident).ok().and_then(|uuid| state.templates.get(&uuid));
        by_uuid
            .or_else(|| state.templates.values().find(|template| template.name == ident))
            .cloned()
            .ok_or_else(|| StoreError::not_found("Deploy template", ident))
    }

    async fn templates(&self) -> Result<Vec<DeployTemplate>> {
        let mut templates: Vec<_> = self.state().templates.values().cloned().collect();
        templates.sort_by_key(|template| (template.created_at, template.uuid));
        Ok(templates)
    }

    async fn templates_named(&self, names: &[String]) -> Result<Vec<DeployTemplate>> {
        let mut templates = self.templates().await?;
        templates.retain(|template| names.contains(&template.name));
        templates.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(templates)
    }

    async fn update_template(&self, mut template: DeployTemplate) -> Result<DeployTemplate> {
        let mut state = self.state();
        let stored = state.templates.get(&template.uuid);
        let stored = stored.ok_or_else(|| StoreError::not_found("Deploy template", template.uuid))?;
        if stored.version != template.version {
            return Err(StoreError::Stale(template.uuid));
        }
        state.unique_template(&template)?;
        template.version += 1;
        state.templates.insert(template.uuid, template.clone());
        Ok(template)
    }

    async fn delete_template(&self, uuid: Uuid) -> Result<()> {
        let gone = self.state().templates.remove(&uuid);
        gone.map(drop).ok_or_else(|| StoreError::not_found("Deploy template", uuid))
    }

    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
    ) -> Result<Resource> {
        let mut state = self.state();
        let Some((mut node, events)) = node else { return state.write_resource(write) };
        // All of it or nothing.
        let mut after = state.clone();
        after.update(&mut node, events, None)?;
        let written = after.write_resource(write)?;
        *state = after;
        drop(state);
        self.bell.ring(node.uuid);
        Ok(written)
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        let state = self.state();
        let by_uuid = Uuid::parse_str(ident).ok().and_then(|uuid| state.resources.get(&(kind, uuid)));
        let named = |resource: &&Resource| resource.kind == kind && resource.name.as_deref() == Some(ident);
        by_uuid
            .or_else(|| state.resources.values().find(named))
            .cloned()
            .ok_or_else(|| StoreError::not_found(kind.noun(), ident))
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        let state = self.state();
        let wanted = |resource: &&Resource| {
            resource.kind == kind && node.is_none_or(|node| resource.node == Some(node))
        };
        let mut found: Vec<_> = state.resources.values().filter(wanted).cloned().collect();
        found.sort_by_key(|resource| (resource.created_at, resource.uuid));
        Ok(found)
    }

    async fn put_bundle(&self, bundle: Bundle) -> Result<Option<Bundle>> {
        let mut state = self.state();
        if let Scope::Node(node) = bundle.scope {
            state.row(node)?;
        }
        Ok(state.bundles.insert((bundle.name.clone(), bundle.scope.clone()), bundle))
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        Ok(self.state().bundles.values().cloned().collect())
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>) -> Result<Vec<Bundle>> {
        let meant = |_: &(String, Scope), bundle: &mut Bundle| {
            bundle.digest == digest && scope.is_none_or(|scope| bundle.scope == *scope)
        };
        let gone: Vec<_> = self.state().bundles.extract_if(.., meant).map(|(_, bundle)| bundle).collect();
        if gone.is_empty() { Err(StoreError::not_found("Bundle", digest)) } else { Ok(gone) }
    }

    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>> {
        let mut state = self.state();
        let epoch = state.last_epoch + 1;
        let row = state.row(node)?;
        if row.lease.as_ref().is_some_and(|held| held.holder != holder && held.until > now) {
            return Ok(None);
        }
        row.lease = Some(Held { epoch, holder: holder.to_owned(), until });
        state.last_epoch = epoch;
        Ok(Some(Lease { node, epoch }))
    }

    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool> {
        let mut state = self.state();
        let held = state.nodes.get_mut(&lease.node).filter(|row| row.holds(lease));
        let held = held.and_then(|row| row.lease.as_mut());
        let newest = held.is_some();
        if let Some(held) = held {
            held.until = until;
        }
        Ok(newest)
    }

    async fn release_lease(&self, lease: Lease) -> Result<()> {
        if let Some(row) = self.state().nodes.get_mut(&lease.node).filter(|row| row.holds(lease)) {
            row.lease = None;
        }
        Ok(())
    }

    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        let state = self.state();
        let held = state.nodes.get(&node).and_then(|row| row.lease.as_ref());
        Ok(held.filter(|held| held.until > now).map(|held| held.holder.clone()))
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
        let state = self.state();
        let mut due: Vec<_> = state
            .nodes
            .values()
            .filter_map(|row| row.node.next_wake_at.map(|at| (at, row.node.uuid)))
            .filter(|(at, _)| *at <= now)
            .collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit).map(|(_, uuid)| uuid).collect())
    }

    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        Ok(self.state().nodes.values().filter_map(|row| row.node.next_wake_at).filter(|at| *at > now).min())
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}
