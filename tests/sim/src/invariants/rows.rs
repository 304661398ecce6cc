//! Rules over a row and the one before it.

use super::{Broken, Write};
use model::provision::{Verb, transition};
use model::{Cursor, EventKind, ProvisionState, RunKind};

/// "Optimistic versions on node rows".
pub fn a_write_is_at_the_version_that_was_read(write: &Write) -> Broken {
    let (before, after) = (write.old.version, write.new.version);
    if write.read_at == before && after == before + 1 {
        return Ok(());
    }
    Err(format!("read at {}, stored over {before} as {after}", write.read_at))
}

/// ARCHITECTURE: "A row is written only at the version at which it was read; the conductor also writes only under
/// the newest lease."
pub fn a_conductor_writes_under_the_newest_lease(write: &Write) -> Broken {
    match (write.by.lease, write.chronicle.epoch) {
        (Some(lease), Some(newest)) if lease.epoch != newest => {
            Err(format!("epoch {} after {newest} was given", lease.epoch))
        }
        _ => Ok(()),
    }
}

/// The transitions that the events of a write report, as names of states.
fn arrows<'a>(write: &'a Write) -> impl Iterator<Item = (&'a str, &'a str)> {
    let transitions = write.events.iter().filter(|event| event.kind == EventKind::Transition);
    transitions.filter_map(|event| event.text.split(": ").next()?.split_once(" -> "))
}

/// "history is contiguous": each transition starts where the last ended, and every change of state has an event
/// stored with it.
pub fn history_is_contiguous(write: &Write) -> Broken {
    let mut at = write.old.provision_state.as_str();
    for (from, to) in arrows(write) {
        if from != at {
            return Err(format!("an event reports {from} -> {to}, but the node is in {at}"));
        }
        at = to;
    }
    if at != write.new.provision_state.as_str() {
        return Err(format!("the node is in {}, the events end in {at}", write.new.provision_state.as_str()));
    }
    Ok(())
}

/// specs/state-machine.txt: nothing follows what the table does not let follow.
pub fn every_arrow_is_in_the_table(write: &Write) -> Broken {
    for (from, to) in arrows(write) {
        let (Some(from), Some(to)) = (ProvisionState::parse(from), ProvisionState::parse(to)) else {
            return Err(format!("{from} -> {to} is between no states"));
        };
        // `provide` without cleaning passes through CLEANING in no time.
        let unclean = (from, to) == (ProvisionState::Manageable, ProvisionState::Available);
        if !unclean && !Verb::ALL.iter().any(|verb| transition(from, *verb) == Ok(to)) {
            return Err(format!("{} -> {} is not in the table", from.as_str(), to.as_str()));
        }
    }
    Ok(())
}

/// specs/state-machine.txt: a stable state has no target.
pub fn a_stable_state_has_no_target(write: &Write) -> Broken {
    let (state, target) = (write.new.provision_state, write.new.target_provision_state);
    if state.is_stable() == target.is_none() {
        return Ok(());
    }
    Err(format!("{} with the target {target:?}", state.as_str()))
}

/// A node in a working state has an active run; a node at rest has none.
pub fn work_has_a_run_and_rest_has_none(write: &Write) -> Broken {
    let state = write.new.provision_state;
    let verifies = matches!(state, ProvisionState::Verifying | ProvisionState::Adopting);
    let works = !is_at_rest(state) && !verifies;
    let active = write.new.run.as_ref().is_some_and(|run| run.is_active());
    if works == active {
        return Ok(());
    }
    Err(format!("{} with {}", state.as_str(), if active { "an active run" } else { "no active run" }))
}

/// Whether the state is left only if a user says so.
pub fn is_at_rest(state: ProvisionState) -> bool {
    state.is_stable() || state.as_str().ends_with("failed")
}

/// Maintenance and fault are set together by a failed cleaning or service, and end with the next run; what a user
/// set stays set.
pub fn maintenance_is_set_by_faults_and_users(write: &Write) -> Broken {
    let (old, new) = (write.old, write.new);
    if new.fault.is_some() && !new.maintenance {
        return Err(format!("the fault {:?} without maintenance", new.fault));
    }
    if write.by.lease.is_none() {
        return Ok(());
    }
    let failing = matches!(new.provision_state, ProvisionState::CleanFail | ProvisionState::ServiceFail);
    if new.fault.is_some() && old.fault != new.fault && !failing {
        return Err(format!("the fault {:?} in {}", new.fault, new.provision_state.as_str()));
    }
    if new.maintenance && !old.maintenance && new.fault.is_none() {
        return Err("maintenance was set without a fault".to_owned());
    }
    // `delete` begins cleaning by itself; a fault of before ends with that.
    let begins = new.run.as_ref().map(|run| run.id) != old.run.as_ref().map(|run| run.id);
    if old.maintenance && !new.maintenance && !begins {
        return Err("maintenance was taken back".to_owned());
    }
    Ok(())
}

/// specs/node-retirement.txt; "a retired node never available".
pub fn a_retired_node_is_never_available(write: &Write) -> Broken {
    if write.new.retired && write.new.provision_state == ProvisionState::Available {
        return Err("it is retired".to_owned());
    }
    Ok(())
}

/// "Anneal must never lose or invent progress": a stored success stays until the run ends, unless hardware
/// managers changed and automated cleaning starts anew.
pub fn no_progress_is_lost(write: &Write) -> Broken {
    let (Some(old), Some(new)) = (&write.old.run, &write.new.run) else { return Ok(()) };
    if old.id != new.id {
        return Ok(());
    }
    let anew = new.kind == RunKind::AutomatedClean && new.replans > old.replans;
    let good = |run: &model::Run| {
        let good = run.results.iter().filter(|result| result.error.is_none());
        good.map(|result| result.command_id.clone()).collect::<Vec<_>>()
    };
    let kept = good(new);
    match good(old).into_iter().find(|id| !kept.contains(id)) {
        Some(lost) if !anew => Err(format!("the success of command {lost} is gone")),
        _ => Ok(()),
    }
}

/// "PostgreSQL restarted, or gone for a minute: … everything goes on": no step of a controller is interrupted that neither died, nor stood
/// still, nor lost its node.
pub fn a_controller_that_lives_interrupts_no_step(write: &Write) -> Broken {
    let (Some(old), Some(new)) = (&write.old.run, &write.new.run) else { return Ok(()) };
    let Cursor::OutOfBand { at, polling: false, .. } = &old.cursor else { return Ok(()) };
    let is_interrupted = old.id == new.id && new.interruptions > old.interruptions;
    if is_interrupted && !write.interruptions.iter().any(|interruption| interruption >= at) {
        return Err(format!("the step that began at {at:?} is interrupted"));
    }
    Ok(())
}
