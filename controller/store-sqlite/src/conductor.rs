//! Leases, wake-up times and the writes of a pass.

use crate::SqliteStore;
use crate::sql::{certificate, conductor, contact, event_log, inventory, lease, node, resource};
use crate::writer::Change;
use crate::written::Written;
use async_trait::async_trait;
use model::agent::Contact;
use model::boot::Boot;
use model::{
    Catalogue, Certificate, ConductorReport, Event, LoggedEvent, Node, StepKind, Timestamp, clock_jump,
};
use rusqlite::Connection;
use std::sync::Arc;
use store::{ConductorStore, Inspected, Lease, Noun, ResourceWrite, Result, StoreError};
use uuid::Uuid;

#[async_trait]
impl ConductorStore for SqliteStore {
    async fn report_conductor(&self, report: ConductorReport) -> Result<()> {
        self.writer.write(move |change| conductor::put(change, &report)).await
    }

    async fn remove_conductor(&self, hostname: &str) -> Result<()> {
        let hostname = hostname.to_owned();
        self.writer.write(move |change| conductor::remove(change, &hostname)).await
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
        self.writer.write(move |change| lease::release(change, lease)).await?;
        self.bell.released(lease.node);
        Ok(())
    }

    async fn leased_by(&self, holder: &str) -> Result<Vec<Uuid>> {
        let holder = holder.to_owned();
        self.readers.read(move |connection| lease::held_by(connection, &holder)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
        self.readers.read(move |connection| node::due(connection, now, limit)).await
    }

    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.readers.read(move |connection| node::next_due(connection, now)).await
    }

    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)> {
        let (node, contact) = match self.cache.node_and_contact(uuid) {
            Some(both) => both,
            None => {
                let reading = self.cache.reading();
                let look = move |connection: &Connection| {
                    let contact = contact::read(connection, &reading, uuid)?;
                    let node = match reading.get(uuid) {
                        Some(cached) => Some(cached),
                        None => node::read(connection, &reading, uuid)?,
                    };
                    Ok((node.ok_or_else(|| StoreError::not_found(Noun::Node, uuid))?, contact))
                };
                self.readers.read(look).await?
            }
        };
        let node = (known != Some(node.version)).then(|| Arc::unwrap_or_clone(node));
        Ok((node, Arc::unwrap_or_clone(contact)))
    }

    async fn certify(
        &self,
        mut node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node> {
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        let (doc, uuid) = (node::Document::of(&node)?, node.uuid);
        let record = LoggedEvent::of_certificate(&node, &certificate, &events);
        let write = self.writer.write_node(uuid, move |change| {
            node::update(change, &doc, &events, lease)?;
            certificate::insert(change, uuid, &certificate)?;
            event_log::append(change, &record)
        });
        write.await?;
        Ok(node)
    }

    async fn update_inspected(
        &self,
        mut node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node> {
        node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
        let (doc, uuid) = (node::Document::of(&node)?, node.uuid);
        let inventory_doc = inventory::document(uuid, inspected.inventory)?;
        let write = self.writer.write_node(uuid, move |change| {
            node::update(change, &doc, &events, lease)?;
            inventory::put(change, uuid, &inventory_doc)?;
            for port in inspected.ports {
                let written = resource::write(change, ResourceWrite::Update(port));
                written.map_err(|error| error.stale_for(uuid))?;
            }
            for port in inspected.new_ports {
                if resource::by_key(change, port.kind, port.address())?.is_none() {
                    resource::write(change, ResourceWrite::Create(port))?;
                }
            }
            Ok(())
        });
        write.await?;
        Ok(node)
    }

    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>> {
        self.readers.read(move |connection| certificate::newest(connection, node)).await
    }

    async fn put_catalogue(
        &self,
        node: Uuid,
        kind: StepKind,
        catalogue: Catalogue,
        lease: Option<Lease>,
    ) -> Result<()> {
        let put = move |change: &mut Change<'_>| {
            lease::check(change, node, lease)?;
            contact::put_catalogue(change, node, kind, &catalogue)
        };
        self.writer.write_node(node, put).await
    }

    async fn forget_agent(&self, node: Uuid, next: Option<Boot>, lease: Option<Lease>) -> Result<()> {
        let forget = move |change: &mut Change<'_>| {
            lease::check(change, node, lease)?;
            contact::forget(change, node, next)
        };
        self.writer.write_node(node, forget).await
    }

    async fn shift_clock(&self, by: i64) -> Result<()> {
        let shift = move |change: &mut Change<'_>| {
            change.note(Written::All);
            for mut node in node::all(change)? {
                let uuid = node.uuid;
                if clock_jump::shift_node(&mut node, by) {
                    node.version += 1;
                    node::update(change, &node::Document::of(&node)?, &[], None)?;
                    change.ring(uuid);
                }
                if clock_jump::awaits_inventory(&node) {
                    inventory::shift_clock(change, uuid, by)?;
                }
                contact::shift_clock(change, uuid, by)?;
            }
            lease::shift_clock(change, by)
        };
        self.writer.write(shift).await
    }
}
