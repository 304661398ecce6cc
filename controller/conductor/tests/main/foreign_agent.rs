//! What is said to an agent that chooses its own command ids, as ironic-python-agent does.

use agent_protocol::command::{CommandStatus, Status};
use async_trait::async_trait;
use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::agent_transport::{AgentCall, AgentTransport};
use conductor::decision::{Decision, Outcome, Snapshot};
use conductor::stages::decide;
use model::agent::{AgentKind, SecondAgent};
use model::run::{Cursor, Run};
use model::{Contact, Node, PlannedStep, ProvisionState, RunKind, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// An agent with a list of commands; a new one runs.
struct Foreign {
    list: Value,
    posts: Mutex<Vec<Value>>,
}

#[async_trait]
impl AgentTransport for Foreign {
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String> {
        let answer = match call.body {
            None => self.list.clone(),
            Some(body) => {
                self.posts.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                json!(status("fresh", "execute_clean_step", Status::Running))
            }
        };
        Ok((StatusCode::OK, answer.to_string().into_bytes()))
    }
}

fn status(id: &str, name: &str, status: Status) -> CommandStatus {
    CommandStatus {
        id: id.into(),
        command_name: name.into(),
        command_status: status,
        command_error: None,
        command_result: None,
        progress: None,
        checkpoint: None,
    }
}

/// The id of the command that the step is taken to be, and whether it was sent.
async fn sent(list: &[CommandStatus]) -> (String, bool) {
    let agent = Arc::new(Foreign { list: json!({ "commands": list }), posts: Mutex::default() });
    let step = json!({"interface": "deploy", "step": "erase_devices", "priority": 10});
    let step: PlannedStep = serde_json::from_value(step).unwrap();
    let contact = Contact {
        token: Some("token".into()),
        callback_url: Some("https://192.0.2.1:9999".into()),
        agent: Some(AgentKind::Ipa),
        ..Contact::default()
    };
    let node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    let client = AgentClient::over(agent.clone());
    let outcome = client.send_step(&node, &contact, "ours", RunKind::AutomatedClean, &step).await;
    let Outcome::Command(status) = outcome else { panic!("{outcome:?}") };
    let sent = agent.posts.lock().unwrap().len() == 1;
    (status.id, sent)
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
    let step = json!({"interface": "deploy", "step": "erase_devices", "priority": 10});
    let step: PlannedStep = serde_json::from_value(step).unwrap();
    let decided = |token_at: i64, accepted: bool| {
        let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
        node.enter(ProvisionState::CleanWait, None, Timestamp(0));
        let mut run = Run::new(RunKind::AutomatedClean, Timestamp(0));
        run.plan = Some(vec![step.clone()]);
        run.index = Some(0);
        run.cursor = Cursor::Issued {
            command_id: "c".into(),
            at: Timestamp(100),
            boot_id: None,
            process_id: None,
            accepted,
        };
        node.run = Some(run);
        let contact = Contact {
            token: Some("token".into()),
            token_at: Some(Timestamp(token_at)),
            callback_url: Some("https://192.0.2.1:9999".into()),
            last_heartbeat_at: Some(Timestamp(200)),
            agent: Some(AgentKind::Ipa),
            ..Contact::default()
        };
        let (abilities, now) = (Err("not asked".into()), Timestamp(200));
        let listening_since = Timestamp(0);
        let snapshot = Snapshot::of(node, contact, abilities, listening_since, now);
        decide(&snapshot, &Settings::default())
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
    let second = 1_000_000;
    let decided = |idempotent: bool, asked_at: i64| {
        let step =
            json!({"interface": "deploy", "step": "erase_devices", "priority": 10, "idempotent": idempotent});
        let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
        node.enter(ProvisionState::CleanWait, None, Timestamp(0));
        let mut run = Run::new(RunKind::AutomatedClean, Timestamp(0));
        run.plan = Some(vec![serde_json::from_value(step).unwrap()]);
        (run.index, run.attempts) = (Some(0), 2);
        let (command_id, at) = ("c".into(), Timestamp(0));
        run.cursor = Cursor::Issued { command_id, at, boot_id: None, process_id: None, accepted: true };
        node.run = Some(run);
        let contact = Contact {
            token: Some("token".into()),
            token_at: Some(Timestamp(0)),
            callback_url: Some("https://192.0.2.1:9999".into()),
            last_heartbeat_at: Some(Timestamp(0)),
            rival: Some(SecondAgent { at: Timestamp(asked_at * second), boot_id: None }),
            agent: Some(AgentKind::Ipa),
            ..Contact::default()
        };
        let (listening_since, now) = (Timestamp(0), Timestamp(120 * second));
        let abilities = Err("not asked".into());
        let snapshot = Snapshot::of(node, contact, abilities, listening_since, now);
        decide(&snapshot, &Settings::default())
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
