//! Leases, wake-up times and the writes of a pass.

use crate::PostgresStore;
use crate::change::{Change, rows};
use crate::database::Client;
use crate::document::{cell, decode, open};
use crate::failure::failed;
use crate::sql;
use crate::sql::node::{self, NodeRow};
use crate::sql::{certificate, contact, event_log, inventory, lease, resource};
use async_trait::async_trait;
use model::agent::Contact;
use model::boot::Boot;
use model::{
    Catalogue, Certificate, ConductorReport, Event, LoggedEvent, Node, StepKind, Timestamp, clock_jump,
};
use store::{ConductorStore, Inspected, Lease, Noun, ResourceWrite, Result, StoreError};
use stored_secrets::DatabaseKey;
use uuid::Uuid;

#[async_trait]
impl ConductorStore for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        self.database.read(|client, _| Box::pin(sql::conductor::clock(client))).await.map(Some)
    }

    async fn report_conductor(&self, report: ConductorReport) -> Result<()> {
        let report = &report;
        self.database.write(|change, _| Box::pin(sql::conductor::put(change, report))).await
    }

    async fn remove_conductor(&self, hostname: &str) -> Result<()> {
        self.database.write(|change, _| Box::pin(sql::conductor::remove(change, hostname))).await
    }

    async fn take_lease(
        &self,
        node: Uuid,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>> {
        self.database.write(|change, _| Box::pin(lease::take(change, node, holder, now, until))).await
    }

    async fn renew_lease(&self, lease: Lease, until: Timestamp) -> Result<bool> {
        self.database.write(|change, _| Box::pin(lease::renew(change, lease, until))).await
    }

    async fn leased_by(&self, holder: &str) -> Result<Vec<Uuid>> {
        self.database.read(|client, _| Box::pin(lease::of_holder(client, holder))).await
    }

    async fn release_lease(&self, lease: Lease) -> Result<()> {
        let release = self.database.write(|change, _| {
            Box::pin(async move {
                lease::release(change, lease).await?;
                change.released(lease.node);
                Ok(())
            })
        });
        release.await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
        self.database.read(|client, _| Box::pin(node::due(client, now, limit))).await
    }

    async fn next_due(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.database.read(|client, _| Box::pin(node::next_due(client, now))).await
    }

    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)> {
        let key = &self.key;
        self.database.read(|client, _| Box::pin(look(client, key, uuid, known))).await
    }

    async fn certify(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        certificate: Certificate,
    ) -> Result<Node> {
        let new = NodeRow::next(&self.key, node)?;
        let record = [LoggedEvent::of_certificate(&new.node, &certificate, &events)];
        let (of, events, certificate, record) = (&new, &events, &certificate, &record);
        let write = self.database.write(|change, _| {
            Box::pin(async move {
                node::update(change, of, events, lease).await?;
                certificate::insert(change, of.node.uuid, certificate).await?;
                event_log::add(change, record).await?;
                change.ring(of.node.uuid);
                Ok(())
            })
        });
        write.await?;
        Ok(new.node)
    }

    async fn update_inspected(
        &self,
        node: Node,
        events: Vec<Event>,
        lease: Option<Lease>,
        inspected: Inspected,
    ) -> Result<Node> {
        let new = NodeRow::next(&self.key, node)?;
        let Inspected { inventory, ports, new_ports } = inspected;
        let doc = inventory::document(new.node.uuid, inventory)?;
        let (key, of, events, doc) = (&self.key, &new, &events, doc.as_str());
        let (ports, new_ports) = (&ports, &new_ports);
        let write = self.database.write(|change, _| {
            Box::pin(async move {
                let uuid = of.node.uuid;
                node::update(change, of, events, lease).await?;
                inventory::write(change, uuid, doc).await?;
                for port in ports {
                    let written = resource::write(change, key, ResourceWrite::Update(port.clone())).await;
                    written.map_err(|error| error.stale_for(uuid))?;
                }
                for port in new_ports {
                    resource::create_if_free(change, key, port.clone()).await?;
                }
                change.ring(uuid);
                Ok(())
            })
        });
        write.await?;
        Ok(new.node)
    }

    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>> {
        self.database.read(|client, _| Box::pin(certificate::newest(client, node))).await
    }

    async fn put_catalogue(
        &self,
        node: Uuid,
        kind: StepKind,
        catalogue: Catalogue,
        lease: Option<Lease>,
    ) -> Result<()> {
        let catalogue = &catalogue;
        let put = self.database.write(|change, _| {
            Box::pin(async move {
                contact::put_catalogue(change, node, kind, catalogue).await?;
                lease::check(change, node, lease).await?;
                change.ring(node);
                Ok(())
            })
        });
        put.await
    }

    async fn forget_agent(&self, node: Uuid, next: Option<Boot>, lease: Option<Lease>) -> Result<()> {
        let next = &next;
        let forget = self.database.write(|change, _| {
            Box::pin(async move {
                contact::forget(change, node, next.clone()).await?;
                lease::check(change, node, lease).await?;
                change.ring(node);
                Ok(())
            })
        });
        forget.await
    }

    async fn shift_clock(&self, by: i64) -> Result<()> {
        let key = &self.key;
        self.database.write(|change, _| Box::pin(shift_clock(change, key, by))).await
    }
}

/// One statement, so both are of one moment.
async fn look(
    client: &Client,
    key: &DatabaseKey,
    uuid: Uuid,
    known: Option<u64>,
) -> Result<(Option<Node>, Contact)> {
    const LOOK: &str = "SELECT CASE WHEN n.version IS DISTINCT FROM $2 THEN n.doc END, c.doc
        FROM node n LEFT JOIN contact c ON c.node = n.uuid WHERE n.uuid = $1";
    let found = rows(client, LOOK, &[&uuid, &known.map(u64::cast_signed)]).await;
    let found = found.map_err(failed(format_args!("reading node {uuid}")))?;
    let row = found.first().ok_or_else(|| StoreError::not_found(Noun::Node, uuid))?;
    let (node, contact): (Option<&str>, Option<&str>) = (cell(row, 0)?, cell(row, 1)?);
    let node = node.map(|doc| open(key, "node", uuid, doc)).transpose()?;
    let contact = contact.map(|doc| decode("contact", uuid, doc)).transpose()?;
    Ok((node, contact.unwrap_or_default()))
}

/// Of all nodes, which are locked in one order.
async fn shift_clock(change: &mut Change, key: &DatabaseKey, by: i64) -> Result<()> {
    // It may take longer than other writes.
    const LOCK: &str = "SELECT uuid, doc FROM node ORDER BY uuid FOR NO KEY UPDATE";
    let doing = "moving the instants of nodes";
    change.batch("SET LOCAL statement_timeout = '10min'").await.map_err(failed(doing))?;
    for row in change.query(LOCK, &[]).await.map_err(failed(doing))? {
        let mut node = node::of_row(key, &row)?;
        let uuid = node.uuid;
        if clock_jump::awaits_inventory(&node) {
            inventory::shift_clock(change, uuid, by).await?;
        }
        contact::shift_clock(change, uuid, by).await?;
        if clock_jump::shift_node(&mut node, by) {
            node::overwrite(change, &NodeRow::next(key, node)?).await?;
            change.ring(uuid);
        }
    }
    lease::shift_clock(change, by).await
}
