//! What a step saved comes back to the same step of the same run after an interruption, and to nothing else.

use crate::situation::{NOW, Scripted, heard, issued, node, recorded, snapshot};
use agent_protocol::command::{CHECKPOINT_MAX, CommandStatus, Status};
use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::decision::{Action, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::agent::AgentKind;
use model::run::{Cursor, Run};
use model::{Contact, Node, ProvisionState, RunKind};
use room::command;
use serde_json::{Value, json};

fn status(command_status: Status, checkpoint: Option<Value>) -> CommandStatus {
    CommandStatus { checkpoint, ..command("c0", command_status) }
}

/// The node after its agent, asked for the command, answered this.
fn answered(node: Node, status: CommandStatus) -> Node {
    let action = Action::AskCommand { command_id: "c0".into() };
    let seen = snapshot(node, heard("boot-1"), NOW);
    apply_outcome(&seen, &action, Outcome::Command(status), &Settings::default()).node
}

/// A node whose second step saved something.
fn saved() -> Node {
    let node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
    answered(node, status(Status::Running, Some(json!({"at": 5}))))
}

/// What the agent is given with the command that the node has issued.
async fn given(node: &Node, contact: &Contact) -> Value {
    let agent = Scripted::with(&[], &status(Status::Running, None));
    let client = AgentClient::over(agent.clone());
    let step = node.run.as_ref().unwrap().current().unwrap().clone();
    let outcome = client.send_step(node, contact, "c1", RunKind::AutomatedClean, &step).await;
    assert!(matches!(outcome, Outcome::Command(_)), "{outcome:?}");
    let asked = agent.sent().pop().unwrap();
    assert_eq!(asked["name"], "clean.execute_clean_step");
    asked["params"].get("anneal").cloned().unwrap_or_default()
}

/// Only our agent knows of epochs.
#[tokio::test]
async fn a_command_to_our_agent_carries_the_epoch_of_the_lease() {
    let node = saved();
    let step = node.run.as_ref().unwrap().current().unwrap().clone();
    let ours = heard("boot-1");
    let theirs = Contact { agent: Some(AgentKind::Ipa), ..ours.clone() };
    for (contact, epoch) in [(ours, json!(7)), (theirs, Value::Null)] {
        let agent = Scripted::with(&[], &status(Status::Running, None));
        let client = AgentClient::over(agent.clone()).under(7);
        client.send_step(&node, &contact, "c1", RunKind::AutomatedClean, &step).await;
        assert_eq!(agent.sent().pop().unwrap()["anneal_epoch"], epoch);
        client.cancel(&contact, "c1").await;
        assert_eq!(agent.sent().pop().unwrap()["anneal_epoch"], epoch);
    }
}

fn seen(node: Node, boot: &str) -> Snapshot {
    snapshot(node, heard(boot), NOW)
}

/// Through the reboot to the same step, issued again.
fn after_a_reboot(node: Node) -> Node {
    let mut node = recorded(decide(&seen(node, "boot-2"), &Settings::default()));
    assert_eq!(node.run.as_ref().unwrap().cursor, Cursor::LearnSteps);
    node.run.as_mut().unwrap().cursor = Cursor::NextStep;
    node.run.as_mut().unwrap().results = vec![
        serde_json::from_value(
            json!({"index": 0, "command_id": "before", "at": NOW, "result": null, "error": null}),
        )
        .unwrap(),
    ];
    node.next_wake_at = Some(NOW);
    recorded(decide(&seen(node, "boot-2"), &Settings::default()))
}

#[tokio::test]
async fn the_same_step_of_the_same_run_gets_it_back_after_a_reboot_from_our_agent_alone() {
    let node = saved();
    // A poll of a step that reports none keeps it.
    let node = answered(node, status(Status::Running, None));
    let again = after_a_reboot(node);
    let Cursor::Issued { command_id, .. } = &again.run.as_ref().unwrap().cursor else { panic!("not issued") };
    assert!(command_id.ends_with("-1-0-1"), "{command_id}: another command, that of the second try");
    assert_eq!(given(&again, &heard("boot-2")).await, json!({"checkpoint": {"at": 5}}));
    let foreign = Contact { agent: Some(AgentKind::Ipa), ..heard("boot-2") };
    assert_eq!(
        given(&again, &foreign).await,
        Value::Null,
        "ironic-python-agent refuses what it does not know"
    );
}

/// The agent's step failed, unless it runs again after a reboot with this.
fn asks_for_a_reboot(checkpoint: &Value) -> CommandStatus {
    let mut failed = room::failed("c0", "CleaningError", "the TPM is not cleared");
    failed.command_result = Some(json!({"clean_result": null, "anneal": {"after_reboot": checkpoint}}));
    failed
}

#[tokio::test]
async fn a_step_that_asks_for_a_reboot_runs_again_after_it_with_what_it_left() {
    let left = json!({"asked": "5"});
    let node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
    let asked = answered(node.clone(), asks_for_a_reboot(&left));
    let run = asked.run.as_ref().unwrap();
    assert_eq!((&run.cursor, run.index, run.interruptions), (&Cursor::PowerOff, Some(1), 1));
    assert!(run.results.is_empty(), "it has not ended: {:?}", run.results);

    let mut rebooted = asked;
    rebooted.run.as_mut().unwrap().cursor = issued("boot-1", true);
    assert_eq!(given(&rebooted, &heard("boot-2")).await, json!({"checkpoint": left}));
    // One that always asks is given up.
    for _ in 0..Settings::default().max_interruptions {
        rebooted = answered(rebooted, asks_for_a_reboot(&left));
        if let Some(run) = rebooted.run.as_mut() {
            run.cursor = issued("boot-1", true);
        }
    }
    assert_eq!(rebooted.provision_state, ProvisionState::CleanFail);
    let error = rebooted.last_error.unwrap();
    assert!(error.contains("asked for a reboot (the TPM is not cleared)"), "{error}");
}

#[test]
fn no_step_that_may_not_run_again_or_is_to_stop_gets_a_reboot() {
    let failed = |change: fn(&mut Run), left: &Value| {
        let mut node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
        change(node.run.as_mut().unwrap());
        answered(node, asks_for_a_reboot(left)).provision_state
    };
    let left = json!({"asked": "5"});
    assert_eq!(failed(|_| {}, &left), ProvisionState::Cleaning);
    let not_idempotent = |run: &mut Run| run.plan.as_mut().unwrap()[1].step.idempotent = false;
    assert_eq!(failed(not_idempotent, &left), ProvisionState::CleanFail);
    assert_eq!(failed(|run| run.abort = true, &left), ProvisionState::CleanFail);
    assert_eq!(failed(|run| run.hung = Some("no progress".into()), &left), ProvisionState::CleanFail);
    assert_eq!(failed(|_| {}, &json!("x".repeat(CHECKPOINT_MAX))), ProvisionState::CleanFail);
}

/// A success with which the agent asks for a reboot, without the catalogue saying so.
#[test]
fn a_reboot_that_the_result_asks_for_comes_before_the_next_step() {
    let rebooted = |result: Value| {
        let mut node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
        node.run.as_mut().unwrap().plan.as_mut().unwrap()[1].step.step = "verify_firmware".into();
        let ended = CommandStatus { command_result: Some(result), ..command("c0", Status::Succeeded) };
        answered(node, ended).run.unwrap().cursor
    };
    assert_eq!(
        rebooted(json!({"clean_result": null, "anneal": {"reboot_requested": true}})),
        Cursor::PowerOff
    );
    assert_eq!(rebooted(json!({"clean_result": null})), Cursor::NextStep);
}

#[tokio::test]
async fn no_other_step_run_or_plan_gets_it() {
    let agent = heard("boot-1");
    let mut other = saved();
    other.run.as_mut().unwrap().index = Some(0);
    assert_eq!(given(&other, &agent).await, Value::Null, "another step");
    let mut arguments = saved();
    arguments.run.as_mut().unwrap().plan.as_mut().unwrap()[1].given.insert("level".into(), "purge".into());
    assert_eq!(given(&arguments, &agent).await, Value::Null, "other arguments");
    let mut renamed = saved();
    renamed.run.as_mut().unwrap().plan.as_mut().unwrap()[1].step.step = "erase_devices_express".into();
    assert_eq!(given(&renamed, &agent).await, Value::Null, "another plan");
    let mut fresh = saved();
    let before = fresh.run.take().unwrap();
    fresh.run =
        Some(Run { plan: before.plan, index: before.index, ..Run::new(RunKind::AutomatedClean, NOW) });
    assert_eq!(given(&fresh, &agent).await, Value::Null, "another run");
    let ended = answered(saved(), status(Status::Succeeded, None));
    assert_eq!(ended.run.unwrap().checkpoint, None, "a step that has ended");
    let changed = answered(saved(), status(Status::VersionMismatch, None));
    assert_eq!(changed.run.unwrap().checkpoint, None, "other hardware managers");
}

#[test]
fn one_that_is_too_large_is_not_stored() {
    let long = json!("x".repeat(CHECKPOINT_MAX));
    let node = answered(saved(), status(Status::Running, Some(long)));
    assert_eq!(node.run.unwrap().checkpoint.unwrap().data, json!({"at": 5}));
    let decided = decide(&seen(saved(), "boot-2"), &Settings::default());
    let Decision::Record(change) = decided else { panic!("{decided:?}") };
    assert!(
        change.events.iter().any(|event| event.text.contains("goes on from its checkpoint")),
        "{:?}",
        change.events
    );
}

#[test]
fn interruptions_count_only_while_the_step_gets_no_further() {
    let settings = Settings { max_interruptions: 1, ..Settings::default() };
    let mut node = saved();
    let interrupted = |mut node: Node, reached: Option<u64>| {
        let cursor = issued("boot-1", true);
        node.run.as_mut().unwrap().cursor = cursor;
        node.provision_state = ProvisionState::CleanWait;
        if let Some(reached) = reached {
            node = answered(node, status(Status::Running, Some(json!({"reached": reached}))));
        }
        recorded(decide(&seen(node, "boot-2"), &settings))
    };
    for reached in [10, 20, 30] {
        node = interrupted(node, Some(reached));
        assert_eq!(node.run.as_ref().unwrap().fruitless, 0, "{reached}");
    }
    // Another method begins again at 0 and gets as far as the one before: that is no progress.
    node = interrupted(node, Some(30));
    let run = node.run.as_ref().unwrap();
    assert_eq!((run.interruptions, run.fruitless, run.reached), (4, 1, 30));
    node = interrupted(node, Some(31));
    assert_eq!(node.run.as_ref().unwrap().fruitless, 0);
    node = interrupted(node, None);
    assert_eq!(node.run.as_ref().unwrap().cursor, Cursor::LearnSteps);
    node = interrupted(node, Some(5));
    assert_eq!(node.provision_state, ProvisionState::CleanFail);
    assert!(node.last_error.unwrap().contains("(interruption 7)"));
}
