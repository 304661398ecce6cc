//! Decisions in situations that the simulated machine room does not reach by itself: states that only a defect
//! or a damaged store could leave behind, and agents that say nothing.

use conductor::Settings;
use conductor::decision::{Decision, Deed, Outcome, Snapshot};
use conductor::states::{absorb, decide};
use model::abilities::{Abilities, Inspect, Rescue};
use model::agent::AgentState;
use model::plan::automated_plan;
use model::run::{Cursor, Run};
use model::{
    CatalogueStep, Contact, Node, PowerState, PowerTarget, ProvisionState, RunKind, StepResult, Timestamp,
};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

fn catalogue_step(name: &str, priority: i64) -> CatalogueStep {
    serde_json::from_value(json!({
        "interface": "deploy", "step": name, "priority": priority, "idempotent": true, "abortable": true,
    }))
    .unwrap()
}

/// A node in `state` whose run of two erase steps stands at `cursor`, at the step of this index.
fn node(state: ProvisionState, cursor: Cursor, index: usize) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", NOW);
    node.enter(state, Some(ProvisionState::Available), NOW);
    let steps = [catalogue_step("erase_devices_metadata", 99), catalogue_step("erase_devices", 10)];
    let mut run = Run::new(RunKind::AutomatedClean, NOW);
    run.plan = Some(automated_plan(&steps));
    (run.index, run.cursor, run.booted) = (Some(index), cursor, true);
    node.run = Some(run);
    node
}

fn issued(boot_id: &str, accepted: bool) -> Cursor {
    let (boot_id, process_id) = (Some(boot_id.into()), Some("p".into()));
    Cursor::Issued { command_id: "c0".into(), at: NOW, boot_id, process_id, accepted }
}

/// An agent of this boot that was last heard now.
fn heard(boot_id: &str) -> Contact {
    let state = AgentState {
        boot_id: boot_id.into(),
        process_id: "p".into(),
        running: None,
        ended: Vec::new(),
        progress: None,
    };
    Contact {
        token: Some("t".into()),
        callback_url: Some("https://192.0.2.1:9999".into()),
        last_heartbeat_at: Some(NOW),
        state: Some(state),
        ..Contact::default()
    }
}

fn snapshot(node: Node, contact: Contact, now: Timestamp) -> Snapshot {
    let abilities = Abilities {
        agent: true,
        inspect: Inspect::None,
        rescue: Rescue::None,
        steps: std::collections::BTreeMap::new(),
    };
    let (abilities, listening_since) = (Ok(abilities), NOW);
    Snapshot { node, contact, abilities, catalogue: None, inventory: None, listening_since, now }
}

fn recorded(decision: Decision) -> Node {
    match decision {
        Decision::Record(change) => change.node,
        other => panic!("{other:?} stores nothing"),
    }
}

#[test]
fn cleaning_does_not_end_well_without_a_stored_success_of_every_step() {
    let off = |results: &[usize]| {
        let mut node = node(ProvisionState::Cleaning, Cursor::TearDown, 1);
        let success = |index: &usize| StepResult {
            index: *index,
            command_id: format!("c{index}"),
            at: NOW,
            result: json!({}),
            error: None,
        };
        node.run.as_mut().unwrap().results = results.iter().map(success).collect();
        let snapshot = snapshot(node, Contact::default(), NOW);
        let deed = Deed::SetPower(PowerTarget::Off);
        absorb(&snapshot, &deed, Outcome::Power(PowerState::Off), &Settings::default()).node
    };
    for results in [&[][..], &[0], &[1], &[1, 1]] {
        let node = off(results);
        assert_eq!(node.provision_state, ProvisionState::CleanFail, "{results:?}");
        assert!(node.maintenance && node.last_error.unwrap().contains("no stored success"));
    }
    assert_eq!(off(&[0, 1]).provision_state, ProvisionState::Available);
}

#[test]
fn a_command_of_an_earlier_boot_is_not_sent_to_the_agent_of_this_one() {
    let settings = Settings::default();
    for accepted in [false, true] {
        let at = |boot_id: &str| {
            let node = node(ProvisionState::CleanWait, issued(boot_id, accepted), 1);
            decide(&snapshot(node, heard("boot-2"), NOW), &settings)
        };
        let run = recorded(at("boot-1")).run.unwrap();
        assert_eq!((run.cursor, run.interruptions), (Cursor::LearnSteps, 1), "accepted: {accepted}");
        assert!(!matches!(at("boot-2"), Decision::Record(_)), "the same boot goes on");
    }
}

#[test]
fn an_agent_that_falls_silent_fails_the_step() {
    let settings = Settings::default();
    let after = |seconds: u64| {
        let node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
        let now = NOW.after(Duration::from_secs(seconds));
        decide(&snapshot(node, heard("boot-1"), now), &settings)
    };
    assert!(!matches!(after(settings.agent_silence_s - 1), Decision::Record(_)));
    let node = recorded(after(settings.agent_silence_s));
    assert_eq!((node.provision_state, node.maintenance), (ProvisionState::CleanFail, true));
    let error = node.last_error.unwrap();
    assert!(error.contains("deploy.erase_devices ") && error.contains("not been heard for 300 s"), "{error}");
}
