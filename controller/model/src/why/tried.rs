//! What was tried, and what was answered.

use super::facts::Facts;
use crate::node::Node;
use crate::phase::Phase;
use crate::provision::ProvisionState;
use crate::run::{Cursor, Logs, Run};
use crate::step::{PlannedStep, StepResult};
use crate::time::Timestamp;

/// Something that was tried or answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// One sentence, without a full stop.
    pub text: String,
    /// When, where that is stored.
    pub at: Option<Timestamp>,
}

pub(super) fn of(facts: &Facts) -> Vec<Tried> {
    let node = facts.node;
    let mut all = Vec::new();
    let mut add = |at: Option<Timestamp>, text: String| all.push(Tried { text, at });
    let changed = node.provision_updated_at;
    if let Some(basis) = node.basis.as_ref().filter(|_| node.provision_state == ProvisionState::Available) {
        add(changed, format!("it became available on the basis {basis}"));
    }
    if let Some(run) = &node.run {
        of_run(run, &mut add);
    }
    if let Some(text) = &node.last_error {
        // The error of a run that goes on is of an attempt, whose time is not stored.
        let has_ended = node.provision_state.phase().is_at_rest() && has_failed(node);
        let text = format!("the last error: {text}");
        add(changed.filter(|_| has_ended), text);
    }
    if node.maintenance && node.maintenance_reason != node.last_error {
        let reason = node.maintenance_reason.as_deref().unwrap_or("no reason was given");
        add(None, format!("it was put into maintenance: {reason}"));
    }
    if node.run.as_ref().is_some_and(Run::is_active) {
        of_contact(facts, &mut add);
    }
    if let Some(power) = node.power_state {
        add(None, format!("the power state that was read last: {}", power.as_str()));
    }
    all.sort_by_key(|tried| std::cmp::Reverse(tried.at));
    all
}

fn has_failed(node: &Node) -> bool {
    node.provision_state.phase() == Phase::Failed || node.provision_state == ProvisionState::Enroll
}

fn of_run(run: &Run, add: &mut impl FnMut(Option<Timestamp>, String)) {
    let label = |index: usize| run.plan.as_ref().and_then(|plan| plan.get(index)).map(PlannedStep::label);
    if let Some(result) = run.results.last() {
        let label = label(result.index).unwrap_or_default();
        let StepResult { at, error, .. } = result;
        let text = match error {
            None => format!("step {label} succeeded"),
            // The whole text is the last error of the node.
            Some(_) => format!("step {label} failed"),
        };
        add(Some(*at), text);
    }
    let current = run.current().map(PlannedStep::label).unwrap_or_default();
    match &run.cursor {
        Cursor::Issued { at, accepted: false, .. } => {
            add(Some(*at), format!("step {current} was stored for the agent"))
        }
        Cursor::Issued { at, .. } => add(Some(*at), format!("the agent took step {current}")),
        Cursor::OutOfBand { at, .. } => add(Some(*at), format!("step {current} began")),
        Cursor::AwaitHello { since, .. } => {
            add(Some(*since), "the node was powered on into its disk".to_owned())
        }
        _ => {}
    }
    if run.interruptions > 0 {
        add(None, format!("the run was interrupted and went on: {} times", run.interruptions));
    }
    match &run.logs {
        Some(Logs::Kept(file)) => add(None, format!("the logs of the ramdisk are kept in {file}")),
        Some(Logs::Missing(why)) => {
            add(None, format!("the logs of the ramdisk could not be collected: {why}"))
        }
        Some(Logs::Wanted) | None => {}
    }
    add(Some(run.started_at), format!("the run {} began", run.kind.as_str()));
}

fn of_contact(facts: &Facts, add: &mut impl FnMut(Option<Timestamp>, String)) {
    let contact = facts.contact;
    if let Some(at) = facts.node.reset_at {
        add(Some(at), "the node was reset".to_owned());
    }
    if let Some(at) = contact.last_heartbeat_at {
        add(Some(at), "the agent's last heartbeat".to_owned());
    } else if let Some(at) = contact.token_at {
        add(Some(at), "an agent asked for the node, and has sent no heartbeat".to_owned());
    } else if let Some(boot) = &contact.boot {
        let text = match boot.fetched_from {
            Some(address) => {
                format!("the boot script was fetched from {address}; no agent has asked for the node")
            }
            None => "no client has fetched the boot script".to_owned(),
        };
        add(None, text);
    }
    if let Some(rival) = &contact.rival {
        let from =
            rival.address.map_or_else(|| "an unknown address".to_owned(), |address| address.to_string());
        let what = if rival.fetched {
            "the boot script was fetched again"
        } else {
            "another agent asked for the node"
        };
        add(Some(rival.at), format!("{what}, from {from}"));
    }
}
