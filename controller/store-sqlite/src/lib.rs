//! The store in one SQLite file.
//!
//! ```text
//!   SqliteStore ── write ──▶ writer thread, the only connection that writes (writer.rs: group commit)
//!        │                        │ node.rs port.rs contact.rs inventory.rs template.rs resource.rs bundle.rs certificate.rs lease.rs: SQL of each noun
//!        └──────── read ───▶ readers.rs: a few read-only connections, WAL snapshots
//! ```
//!
//! Invariants: what a call acknowledged is on the disk (`synchronous=FULL`); columns are computed from the
//! documents by SQLite and cannot disagree with them; no SQL outside this crate; no message quotes a document.

mod bundle;
mod certificate;
mod contact;
mod document;
#[cfg(feature = "fault-points")]
mod fault;
mod inventory;
mod lease;
mod lock;
mod migrate;
#[cfg(test)]
mod migration_tests;
mod node;
mod open;
mod port;
mod readers;
mod resource;
mod template;
mod writer;

use async_trait::async_trait;
use model::agent::Contact;
use model::{
    Bundle, Catalogue, Certificate, DeployTemplate, Event, Inventory, Node, Port, Resource, ResourceKind,
    Scope, Timestamp,
};
pub use open::OpenError;
use readers::Readers;
use rusqlite::Connection;
use std::path::Path;
use store::{
    Bell, HeartbeatRecord, Inspected, Lease, PortChange, ResourceWrite, Result, StepKind, Store, StoreError,
    TokenGrant,
};
use uuid::Uuid;
pub use writer::WRITER;
use writer::Writer;

/// A [`Store`] in a file. Needs a tokio runtime; dropping it waits for the writes under way.
pub struct SqliteStore {
    readers: Readers,
    writer: Writer,
    bell: Bell,
}

impl SqliteStore {
    /// Open the database at `path`, or create it (mode 0600; the directory must exist), and migrate it to the
    /// newest schema. Blocks; meant for start-up.
    pub fn open(path: &Path) -> std::result::Result<Self, OpenError> {
        let opened = open::open(path)?;
        let bell = Bell::new();
        let writer = Writer::spawn(opened.writer, bell.clone(), opened.lock)
            .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Self { readers: Readers::new(opened.readers), writer, bell })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_node(&self, mut node: Node, events: Vec<Event>) -> Result<Node> {
        let write = self.writer.write(move |change| {
            node.version = 1;
            node::insert(change, &node, &events)?;
            change.ring(node.uuid);
            Ok(node)
        });
        write.await
    }

