//! The controller gives up what it was about to do with a node: the passes over it panicked too often in a row, or its row is of
//! a backup.

use super::fail;
use super::transition::pass;
use super::view::View;
use crate::decision::{Change, Snapshot};
use crate::settings::Settings;
use model::ProvisionState;
use model::history::{EventKind, Severity};
use model::provision::Verb;
use model::request::event;
use model::run::Logs;
use std::time::Duration;

/// A run fails as any run does. Without one, a node that is verified or adopted fails to be; a node at rest loses what
/// was still to be done for it and goes into maintenance, as Ironic does with a node whose power it cannot read.
pub fn give_up(snapshot: &Snapshot, settings: &Settings, text: &str) -> Change {
    let text = text.to_owned();
    let node = &snapshot.node;
    match node.provision_state {
        ProvisionState::Verifying | ProvisionState::Adopting => {
            let mut change = Change::of(node.clone());
            (change.node.wait, change.node.next_wake_at) = (None, None);
            pass(&mut change, Verb::Fail, &text, snapshot.now);
            change.events.iter_mut().for_each(|event| event.severity = Severity::Error);
            change.node.last_error = Some(text);
            change
        }
        state if state.phase().has_run() => match node.run.as_ref().filter(|run| run.is_active()) {
            Some(run) => fail::failed(&View { snapshot, settings, run }, &text),
            None => fail::without_run(snapshot),
        },
        _ => at_rest(snapshot, settings, text),
    }
}

fn at_rest(snapshot: &Snapshot, settings: &Settings, text: String) -> Change {
    let now = snapshot.now;
    let mut change = Change::of(snapshot.node.clone());
    let node = &mut change.node;
    node.wait = None;
    node.next_wake_at = match settings.power_sync_s {
        0 => None,
        pause => Some(now.after(Duration::from_secs(pause))),
    };
    // The logs of a ramdisk decide nothing: without them the node is as it was.
    if let Some(run) = node.run.as_mut().filter(|run| run.logs == Some(Logs::Wanted)) {
        run.logs = Some(Logs::Missing(text));
        return change;
    }
    let target = node.target_power_state.take();
    if target.is_none() && node.maintenance && node.maintenance_reason.as_ref() == Some(&text) {
        return change;
    }
    let text_of_event = match target {
        Some(target) => format!("Failed to change power state to '{}': {text}", target.as_str()),
        None => text.clone(),
    };
    change.events.push(event(EventKind::Monitoring, Severity::Error, text_of_event.clone(), now));
    node.last_error = Some(text_of_event);
    node.maintenance = true;
    node.maintenance_reason = Some(text);
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Node, PowerTarget, Run, RunKind, Timestamp};
    use uuid::Uuid;

    fn after(node: Node) -> Change {
        let snapshot =
            Snapshot::of(node, model::Contact::default(), Err(String::new()), Timestamp(0), Timestamp(1));
        give_up(&snapshot, &Settings::default(), "index out of bounds")
    }

    fn node(state: ProvisionState) -> Node {
        Node { provision_state: state, ..Node::enrolled(Uuid::from_u128(7), "fake-hardware", Timestamp(0)) }
    }

    #[test]
    fn a_node_that_is_verified_or_adopted_fails_to_be() {
        use ProvisionState::{AdoptFail, Adopting, Enroll, Verifying};
        for (state, failed) in [(Verifying, Enroll), (Adopting, AdoptFail)] {
            let change = after(node(state));
            assert_eq!(change.node.provision_state, failed);
            assert!(change.node.last_error.unwrap().contains("index out of bounds"));
            assert_eq!(change.events[0].severity, Severity::Error);
        }
    }

    #[test]
    fn power_that_a_user_asked_for_is_not_asked_for_again() {
        let target = Some(PowerTarget::Off);
        let change = after(Node { target_power_state: target, ..node(ProvisionState::Active) });
        assert_eq!(change.node.target_power_state, None);
        assert!(change.node.maintenance && change.node.provision_state == ProvisionState::Active);
        assert!(change.node.last_error.unwrap().contains("power off"));
    }

    #[test]
    fn logs_that_cannot_be_collected_change_nothing_else() {
        let run = Run { logs: Some(Logs::Wanted), ..Run::new(RunKind::AutomatedClean, Timestamp(0)) };
        let before = Node { run: Some(run), ..node(ProvisionState::CleanFail) };
        let change = after(before.clone());
        assert!(
            matches!(&change.node.run.unwrap().logs, Some(Logs::Missing(text)) if text.contains("index"))
        );
        assert!(!change.node.maintenance && change.node.last_error == before.last_error);
    }
}
