//! Leases, wake-up times and the writes of a pass.

use super::MemoryStore;
use super::state::{Held, Row};
use crate::certificate_log;
use crate::conductor::{ConductorStore, Inspected};
use crate::error::{Result, StoreError};
use crate::inventory;
use crate::lease::Lease;
use crate::resources::ResourceWrite;
use async_trait::async_trait;
use model::agent::Contact;
use model::boot::Boot;
use model::{
    Catalogue, Certificate, ConductorReport, Event, LoggedEvent, Node, StepKind, Timestamp, clock_jump,
};
use uuid::Uuid;

#[async_trait]
impl ConductorStore for MemoryStore {
    fn is_shared(&self) -> bool {
        self.is_shared
    }

    async fn report_conductor(&self, report: ConductorReport) -> Result<()> {
        self.state().conductors.insert(report.hostname.clone(), report);
        Ok(())
    }

    async fn remove_conductor(&self, hostname: &str) -> Result<()> {
        self.state().conductors.remove(hostname);
        Ok(())
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
        self.bell.released(lease.node);
        Ok(())
    }

    async fn leased_by(&self, holder: &str) -> Result<Vec<Uuid>> {
        let is_held = |row: &Row| row.lease.as_ref().is_some_and(|held| held.holder == holder);
        let state = self.state();
        Ok(state.nodes.iter().filter(|(_, row)| is_held(row)).map(|(node, _)| *node).collect())
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

    async fn look(&self, uuid: Uuid, known: Option<u64>) -> Result<(Option<Node>, Contact)> {
        let mut state = self.state();
        let row = state.row(uuid)?;
        let node = (known != Some(row.node.version)).then(|| row.node.clone());
        Ok((node, row.contact.clone()))
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
        let line =
            certificate_log::line_after(state.certificate_log.last().map(String::as_str), &certificate)?;
        state.update(&mut node, events.clone(), lease)?;
        state.log_event(LoggedEvent::of_certificate(&node, &certificate, &events));
        state.certificate_log.push(line);
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
        for port in &inspected.ports {
            let unchanged = state.at_version(port.kind, port.uuid, port.version);
            unchanged.map_err(|error| error.stale_for(node.uuid))?;
        }
        state.update(&mut node, events, lease)?;
        state.row(node.uuid)?.inventory = Some(inspected.inventory);
        for port in inspected.ports {
            state.write_resource(ResourceWrite::Update(port))?;
        }
        for port in inspected.new_ports {
            if state.by_key(port.kind, port.address()).is_none() {
                state.write_resource(ResourceWrite::Create(port))?;
            }
        }
        drop(state);
        self.bell.ring(node.uuid);
        Ok(node)
    }

    async fn newest_certificate(&self, node: Uuid) -> Result<Option<Certificate>> {
        Ok(self.state().certificates.get(&node).and_then(|all| all.last().cloned()))
    }

    async fn put_catalogue(
        &self,
        node: Uuid,
        kind: StepKind,
        catalogue: Catalogue,
        lease: Option<Lease>,
    ) -> Result<()> {
        self.state().row_under(node, lease)?.catalogues.insert(kind, catalogue);
        self.bell.ring(node);
        Ok(())
    }

    async fn forget_agent(&self, node: Uuid, next: Option<Boot>, lease: Option<Lease>) -> Result<()> {
        self.state().row_under(node, lease)?.contact = Contact { boot: next, ..Contact::default() };
        self.bell.ring(node);
        Ok(())
    }

    async fn shift_clock(&self, by: i64) -> Result<()> {
        let mut state = self.state();
        let mut rings = Vec::new();
        for (uuid, row) in &mut state.nodes {
            if clock_jump::shift_node(&mut row.node, by) {
                row.node.version += 1;
                rings.push(*uuid);
            }
            if clock_jump::awaits_inventory(&row.node)
                && let Some(inventory) = &mut row.inventory
            {
                clock_jump::shift_inventory(inventory, by);
            }
            clock_jump::shift_contact(&mut row.contact, by);
            if let Some(held) = &mut row.lease {
                held.until = held.until.shifted(by);
            }
        }
        drop(state);
        rings.into_iter().for_each(|node| self.bell.ring(node));
        Ok(())
    }
}
