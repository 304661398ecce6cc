//! What must hold of nodes that are AVAILABLE: the basis of that is stored, and true.

use crate::properties::Move;
use crate::transition::Transition;
use model::{Basis, ProvisionState, Verb};

/// The basis with which the node became AVAILABLE in this move; `Some(None)`: without one.
fn entered<'a>(now: &'a Move) -> Option<Option<&'a Basis>> {
    let (before, after) = (now.before.node(), now.next.world.node());
    let available = ProvisionState::Available;
    let enters = before.provision_state != available && after.provision_state == available;
    enters.then_some(after.basis.as_ref())
}

fn is_override(now: &Move) -> bool {
    now.next.transition == Transition::User(Verb::Override)
}

pub(crate) fn available_after_an_erase_has_evidence_of_every_disk(now: &Move) -> Result<(), String> {
    let Some(basis) = entered(now) else { return Ok(()) };
    if !now.scenario.signs || is_override(now) {
        return Ok(());
    }
    let erases = (0..now.scenario.steps.len()).filter(|step| now.scenario.erases(*step));
    for step in erases.clone() {
        let label = now.scenario.steps[step].label;
        if !now.next.world.story.steps.get(step).is_some_and(|history| history.proven) {
            return Err(format!("the node is available, and the agent has not signed what {label} did"));
        }
        let results = now.next.world.node().run.iter().flat_map(|run| &run.results);
        let certificate =
            results.filter(|result| result.index == step).find_map(|result| result.certificate.as_ref());
        let stated = basis.map(Basis::certificates).unwrap_or_default();
        if !certificate.is_some_and(|id| stated.contains(id)) {
            return Err(format!("the basis {basis:?} does not name the certificate of {label}"));
        }
    }
    Ok(())
}

pub(crate) fn available_has_the_stored_basis_and_no_other(now: &Move) -> Result<(), String> {
    let (before, after) = (now.before.node(), now.next.world.node());
    if (after.provision_state == ProvisionState::Available) != after.basis.is_some() {
        return Err(format!("the node is {} on the basis {:?}", after.provision_state.as_str(), after.basis));
    }
    let Some(basis) = entered(now) else {
        let stays = before.provision_state == after.provision_state;
        return if stays && before.basis != after.basis {
            Err(format!("the basis {:?} becomes {:?}", before.basis, after.basis))
        } else {
            Ok(())
        };
    };
    let steps = 0..now.scenario.steps.len();
    let wanted = match (is_override(now), steps.into_iter().any(|step| now.scenario.erases(step))) {
        (true, _) => "override",
        (_, true) if now.scenario.signs => "erased",
        (_, true) => "ironic-python-agent",
        (_, false) => "fake-hardware",
    };
    let found = basis.map(Basis::as_str);
    if found == Some(wanted) { Ok(()) } else { Err(format!("the basis is {found:?}, and {wanted} is true")) }
}
