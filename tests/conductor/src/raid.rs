//! From a RAID configuration that is wanted, through an agent that knows nothing of Anneal, to what the node says of it.

use crate::situation::{NOW, Scripted, ipa, recorded, snapshot};
use agent_protocol::command::{CommandStatus, Status};
use agent_protocol::step::AdvertisedSteps;
use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::decision::{Action, Change, Decision, Outcome};
use conductor::stages::{apply_outcome, decide};
use model::run::{Cursor, Run};
use model::{Contact, Node, ProvisionState, RequestedStep, RunKind, StepKind};
use room::command;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

const KINDS: [(StepKind, RunKind, ProvisionState, ProvisionState); 3] = [
    (StepKind::Clean, RunKind::ManualClean, ProvisionState::CleanWait, ProvisionState::CleanFail),
    (StepKind::Deploy, RunKind::Deploy, ProvisionState::DeployWait, ProvisionState::DeployFail),
    (StepKind::Service, RunKind::Service, ProvisionState::ServiceWait, ProvisionState::ServiceFail),
];

fn of(kind: StepKind) -> (RunKind, ProvisionState, ProvisionState) {
    let (_, run, state, fails) = KINDS.into_iter().find(|(of, ..)| *of == kind).unwrap();
    (run, state, fails)
}

/// A node whose agent is about to be asked for its steps, for a run of one step.
fn node(kind: StepKind, step: &str, args: Value) -> Node {
    let (run, state, _) = of(kind);
    let mut node = Node::enrolled(Uuid::new_v4(), "redfish", NOW);
    node.enter(state, None, NOW);
    node.properties.insert("local_gb".into(), 1.into());
    let asked = json!({"interface": "raid", "step": step, "args": args, "priority": 150});
    let mut run = Run::new(run, NOW);
    run.requested = vec![serde_json::from_value::<RequestedStep>(asked).unwrap()];
    (run.cursor, run.booted) = (Cursor::LearnSteps, true);
    node.run = Some(run);
    node
}

fn target() -> Value {
    json!({"logical_disks": [
        {"raid_level": "1", "size_gb": 100, "is_root_volume": true},
        {"raid_level": "0", "size_gb": "MAX"},
    ]})
}

/// With a plan, of the steps that ironic-python-agent advertises.
fn planned(node: Node, kind: StepKind) -> Node {
    let step = |interface: &str, name: &str, more: Value| {
        let mut step =
            json!({"interface": interface, "step": name, "priority": 0, "reboot_requested": false});
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    };
    let apply = json!({"argsinfo": {
        "raid_config": {"description": "The RAID configuration to apply.", "required": true},
        "delete_existing": {"description": "Whether.", "required": false}}});
    let steps = json!({"GenericHardwareManager": [
        step("raid", "create_configuration", json!({})),
        step("raid", "delete_configuration", json!({})),
        step("raid", "apply_configuration", apply),
        step("deploy", "deploy", json!({"priority": 100})),
    ]});
    let advertised: AdvertisedSteps = serde_json::from_value(json!({
        "clean_steps": steps, "hardware_manager_version": {"generic_hardware_manager": "1.2"},
    }))
    .unwrap();
    let seen = snapshot(node, ipa(), NOW);
    let steps = Outcome::Steps(BTreeMap::from([(kind, advertised)]));
    let change = apply_outcome(&seen, &Action::AskSteps(kind), steps, &Settings::default());
    assert_eq!(change.node.last_error, None);
    change.node
}

/// The step is written down.
fn begun(node: Node) -> Node {
    recorded(decide(&snapshot(node, ipa(), NOW), &Settings::default()))
}

/// What the agent is sent.
async fn sent(node: &Node) -> Value {
    let Decision::Act(Action::SendStep { command_id, run, step }) =
        decide(&snapshot(node.clone(), ipa(), NOW), &Settings::default())
    else {
        panic!("the step is not sent: {:?}", node.last_error);
    };
    let agent = Scripted::with(&[], &command("its-own", Status::Running));
    let outcome = AgentClient::over(agent.clone()).send_step(node, &ipa(), &command_id, run, &step).await;
    assert!(matches!(outcome, Outcome::Command(_)), "{outcome:?}");
    agent.sent()[0]["params"].clone()
}

/// The step has ended well, and the agent reports `report` as its result.
fn ended(node: Node, kind: StepKind, report: Value) -> Change {
    let step = node.run.as_ref().unwrap().current().unwrap().step.step.clone();
    let result = json!({kind.result_field(): report, kind.step_field(): {"interface": "raid", "step": step}});
    let action = Action::AskCommand { command_id: "its-own".into() };
    let status = CommandStatus { command_result: Some(result), ..command("its-own", Status::Succeeded) };
    let outcome = Outcome::Command(status);
    apply_outcome(&snapshot(node, ipa(), NOW), &action, outcome, &Settings::default())
}

