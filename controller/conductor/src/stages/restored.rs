//! A node whose row was put back from a backup, which is older than the node. What was under way then is given up, and a node whose
//! power is not as the row says goes into maintenance: nothing is done with either before an operator says so.

use super::panicked::give_up;
use crate::decision::{Change, Snapshot};
use crate::settings::Settings;
use model::{Node, PowerState, ProvisionState};

/// What becomes of the node of this snapshot, whose BMC reports now that its power is `read`, or nothing (`Ok(None)`); none: nothing
/// speaks against its row.
///
/// An agent is not asked: that it still runs the command of the row does not say that it has run no other since.
pub fn after_restore(
    snapshot: &Snapshot,
    settings: &Settings,
    read: Result<Option<PowerState>, String>,
) -> Option<Change> {
    let why = under_way(&snapshot.node).or_else(|| disagreement(&snapshot.node, read))?;
    let text = format!("the database was restored from a backup: {why}");
    let mut change = give_up(snapshot, settings, &text);
    let node = &mut change.node;
    if let Some(run) = &mut node.run {
        (run.logs, run.ramdisk_kept) = (None, None);
    }
    (node.wait, node.next_wake_at, node.target_power_state) = (None, None, None);
    (node.maintenance, node.maintenance_reason) = (true, Some(text));
    Some(change)
}

/// What was under way when the backup was made.
fn under_way(node: &Node) -> Option<String> {
    let state = node.provision_state;
    if !state.phase().is_at_rest() {
        return Some(format!(
            "the node was in state {:?} then, and what was done since is not known",
            state.as_str()
        ));
    }
    if let Some(target) = node.target_power_state {
        return Some(format!("{:?} was asked for then, and may have been done", target.as_str()));
    }
    let kept = node.run.as_ref().is_some_and(|run| run.ramdisk_kept.is_some() || run.is_active());
    kept.then(|| "a ramdisk ran on the node then".to_owned())
}

/// How its power is not what the row says. Nodes that are not managed yet have none.
fn disagreement(node: &Node, read: Result<Option<PowerState>, String>) -> Option<String> {
    let shown = |state: Option<PowerState>| state.map_or("unknown", PowerState::as_str);
    match read {
        _ if node.provision_state == ProvisionState::Enroll => None,
        Ok(read) if read == node.power_state => None,
        Ok(read) => {
            Some(format!("its power was {:?} then and is {:?} now", shown(node.power_state), shown(read)))
        }
        Err(error) => Some(format!("its power cannot be compared: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Decision;
    use crate::stages::decide;
    use model::fast_track::KeptRamdisk;
    use model::run::Logs;
    use model::{Contact, Cursor, PowerTarget, Run, RunKind, Timestamp};
    use std::time::Duration;
    use uuid::Uuid;

    const ON: PowerState = PowerState::On;
    const OFF: PowerState = PowerState::Off;
    const NOW: Timestamp = Timestamp(9_000_000);

    fn node(state: ProvisionState) -> Node {
        let node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
        Node { provision_state: state, power_state: Some(OFF), ..node }
    }

    fn running(state: ProvisionState, kind: RunKind) -> Node {
        let run = Run { cursor: Cursor::AwaitAgent, ..Run::new(kind, Timestamp(0)) };
        Node { run: Some(run), next_wake_at: Some(Timestamp(1)), ..node(state) }
    }

    fn snapshot(node: Node, now: Timestamp) -> Snapshot {
        Snapshot::of(node, Contact::default(), Err(String::new()), Timestamp(0), now)
    }

    fn after(node: Node, read: Result<Option<PowerState>, String>) -> Option<Change> {
        after_restore(&snapshot(node, NOW), &Settings::default(), read)
    }

    /// In no time anything is done with the node but to read.
    fn is_left_alone(node: &Node) {
        let later = NOW.after(Duration::from_secs(100 * 24 * 3600));
        let decision = decide(&snapshot(node.clone(), later), &Settings::default());
        assert!(matches!(decision, Decision::Sleep { .. }), "{decision:?}");
    }

    /// Whatever was under way, and however power is now.
    #[test]
    fn what_was_under_way_is_given_up_and_nothing_is_done() {
        use ProvisionState as P;
        let states = P::ALL.into_iter().filter(|state| !state.phase().is_at_rest());
        let mut nodes: Vec<Node> = states
            .map(|state| match state {
                P::Deploying | P::DeployWait | P::DeployHold => running(state, RunKind::Deploy),
                P::Inspecting | P::InspectWait => running(state, RunKind::Inspect),
                P::Servicing | P::ServiceWait | P::ServiceHold => running(state, RunKind::Service),
                P::Verifying | P::Adopting => node(state),
                _ => running(state, RunKind::AutomatedClean),
            })
            .collect();
        nodes.push(Node { target_power_state: Some(PowerTarget::Off), ..node(P::Active) });
        let mut kept = running(P::Available, RunKind::AutomatedClean);
        if let Some(run) = &mut kept.run {
            (run.cursor, run.ramdisk_kept) = (Cursor::Done, Some(KeptRamdisk::Since(Timestamp(0))));
        }
        nodes.push(kept);
        for before in nodes {
            for read in [Ok(Some(OFF)), Ok(Some(ON)), Err("no route".to_owned())] {
                let change = after(before.clone(), read).unwrap();
                let node = &change.node;
                assert!(node.provision_state.phase().is_at_rest(), "{:?}", node.provision_state);
                assert!(node.maintenance && node.maintenance_reason.as_ref().unwrap().contains("backup"));
                assert!(!change.events.is_empty() && node.target_power_state.is_none());
                assert!(node.run.as_ref().is_none_or(|run| run.logs.is_none() && run.ramdisk_kept.is_none()));
                is_left_alone(node);
            }
        }
    }

    #[test]
    fn a_node_at_rest_is_compared_by_its_power() {
        use ProvisionState as P;
        for state in [P::Available, P::Active, P::Manageable, P::CleanFail] {
            assert!(after(node(state), Ok(Some(OFF))).is_none(), "as it was");
            for (read, part) in [
                (Ok(Some(ON)), "was \"power off\" then and is \"power on\" now"),
                (Ok(None), "is \"unknown\" now"),
                (Err("no route".to_owned()), "no route"),
            ] {
                let change = after(node(state), read).unwrap();
                assert_eq!(change.node.provision_state, state);
                assert!(change.node.maintenance_reason.as_ref().unwrap().contains(part));
                is_left_alone(&change.node);
            }
        }
        assert!(after(node(P::Enroll), Err("no address".to_owned())).is_none(), "not managed yet");
    }

    /// Its agent would be asked for them.
    #[test]
    fn logs_are_not_collected_any_more() {
        let mut failed = running(ProvisionState::CleanFail, RunKind::AutomatedClean);
        if let Some(run) = &mut failed.run {
            (run.cursor, run.logs) = (Cursor::Done, Some(Logs::Wanted));
        }
        is_left_alone(&after(failed, Ok(Some(ON))).unwrap().node);
    }
}
