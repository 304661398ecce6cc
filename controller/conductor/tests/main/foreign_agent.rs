//! What is said to an agent that chooses its own command ids, as ironic-python-agent does.

use crate::situation::{NOW, Scripted, at, ipa, node, snapshot};
use agent_protocol::command::{CommandStatus, Status};
use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::decision::{Decision, Outcome};
use conductor::stages::decide;
use model::agent::SecondAgent;
use model::run::Cursor;
use model::{Contact, Node, ProvisionState, RunKind, Timestamp};
use room::command;

fn status(id: &str, name: &str, status: Status) -> CommandStatus {
    CommandStatus { command_name: name.into(), ..command(id, status) }
}

/// A node whose step was written down at this time.
fn issued(at: Timestamp, accepted: bool, idempotent: bool) -> Node {
    let command_id = "c".into();
    let cursor = Cursor::Issued { command_id, at, boot_id: None, process_id: None, accepted };
    let mut node = node(ProvisionState::CleanWait, cursor, 0);
    node.run.as_mut().unwrap().plan.as_mut().unwrap()[0].step.idempotent = idempotent;
    node
}

/// The id of the command that the step is taken to be, and whether it was sent.
async fn sent(list: &[CommandStatus]) -> (String, bool) {
    let agent = Scripted::with(list, &status("fresh", "execute_clean_step", Status::Running));
    let node = issued(NOW, false, true);
    let step = node.run.as_ref().unwrap().current().unwrap().clone();
    let client = AgentClient::over(agent.clone());
    let outcome = client.send_step(&node, &ipa(), "ours", RunKind::AutomatedClean, &step).await;
    let Outcome::Command(status) = outcome else { panic!("{outcome:?}") };
    (status.id, agent.sent().len() == 1)
}

/// Found by `cargo xtask soak --seed 50` of its time: the erase of before was taken for the one that had to follow.
#[tokio::test]
async fn a_success_of_a_plan_that_was_given_up_is_not_taken_for_the_step() {
    let (step, steps) = ("execute_clean_step", "get_clean_steps");
    let before = status("before", step, Status::Succeeded);
    let refused = status("refused", step, Status::VersionMismatch);
    let asked = status("asked", steps, Status::Succeeded);
    assert_eq!(sent(&[before.clone(), refused.clone(), asked.clone()]).await, ("fresh".into(), true));
    // One whose answer was lost after that is ours.
    let lost = status("lost", step, Status::Running);
    assert_eq!(sent(&[before, refused, asked, lost]).await, ("lost".into(), false));
}

/// Found by `cargo xtask soak --seed 259` of its time: the step, which did not say that it may be repeated, had run on
/// the agent of before, whose answer was lost.
#[test]
fn a_step_that_was_written_down_for_another_agent_is_not_sent_to_this_one() {
    let decided = |token_at: u64, accepted: bool| {
        let contact = Contact { token_at: Some(at(token_at)), last_heartbeat_at: Some(at(200)), ..ipa() };
        decide(&snapshot(issued(at(100), accepted, false), contact, at(200)), &Settings::default())
    };
    for accepted in [false, true] {
        let Decision::Record(change) = decided(150, accepted) else {
            panic!("it goes on with another agent")
        };
        assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
        assert!(change.node.last_error.unwrap().contains("another agent has the token"));
        assert!(matches!(decided(50, accepted), Decision::Act(_)));
    }
}

/// It asks once, gets no token while one is out, and stops permanently: no agent would come back. Found with the real one.
#[test]
fn a_step_whose_agent_was_started_anew_fails_unless_it_may_be_repeated() {
    let decided = |idempotent: bool, asked_at: u64| {
        let mut node = issued(NOW, true, idempotent);
        node.run.as_mut().unwrap().attempts = 2;
        let contact = Contact { rival: Some(SecondAgent { at: at(asked_at), boot_id: None }), ..ipa() };
        decide(&snapshot(node, contact, at(120)), &Settings::default())
    };
    let Decision::Record(change) = decided(false, 80) else { panic!("it waits") };
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
    let text = change.node.last_error.unwrap();
    assert!(text.contains("another asks for its token") && text.contains("may be repeated"), "{text}");
    // Its own question, repeated by the network, comes soon after it was heard.
    assert!(matches!(decided(false, 10), Decision::Act(_)));
    // With one that may be repeated the next to ask is given a token, and the step.
    let Decision::Record(change) = decided(true, 80) else { panic!("it waits") };
    assert!(change.forget_agent && change.node.provision_state == ProvisionState::CleanWait);
}
