//! What a node is AVAILABLE on, against what really happened (issue 16).

use super::{Broken, Write};
use crate::ground_truth::{By, End, Execution};
use model::{Basis, ProvisionState};
use room::Kind;
use std::collections::BTreeSet;

/// The basis with which the node becomes AVAILABLE in this write; `Some(None)`: without one.
fn entered<'a>(write: &'a Write) -> Option<Option<&'a Basis>> {
    let available = ProvisionState::Available;
    let enters = write.old.provision_state != available && write.new.provision_state == available;
    enters.then_some(write.new.basis.as_ref())
}

/// The erase steps of the agent that really ran to their end in the cleaning that ends with this write.
fn erases<'a>(write: &'a Write) -> Vec<&'a Execution> {
    let Some(run) = write.old.run.as_ref().filter(|run| run.is_active()) else { return Vec::new() };
    let ours = |execution: &&Execution| {
        execution.run == Some(run.id)
            && execution.pass == run.replans
            && execution.by == By::Agent
            && execution.label.starts_with("deploy.erase_devices")
            && execution.ended.is_some_and(|(_, end)| end == End::Succeeded)
    };
    write.chronicle.executions.iter().filter(ours).collect()
}

/// "Every way into AVAILABLE … is one enum, stored on the node as its basis"; "no other basis than the stored one".
pub fn available_has_the_stored_basis_and_no_other(write: &Write) -> Broken {
    let (old, new) = (write.old, write.new);
    if (new.provision_state == ProvisionState::Available) != new.basis.is_some() {
        return Err(format!("{} on the basis {:?}", new.provision_state.as_str(), new.basis));
    }
    if old.provision_state == new.provision_state && old.basis != new.basis {
        return Err(format!("the basis {:?} becomes {:?}", old.basis, new.basis));
    }
    Ok(())
}

/// The stored basis is what really happened.
pub fn the_basis_is_true(write: &Write) -> Broken {
    let Some(basis) = entered(write) else { return Ok(()) };
    let cleans = write.old.run.as_ref().is_some_and(|run| run.kind == model::RunKind::AutomatedClean);
    let ran: Vec<&str> = erases(write).iter().map(|execution| execution.label.as_str()).collect();
    let wanted = match write.old.provision_state {
        ProvisionState::CleanFail => "override",
        ProvisionState::Cleaning | ProvisionState::CleanWait if cleans => match write.machine.agent_kind {
            Some(Kind::Anneal) if ran.contains(&"deploy.erase_devices") => "erased",
            Some(Kind::Anneal) if !ran.is_empty() => "metadata-only",
            Some(Kind::Ipa) if !ran.is_empty() => "ironic-python-agent",
            _ if write.new.driver == "fake-hardware" => "fake-hardware",
            _ => "no-erase-step",
        },
        _ => "not-cleaned",
    };
    let found = basis.map(Basis::as_str);
    if found == Some(wanted) { Ok(()) } else { Err(format!("the basis is {found:?}, and {wanted} is true")) }
}

/// "no AVAILABLE out of a cleaning with an erase step by a signing agent without evidence for every known disk": a
/// certificate for each erase, and every disk of the machine in the report that the node remembers.
pub fn available_after_an_erase_has_evidence_of_every_disk(write: &Write) -> Broken {
    let signs = write.machine.agent_kind == Some(Kind::Anneal);
    let planned = write.old.run.iter().flat_map(|run| run.plan.iter().flatten());
    let mut planned = planned.filter(|planned| planned.label().starts_with("deploy.erase_devices"));
    let (Some(basis), true, true) = (entered(write), signs, planned.next().is_some()) else { return Ok(()) };
    if matches!(basis, Some(Basis::Override { .. } | Basis::NotCleaned)) {
        return Ok(());
    }
    // A step whose success was lost with a reboot runs again, and is proven once.
    let erases: BTreeSet<_> = erases(write).iter().map(|execution| execution.index).collect();
    let certificates = basis.map(Basis::certificates).unwrap_or_default();
    if erases.is_empty() || certificates.len() < erases.len() {
        return Err(format!("{} erases really ended, certificates: {certificates:?}", erases.len()));
    }
    let known = &write.new.disks.known;
    let disks = write.machine.state().disks.clone();
    let unproven =
        |disk: &&crate::machine::Disk| !known.iter().any(|known| known.serial.as_ref() == Some(&disk.serial));
    match disks.iter().find(unproven) {
        Some(disk) => Err(format!("disk {} is in no report", disk.serial)),
        None => Ok(()),
    }
}