/// `create_configuration`: ironic-python-agent makes what the node's target says and reports that; which flags Ironic has
/// for it, it does not know.
#[tokio::test]
async fn the_target_reaches_the_agent_and_what_it_made_is_the_nodes() {
    let kind = StepKind::Clean;
    for (args, number) in [(json!({}), 2), (json!({"create_nonroot_volumes": false}), 1)] {
        let mut node = node(kind, "create_configuration", args);
        node.other.insert("target_raid_config".into(), target());
        let node = begun(planned(node, kind));
        let params = sent(&node).await;
        let wanted = json!({"logical_disks": target()["logical_disks"].as_array().unwrap()[..number]});
        assert_eq!(params["node"]["target_raid_config"], wanted);
        assert_eq!(params["node"]["driver_internal_info"]["target_raid_config"], wanted);
        assert_eq!(params["step"].get("args"), None, "it takes none: {}", params["step"]);

        let change = ended(node, kind, params["node"]["target_raid_config"].clone());
        let node = change.node;
        let mut expected = wanted.clone();
        // 2026-09-21T14:13:20Z, without a fraction of a second.
        expected["last_updated"] = "2026-09-21 14:13:20".into();
        assert_eq!(node.other["raid_config"], expected);
        assert_eq!(node.other["target_raid_config"], target());
        assert_eq!(Value::Object(node.properties), json!({"local_gb": 100, "capabilities": "raid_level:1"}));
        // In the write that ends the step.
        let run = node.run.unwrap();
        assert_eq!((run.results.len(), run.cursor), (1, Cursor::NextStep));
    }
}

#[tokio::test]
async fn an_argument_is_applied_in_deployment_and_service() {
    for kind in [StepKind::Deploy, StepKind::Service] {
        let args = json!({"raid_config": target(), "delete_existing": false});
        let node = begun(planned(node(kind, "apply_configuration", args.clone()), kind));
        let params = sent(&node).await;
        assert_eq!((&params["step"]["args"], &params["node"]["target_raid_config"]), (&args, &json!({})));
        let node = ended(node, kind, target()).node;
        assert_eq!(node.other["raid_config"]["logical_disks"], target()["logical_disks"]);
        assert_eq!(node.properties["local_gb"], 100);

        let bad = json!({"raid_config": {"logical_disks": [{"raid_level": "1"}]}});
        let failed = begun(planned(self::node(kind, "apply_configuration", bad), kind));
        assert_eq!(failed.provision_state, of(kind).2);
        let error = failed.last_error.unwrap();
        assert!(error.ends_with("RAID config validation error: 'size_gb' is a required property"), "{error}");
    }
}

/// Fails before anything is sent, with the step that is to blame.
#[test]
fn a_step_without_a_target_is_not_sent() {
    let kind = StepKind::Clean;
    let failed = begun(planned(node(kind, "create_configuration", json!({})), kind));
    assert_eq!((failed.provision_state, failed.maintenance), (ProvisionState::CleanFail, true));
    let error = failed.last_error.unwrap();
    let says = format!("Node {} has no target RAID configuration.", failed.uuid);
    assert!(error.contains("raid.create_configuration failed") && error.ends_with(&says), "{error}");
    assert_eq!(failed.clean_step.unwrap()["step"], "create_configuration");
    assert_eq!(failed.run.unwrap().results.len(), 1);
}

/// What Ironic calls an improper result. ironic-python-agent reports `{}` where it had nothing to make.
#[test]
fn a_success_that_does_not_report_what_was_made_fails_the_step_and_changes_nothing() {
    let kind = StepKind::Clean;
    for report in [
        json!({}),
        Value::Null,
        json!({"logical_disks": "two"}),
        json!({"logical_disks": [
        {"raid_level": "1", "size_gb": "huge", "is_root_volume": true}]}),
    ] {
        let mut node = node(kind, "create_configuration", json!({}));
        node.other.insert("target_raid_config".into(), target());
        node.other.insert("raid_config".into(), json!({"logical_disks": [], "last_updated": "before"}));
        let before = begun(planned(node, kind));
        let after = ended(before.clone(), kind, report.clone()).node;
        assert_eq!(after.provision_state, ProvisionState::CleanFail, "{report}");
        let error = after.last_error.unwrap();
        assert!(error.contains("Clean step raid.create_configuration failed"), "{error}");
        assert_eq!((&after.other, &after.properties), (&before.other, &before.properties), "{report}");
        assert!(after.run.unwrap().results[0].error.is_some());
    }
}

#[test]
fn what_was_deleted_is_the_nodes_no_more() {
    for kind in [StepKind::Clean, StepKind::Service] {
        let mut node = node(kind, "delete_configuration", json!({}));
        node.other.insert("raid_config".into(), target());
        node.properties.insert("root_device".into(), json!({"wwn": "0x1"}));
        let node = ended(begun(planned(node, kind)), kind, Value::Null).node;
        assert_eq!((node.other.get("raid_config"), node.properties.get("root_device")), (None, None));
        assert_eq!((node.properties["local_gb"].clone(), node.last_error), (json!(1), None));
    }
}

/// Steps of the controller's own report it without an agent's envelope.
#[test]
fn a_step_of_the_raid_interface_is_settled_likewise() {
    let step = json!({"interface": "raid", "step": "create_configuration", "priority": 0, "in_band": false,
        "given": {"raid_config": target()}});
    let mut node = node(StepKind::Clean, "create_configuration", json!({}));
    node.enter(ProvisionState::Cleaning, None, NOW);
    let run = node.run.as_mut().unwrap();
    run.plan = Some(vec![serde_json::from_value(step).unwrap()]);
    run.index = Some(0);
    run.cursor = Cursor::OutOfBand { command_id: "c".into(), at: NOW, polling: false };
    let seen = snapshot(node, Contact::default(), NOW);
    let action = Action::ReadPower;
    let change = apply_outcome(&seen, &action, Outcome::StepDone(target()), &Settings::default());
    assert_eq!(change.node.other["raid_config"]["logical_disks"], target()["logical_disks"]);
    let change = apply_outcome(&seen, &action, Outcome::StepDone(json!("done")), &Settings::default());
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
}