    async fn node(&self, uuid: Uuid) -> Result<Node> {
        let found = self.readers.read(move |connection| node::by_uuid(connection, uuid)).await?;
        found.ok_or_else(|| StoreError::not_found("Node", uuid))
    }

    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)> {
        let look = move |connection: &Connection| {
            let node = match known {
                Some(known) if node::version(connection, uuid)? == Some(known) => None,
                _ => {
                    let found = node::by_uuid(connection, uuid)?;
                    Some(found.ok_or_else(|| StoreError::not_found("Node", uuid))?)
                }
            };
            Ok((node, contact::of_node(connection, uuid)?))
        };
        self.readers.read(look).await
    }

    async fn node_by_ident(&self, ident: &str) -> Result<Node> {
        let wanted = ident.to_owned();
        let found = self.readers.read(move |connection| node::by_ident(connection, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found("Node", ident))
    }

    async fn nodes(&self) -> Result<Vec<Node>> {
        self.readers.read(node::all).await
    }

    async fn update_node(&self, mut node: Node, events: Vec<Event>, lease: Option<Lease>) -> Result<Node> {
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        // Here and not in the writer: it is work for one, and everybody waits for the writer.
        let doc = node::document(&node)?;
        let write = self.writer.write(move |change| {
            node::update(change, &node, &doc, &events, lease)?;
            change.ring(node.uuid);
            Ok(node)
        });
        write.await
    }

    async fn certify(
        &self,
        mut node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node> {
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        let doc = node::document(&node)?;
        let write = self.writer.write(move |change| {
            node::update(change, &node, &doc, &events, lease)?;
            certificate::insert(change, node.uuid, &certificate)?;
            change.ring(node.uuid);
            Ok(node)
        });
        write.await
    }

    async fn update_inspected(
        &self,
        mut node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node> {
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        let doc = node::document(&node)?;
        let write = self.writer.write(move |change| {
            node::update(change, &node, &doc, &events, lease)?;
            inventory::put(change, node.uuid, &inspected.inventory)?;
            for PortChange { read, new } in &inspected.ports {
                if port::by_uuid(change, read.uuid)?.as_ref() != Some(read) {
                    return Err(StoreError::Stale(node.uuid));
                }
                port::update(change, new)?;
            }
            for port in &inspected.new_ports {
                if port::by_address(change, &port.address)?.is_none() {
                    port::insert(change, port)?;
                }
            }
            change.ring(node.uuid);
            Ok(node)
        });
        write.await
    }

    async fn certificates(&self, node: Uuid) -> Result<Vec<Certificate>> {
        self.readers.read(move |connection| certificate::of_node(connection, node)).await
    }

    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>> {
        self.readers.read(move |connection| certificate::newest(connection, node)).await
    }

    async fn certificate(&self, id: &str) -> Result<Certificate> {
        let id = id.to_owned();
        self.readers.read(move |connection| certificate::by_id(connection, &id)).await
    }

    async fn delete_node(&self, uuid: Uuid, version: u64) -> Result<()> {
        let write = self.writer.write(move |change| {
            node::delete(change, uuid, version)?;
            change.ring(uuid);
            Ok(())
        });
        write.await
    }

    async fn history(&self, node: Uuid) -> Result<Vec<Event>> {
        self.readers.read(move |connection| node::history(connection, node)).await
    }

    async fn create_port(&self, port: Port) -> Result<Port> {
        let write = self.writer.write(move |change| {
            port::insert(change, &port)?;
            change.ring(port.node_uuid);
            Ok(port)
        });
        write.await
    }

    async fn port(&self, uuid: Uuid) -> Result<Port> {
        let found = self.readers.read(move |connection| port::by_uuid(connection, uuid)).await?;
        found.ok_or_else(|| StoreError::not_found("Port", uuid))
    }

    async fn port_by_address(&self, address: &str) -> Result<Port> {
        let wanted = address.to_owned();
        let found = self.readers.read(move |connection| port::by_address(connection, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found("Port", address))
    }

    async fn ports(&self, node: Option<Uuid>) -> Result<Vec<Port>> {
        let read = self.readers.read(move |connection| match node {
            Some(node) => port::of_node(connection, node),
            None => port::all(connection),
        });
        read.await
    }

    async fn update_port(&self, port: Port) -> Result<Port> {
        let write = self.writer.write(move |change| {
            let old = port::update(change, &port)?;
            change.ring(port.node_uuid);
            if old.node_uuid != port.node_uuid {
                change.ring(old.node_uuid);
            }
            Ok(port)
        });
        write.await
    }

    async fn delete_port(&self, uuid: Uuid) -> Result<()> {
        let write = self.writer.write(move |change| {
            let old = port::delete(change, uuid)?;
            change.ring(old.node_uuid);
            Ok(())
        });
        write.await
    }

    async fn contact(&self, node: Uuid) -> Result<Contact> {
        self.readers.read(move |connection| contact::of_node(connection, node)).await
    }

    async fn grant_token(
        &self,
        node: Uuid,
        token: &str,
        boot_id: Option<&str>,
        at: Timestamp,
    ) -> Result<TokenGrant> {
        let (token, boot_id) = (token.to_owned(), boot_id.map(str::to_owned));
        let write = self.writer.write(move |change| {
            let grant = contact::grant_token(change, node, &token, boot_id.as_deref(), at)?;
            change.ring(node);
            Ok(grant)
        });
        write.await
    }

    async fn record_heartbeat(&self, node: Uuid, token: &str, beat: HeartbeatRecord) -> Result<()> {
        let token = token.to_owned();
        let write = self.writer.write(move |change| {
            contact::record_heartbeat(change, node, &token, beat)?;
            change.ring(node);
            Ok(())
        });
        write.await
    }

    async fn forget_agent(&self, node: Uuid) -> Result<()> {
        let write = self.writer.write(move |change| {
            contact::forget(change, node)?;
            change.ring(node);
            Ok(())
        });
        write.await
    }

    async fn catalogue(&self, node: Uuid, kind: StepKind) -> Result<Option<Catalogue>> {
        self.readers.read(move |connection| contact::catalogue(connection, node, kind)).await
    }

    async fn put_catalogue(&self, node: Uuid, kind: StepKind, catalogue: Catalogue) -> Result<()> {
        let write = self.writer.write(move |change| {
            contact::put_catalogue(change, node, kind, &catalogue)?;
            change.ring(node);
            Ok(())
        });
        write.await
    }

    async fn inventory(&self, node: Uuid) -> Result<Option<Inventory>> {
        self.readers.read(move |connection| inventory::of_node(connection, node)).await
    }

    async fn put_inventory(&self, node: Uuid, inventory: Inventory) -> Result<()> {
        let write = self.writer.write(move |change| {
            inventory::put(change, node, &inventory)?;
            change.ring(node);
            Ok(())
        });
        write.await
    }

    async fn create_template(&self, mut template: DeployTemplate) -> Result<DeployTemplate> {
        let write = self.writer.write(move |change| {
            template.version = 1;
            template::insert(change, &template)?;
            Ok(template)
        });
        write.await
    }

    async fn template(&self, ident: &str) -> Result<DeployTemplate> {
        let wanted = ident.to_owned();
        let found = self.readers.read(move |connection| template::by_ident(connection, &wanted)).await?;
        found.ok_or_else(|| template::missing(ident))
    }

    async fn templates(&self) -> Result<Vec<DeployTemplate>> {
        self.readers.read(template::all).await
    }

    async fn templates_named(&self, names: &[String]) -> Result<Vec<DeployTemplate>> {
        let names = names.to_vec();
        self.readers.read(move |connection| template::named(connection, &names)).await
    }

    async fn update_template(&self, mut template: DeployTemplate) -> Result<DeployTemplate> {
        let write = self.writer.write(move |change| {
            template.version = template.version.checked_add(1).ok_or(StoreError::Stale(template.uuid))?;
            template::update(change, &template)?;
            Ok(template)
        });
        write.await
    }

    async fn delete_template(&self, uuid: Uuid) -> Result<()> {
        self.writer.write(move |change| template::delete(change, uuid)).await
    }

    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
    ) -> Result<Resource> {
        let node = match node {
            None => None,
            Some((mut node, events)) => {
                node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
                let doc = node::document(&node)?;
                Some((node, doc, events))
            }
        };
        let write = self.writer.write(move |change| {
            if let Some((node, doc, events)) = node {
                node::update(change, &node, &doc, &events, None)?;
                change.ring(node.uuid);
            }
            resource::write(change, write)
        });
        write.await
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        let wanted = ident.to_owned();
        let found =
            self.readers.read(move |connection| resource::by_ident(connection, kind, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found(kind.noun(), ident))
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        self.readers.read(move |connection| resource::all(connection, kind, node)).await
    }

    async fn put_bundle(&self, bundle: Bundle) -> Result<Option<Bundle>> {
        self.writer.write(move |change| bundle::put(change, &bundle)).await
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        self.readers.read(bundle::all).await
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>) -> Result<Vec<Bundle>> {
        let (digest, scope) = (digest.to_owned(), scope.map(Scope::to_string));
        self.writer.write(move |change| bundle::delete(change, &digest, scope.as_deref())).await
    }

    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>> {
        let holder = holder.to_owned();
        self.writer.write(move |change| lease::take(change, node, &holder, now, until)).await
    }

    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool> {
        self.writer.write(move |change| lease::renew(change, lease, until)).await
    }

    async fn release_lease(&self, lease: Lease) -> Result<()> {
        self.writer.write(move |change| lease::release(change, lease)).await
    }

    async fn lease_holder(&self, node: Uuid, now: Timestamp) -> Result<Option<String>> {
        self.readers.read(move |connection| lease::holder(connection, node, now)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
        self.readers.read(move |connection| node::due(connection, now, limit)).await
    }

    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.readers.read(move |connection| node::next_due(connection, now)).await
    }

    fn bell(&self) -> &Bell {
        &self.bell
    }
}
