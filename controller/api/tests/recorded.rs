//! What the real Ironic answered, exchange by exchange (fixtures/record.py): we answer the same, except where
//! the recording says on purpose otherwise.

use crate::common::{Answer, Api, fixture, keys};
use model::{Cursor, ProvisionState};
use serde_json::{Value, json};
use uuid::Uuid;

async fn replay(scene: &str, least: usize) -> Api {
    let api = Api::new();
    let recorded = fixture(include_str!("fixtures/recorded.json"));
    let mut compared = 0;
    for exchange in recorded[scene].as_array().unwrap() {
        if let Some(node) = exchange["node"].as_str() {
            put_into(&api, node, exchange["state"].as_str().unwrap()).await;
            continue;
        }
        let minor = exchange["minor"].as_u64().unwrap().try_into().unwrap();
        let body = Some(exchange["body"].clone()).filter(|body| !body.is_null());
        let (method, path) = (exchange["method"].as_str().unwrap(), exchange["path"].as_str().unwrap());
        let answer = api.at(minor, method, path, body).await;
        compare(exchange, &answer);
        assert!(!answer.text.contains("hunter2"), "a secret is shown: {exchange}");
        compared += 1;
    }
    assert!(compared >= least, "only {compared} exchanges of {scene} were compared");
    api
}

/// What a conductor does to the node between two requests.
async fn put_into(api: &Api, name: &str, state: &str) {
    let mut node = api.store.node_by_ident(name).await.unwrap();
    let now = node.provision_updated_at.unwrap();
    room::put(&mut node, ProvisionState::parse(state).unwrap(), now);
    if let Some(run) = &mut node.run {
        let waits = node.provision_state == ProvisionState::InspectWait;
        run.cursor = if waits { Cursor::AwaitInventory } else { Cursor::Done };
        run.booted = waits;
    }
    api.store.update_node(node, Vec::new(), None).await.unwrap();
}

fn compare(exchange: &Value, answer: &Answer) {
    let context = format!("{exchange}\nwe say {} {}", answer.status, answer.text);
    if exchange["ours"].is_object() {
        assert_eq!(Value::from(answer.status), exchange["ours"]["status"], "{context}");
        return;
    }
    if exchange["status"] == 500 {
        assert_eq!(answer.status, 400, "a defect of Ironic's: {context}");
        answer.fault();
        return;
    }
    assert_eq!(Value::from(answer.status), exchange["status"], "{context}");
    assert_eq!(answer.header("location"), exchange["location"].as_str(), "{context}");
    let theirs = &exchange["answer"];
    if theirs.is_null() {
        assert_eq!(answer.text, "", "{context}");
    } else if theirs.get("error_message").is_some() {
        let theirs = Answer { body: theirs.clone(), ..answer.clone() }.fault();
        assert!(says_the_same(&theirs, &answer.fault()), "{context}");
    } else if theirs.get("config").is_some() {
        let mut ours = answer.body.clone();
        assert!(ours["config"].as_object_mut().unwrap().remove("anneal").is_some(), "{context}");
        assert_eq!(keys(&ours["config"]), keys(&theirs["config"]), "{context}");
        assert_eq!(keys(&ours["node"]), keys(&theirs["node"]), "{context}");
        assert_eq!(ours["config"]["agent_token"].as_str().unwrap().len(), 43);
    } else if *theirs != json!("a node") {
        assert_eq!(timeless(&answer.body), timeless(theirs), "{context}");
    }
}

/// The same words; ours may also name the place, and the UUID where Ironic gives a number of its database.
fn says_the_same(theirs: &str, ours: &str) -> bool {
    let ours = ours.split(" (field \"").next().unwrap_or_default();
    let (mut theirs, mut ours) = (theirs.split(' '), ours.split(' '));
    loop {
        match (theirs.next(), ours.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b => {}
            // Values are shortened here.
            (Some(a), Some(b)) if b.strip_suffix('…').is_some_and(|begin| a.starts_with(begin)) => {}
            (Some(a), Some(b)) if a.parse::<u32>().is_ok() && Uuid::parse_str(b).is_ok() => {}
            _ => return false,
        }
    }
}

/// An answer with the instants that cannot be the same left out, except whether there is one.
fn timeless(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let instant = ["created_at", "updated_at", "next"].contains(&key.as_str());
                (key.clone(), if instant { json!(value.is_null()) } else { timeless(value) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(timeless).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn traits() {
    replay("traits", 45).await;
}

#[tokio::test]
async fn deploy_templates() {
    replay("deploy_templates", 110).await;
}

#[tokio::test]
async fn inspection() {
    let api = replay("inspection", 40).await;
    let found = api.get("/v1/nodes/i1/inventory").await.is(200).body;
    assert_eq!(found["inventory"]["disks"][0]["size"], 10_737_418_240_u64);
    let plugin_data = json!({
        "root_disk": {"name": "/dev/vda", "size": 10_737_418_240_u64},
        "configuration": {"collectors": ["default"]},
        "error": null,
    });
    assert_eq!(found["plugin_data"], plugin_data, "all but the inventory and the logs");
}

#[tokio::test]
async fn retirement_protection_and_secrets() {
    replay("flags", 45).await;
}

#[tokio::test]
async fn traits_of_instances() {
    replay("instance_traits", 10).await;
}

#[tokio::test]
async fn history() {
    replay("history", 15).await;
}
