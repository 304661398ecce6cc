//! Traits and deploy templates, beyond what tests/recorded.rs compares.

use crate::common::Api;
use model::{Cursor, ProvisionState, ResourceKind, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const TEMPLATES: &str = "/v1/deploy_templates";

fn step(interface: &str, step: &str, priority: u64) -> Value {
    json!({"interface": interface, "step": step, "args": {}, "priority": priority})
}

async fn template(api: &Api, name: &str, steps: Value) {
    api.post(TEMPLATES, json!({"name": name, "steps": steps})).await.is(201);
}

/// Ironic changes traits under the node's lock.
#[tokio::test(start_paused = true)]
async fn a_locked_node_keeps_its_traits() {
    let api = Api::new();
    let node = api.node_with("n", ProvisionState::Cleaning, |node| {
        node.traits.insert("CUSTOM_A".into());
    });
    let node = node.await;
    let until = Timestamp(i64::MAX);
    let lease = api.store.take_lease(node.uuid, "host", Timestamp(0), until).await.unwrap().unwrap();
    let path = "/v1/nodes/n/traits";
    for (method, below, body) in [
        ("PUT", "", Some(json!({"traits": ["CUSTOM_B"]}))),
        ("PUT", "/CUSTOM_B", None),
        ("DELETE", "", None),
        ("DELETE", "/CUSTOM_A", None),
    ] {
        let answer = api.at(115, method, &format!("{path}{below}"), body).await.is(409);
        assert!(answer.fault().contains("is locked by host host"), "{}", answer.fault());
    }
    assert_eq!(api.store.node(node.uuid).await.unwrap(), node);
    // It needs only to be let go of, not to come to rest.
    api.store.release_lease(lease).await.unwrap();
    api.at(115, "PUT", &format!("{path}/CUSTOM_B"), None).await.is(204);
    assert_eq!(api.get("/v1/nodes/n").await.body["traits"], json!(["CUSTOM_A", "CUSTOM_B"]));
}

#[tokio::test]
async fn a_node_has_at_most_fifty_traits() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let traits: Vec<_> = (0..50).map(|index| format!("CUSTOM_{index}")).collect();
    api.put("/v1/nodes/n/traits", json!({"traits": traits})).await.is(204);
    let more: Vec<_> = (0..51).map(|index| format!("HW_{index}")).collect();
    let all = api.put("/v1/nodes/n/traits", json!({"traits": more})).await.is(400).fault();
    let one = api.at(115, "PUT", "/v1/nodes/n/traits/CUSTOM_50", None).await.is(400).fault();
    for fault in [all, one] {
        let says = format!(
            "Could not modify traits for node {} as it would exceed the maximum number of traits per node (51 vs. 50)",
            node.uuid
        );
        assert_eq!(fault, says);
    }
    let kept = api.get("/v1/nodes/n/traits").await.is(200).body["traits"].clone();
    assert_eq!(kept.as_array().unwrap().len(), 50);
    assert!(kept.as_array().unwrap().contains(&json!("CUSTOM_49")));
}

#[tokio::test]
async fn templates_come_in_pages() {
    let api = Api::new();
    for index in 0..5 {
        template(&api, &format!("CUSTOM_{index}"), json!([step("bios", "apply", 1)])).await;
    }
    let mut seen = Vec::new();
    let mut path = format!("{TEMPLATES}?limit=2&sort_key=name&sort_dir=desc&fields=name");
    loop {
        let page = api.get(&path).await.is(200).body;
        let items = page["deploy_templates"].as_array().unwrap();
        assert!(items.len() <= 2 && !items.is_empty());
        assert_eq!(crate::common::keys(&items[0]), ["links", "name"]);
        seen.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix("http://127.0.0.1:6385").unwrap().to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["CUSTOM_4", "CUSTOM_3", "CUSTOM_2", "CUSTOM_1", "CUSTOM_0"]);
}

/// In Ironic one of two patches at once may lose the other one's step.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn patches_at_once_lose_nothing() {
    let api = Arc::new(Api::new());
    for round in 0..25 {
        let name = format!("CUSTOM_{round}");
        template(&api, &name, json!([step("bios", "first", 1)])).await;
        let start = Arc::new(Barrier::new(4));
        let mut tasks = JoinSet::new();
        for index in 0..4 {
            let (api, start, path) = (api.clone(), start.clone(), format!("{TEMPLATES}/{name}"));
            tasks.spawn(async move {
                let value = step("bios", &format!("s{index}"), index);
                start.wait().await;
                api.patch(&path, json!([{"op": "add", "path": "/steps/-", "value": value}])).await.is(200);
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let stored = api.store.resource(ResourceKind::DeployTemplate, &name).await.unwrap();
        assert_eq!(stored.field("steps").as_array().unwrap().len(), 5);
        assert!(stored.updated_at.is_some(), "Ironic forgets it when only steps change");
    }
}

#[tokio::test]
async fn a_description_is_kept_and_secrets_are_masked() {
    let api = Api::new();
    let steps = json!([{"interface": "raid", "step": "x", "args": {"password": "hunter2"}, "priority": 0}]);
    let body = json!({"name": "CUSTOM_A", "steps": steps, "description": "what for"});
    let made = api.post(TEMPLATES, body).await.is(201);
    assert_eq!(made.body["description"], "what for");
    assert_eq!(
        api.get(&format!("{TEMPLATES}?fields=description")).await.body["deploy_templates"][0]["description"],
        "what for"
    );
    // What is wrong is quoted, without the secrets in it.
    let twice = json!({"name": "CUSTOM_B", "steps": {"args": {"password": "hunter2"}}});
    let fault = api.post(TEMPLATES, twice).await.is(400);
    for text in [made.text, fault.text, api.get(&format!("{TEMPLATES}?detail=true")).await.text] {
        assert!(text.contains("******") && !text.contains("hunter2"), "{text}");
    }
    assert_eq!(
        api.store.resource(ResourceKind::DeployTemplate, "CUSTOM_A").await.unwrap().field("steps")[0]["args"]
            ["password"],
        "hunter2"
    );
}

/// specs/deploy-steps.txt; Ironic's rule: templates are found by the traits that the instance asks for, and those must be the node's.
#[tokio::test]
async fn a_deployment_takes_the_steps_of_the_templates_its_instance_asks_for() {
    let api = Api::new();
    template(&api, "CUSTOM_B", json!([step("bios", "b", 150)])).await;
    template(&api, "CUSTOM_A", json!([step("raid", "a", 140), step("deploy", "erase", 0)])).await;
    template(&api, "CUSTOM_C", json!([step("bios", "never", 1)])).await;
    let node = api
        .node_with("n", ProvisionState::Available, |node| {
            node.traits = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"].map(str::to_owned).into();
            node.instance_info.insert("traits".into(), json!(["CUSTOM_D", "CUSTOM_B", "CUSTOM_A"]));
        })
        .await;
    api.put("/v1/nodes/n/states/provision", json!({"target": "active"})).await.is(202);
    let run = api.store.node(node.uuid).await.unwrap().run.unwrap();
    assert_eq!(run.cursor, Cursor::Start);
    let steps: Vec<_> =
        run.templates.iter().map(|step| (step.step.as_str(), step.priority.clone())).collect();
    assert_eq!(steps, [("a", Some(140.into())), ("erase", Some(0.into())), ("b", Some(150.into()))]);
    // What was begun keeps its steps.
    api.delete(&format!("{TEMPLATES}/CUSTOM_A")).await.is(204);
    assert_eq!(api.store.node(node.uuid).await.unwrap().run.unwrap().templates.len(), 3);
}
