//! The plan of an erase is asked of the agent in its own words, and each answer means something else.

use crate::situation::Scripted;
use agent_protocol::command::{CommandStatus, Status};
use conductor::agent_client::{AgentClient, PlanError};
use model::agent::AgentKind;
use model::{Contact, Node, Timestamp};
use reqwest::StatusCode;
use room::{command, failed};
use serde_json::{Value, json};
use uuid::Uuid;

async fn ask(answer: Result<(StatusCode, Value), String>) -> (Result<Value, PlanError>, Value) {
    let agent = Scripted::new(answer);
    let contact = Contact {
        token: Some("secret-token".into()),
        callback_url: Some("https://192.0.2.1:9999".into()),
        ..Contact::default()
    };
    let node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    let step = json!({"interface": "deploy", "step": "erase_devices", "args": {"level": "purge"}});
    let plan = AgentClient::over(agent.clone()).plan_erase(&node, &contact, &step).await;
    (plan, agent.sent().pop().unwrap_or_default())
}

fn status(status: Status, result: Option<Value>, error: Option<&str>) -> Value {
    let status = match error {
        Some(text) => failed("x", "PlanError", text),
        None => command("x", status),
    };
    json!(CommandStatus { command_result: result, ..status })
}

#[tokio::test]
async fn each_answer_of_the_agent_has_its_own_result() {
    let plan = json!({"refuses": false, "disks": []});
    let good = status(Status::Succeeded, Some(plan.clone()), None);
    let (answer, asked) = ask(Ok((StatusCode::OK, good))).await;
    assert_eq!(answer, Ok(plan));
    assert_eq!(
        (&asked["name"], &asked["params"]["step"]["args"]["level"]),
        (&json!("anneal.plan_erase"), &json!("purge"))
    );
    assert_eq!(asked["params"]["node"]["uuid"], json!(Uuid::nil()));
    assert_eq!(asked.get("anneal_command_id"), None, "no command of the conductor's is taken for it");
    assert_eq!(asked.get("anneal_epoch"), None, "the API has no lease");

    let refused = status(Status::Failed, None, Some("argument \"level\": no"));
    assert_eq!(
        ask(Ok((StatusCode::OK, refused))).await.0,
        Err(PlanError::Refused("argument \"level\": no".into()))
    );
    let busy = json!({"faultstring": "Agent is busy: executing command execute_clean_step"});
    assert!(
        matches!(ask(Ok((StatusCode::CONFLICT, busy))).await.0, Err(PlanError::Busy(text)) if text.contains("busy"))
    );
    let (gone, _) = ask(Err("connection refused".into())).await;
    let Err(PlanError::Unreachable(text)) = gone else { panic!("{gone:?}") };
    assert!(text.contains("connection refused") && !text.contains("secret-token"), "{text}");
}

/// The node's BMC and PSIDs as they are sent to the agent behind `contact` with this step.
async fn driver_info(contact: Contact, step: &str) -> Value {
    let plan = status(Status::Succeeded, Some(json!({})), None);
    let agent = Scripted::new(Ok((StatusCode::OK, plan)));
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    node.driver_info.insert("redfish_password".into(), "BMC".into());
    node.driver_info.insert("agent_opal_psids".into(), json!({"S1": "PSID"}));
    let step = json!({"interface": "deploy", "step": step});
    let contact = Contact { token: Some("token".into()), ..contact };
    AgentClient::over(agent.clone()).plan_erase(&node, &contact, &step).await.unwrap();
    agent.sent()[0]["params"]["node"]["driver_info"].take()
}

#[tokio::test]
async fn psids_go_to_our_agent_alone_encrypted_and_with_a_step_that_erases_by_them() {
    let url = |scheme: &str| Some(format!("{scheme}://192.0.2.1:9999"));
    let state = || {
        let json = json!({"boot_id": "b", "process_id": "p"});
        Some(AgentKind::Anneal(serde_json::from_value(json).unwrap()))
    };
    let ours = || Contact { callback_url: url("https"), agent: state(), ..Contact::default() };
    let psids = json!({"agent_opal_psids": {"S1": "PSID"}});
    assert_eq!(driver_info(ours(), "erase_devices").await, psids);
    assert_eq!(driver_info(ours(), "erase_devices_express").await, psids);
    assert_eq!(driver_info(ours(), "erase_devices_metadata").await, json!({}));
    assert_eq!(driver_info(ours(), "verify_properties").await, json!({}));
    let plain = Contact { callback_url: url("http"), ..ours() };
    assert_eq!(driver_info(plain, "erase_devices").await, json!({}));
    let foreign = Contact { agent: Some(AgentKind::Ipa), ..ours() };
    assert_eq!(driver_info(foreign, "erase_devices").await, json!({}));
}
