//! Storing a change, with its certificate and its events.

use super::conductor::Conductor;
use crate::decision::Change;
use crate::issuer::{Previous, Proof};
use agent_protocol::deployment::WrittenDisk;
use certificate::{DiskBefore, Evidence};
use model::history::{EventKind, Severity};
use model::request::event;
use model::{Certificate, Event, Node, StepResult, Timestamp};
use store::{Lease, StoreError, log_events};

impl Conductor {
    /// Store a change: first what the node's row will rely on, the row last; then log its events. The node as stored.
    pub(super) async fn record(
        &self,
        before: Node,
        mut change: Change,
        lease: Lease,
    ) -> Result<Node, StoreError> {
        let (uuid, held) = (before.uuid, Some(lease));
        if change.forget_agent {
            self.store.forget_agent(uuid, change.next_boot.take(), held).await?;
        }
        for (kind, catalogue) in std::mem::take(&mut change.catalogues) {
            self.store.put_catalogue(uuid, kind, catalogue, held).await?;
        }
        let inspected = change.inspected.take();
        if change.node == before && change.events.is_empty() && inspected.is_none() {
            return Ok(before);
        }
        change.node.updated_at = Some(self.clock.now());
        let certificate = match change.evidence.take() {
            // In a box: the futures of all passes would be as large as this one.
            Some(proof) => Some(Box::pin(self.certify(&mut change, *proof)).await?),
            None => None,
        };
        let Change { node, events, .. } = change;
        let logged = events.clone();
        let stored = match (certificate, inspected) {
            (Some(certificate), _) => self.store.certify(node, events, held, certificate).await?,
            (None, Some(inspected)) => self.store.update_inspected(node, events, held, *inspected).await?,
            (None, None) => self.store.update_node(node, events, held).await?,
        };
        log_events(&stored, &logged);
        if let Some(observer) = self.observer() {
            observer.stored(&before, &stored);
        }
        Ok(stored)
    }

    /// The certificate of what was proven, named in the result of its step and in the history of the node.
    async fn certify(&self, change: &mut Change, proof: Proof) -> Result<Certificate, StoreError> {
        let (uuid, now) = (change.node.uuid, self.clock.now());
        let previous = self.store.newest_certificate(uuid).await?;
        let without = || StoreError::failed(format!("internal: evidence of node {uuid} belongs to no step"));
        let is_of = |result: &StepResult| result.command_id == proof.evidence.command_id;
        let run = change.node.run.as_ref().ok_or_else(without)?;
        let place = run.results.iter().rposition(is_of).ok_or_else(without)?;
        let index = run.results[place].index;
        let (command_id, request_id) = (run.results[place].command_id.clone(), run.request_id.clone());
        let sender = run.sender.clone();
        let kind = proof.evidence.kind();
        let disk_before = match &proof.evidence.deployed {
            Some(disk) => {
                Some(disk_before(&self.store.certificates(uuid).await?, change.node.deployed_at, disk)?)
            }
            None => None,
        };
        let before = Previous { certificate: previous.as_ref(), disk_before };
        let certificate = self.issuer.certify(&change.node, run, index, proof, before, now);
        // The certificate names them from now on.
        change.node.disks.retired.clear();
        if let Some(run) = &mut change.node.run {
            run.results[place].certificate = Some(certificate.id.clone());
        }
        let (number, id, finding) = (certificate.number, &certificate.id, &certificate.finding);
        let text = format!("{kind} certificate {number} of the node ({finding}): {id}");
        let event = event(EventKind::Step, Severity::Info, text, now);
        change.events.push(Event { command_id: Some(command_id), request_id, sender, ..event });
        Ok(certificate)
    }
}

/// What the certificates of a node, oldest first, say of a disk that an image was written to. Those before the end of the
/// deployment before say nothing: that one may have no certificate.
fn disk_before(
    certificates: &[Certificate],
    deployed_at: Option<Timestamp>,
    disk: &WrittenDisk,
) -> Result<DiskBefore, StoreError> {
    let newer = certificates.iter().rev().take_while(|one| deployed_at.is_none_or(|ended| one.at > ended));
    let read = |one: &Certificate| {
        let evidence = certificate::evidence_in(&one.file);
        let unreadable = |error| StoreError::caused(format!("certificate {} cannot be read", one.id), error);
        Ok((one.id.clone(), evidence.map_err(unreadable)?))
    };
    let earlier: Vec<(String, Evidence)> = newer.map(read).collect::<Result<_, StoreError>>()?;
    let earlier = earlier.iter().map(|(id, evidence)| (id.as_str(), evidence));
    Ok(DiskBefore { erased_by: certificate::erased_by(earlier, disk).map(str::to_owned) })
}

/// A change whose events name the command and the request that they belong to. `before` is the node that it changes.
pub(super) fn attributed(before: &Node, mut change: Change) -> Change {
    for event in &mut change.events {
        event.note_run(before.run.as_ref(), change.node.run.as_ref());
    }
    change
}
