//! What `GET /v1/anneal/nodes/{ident}/rights` offers is what the API accepts from that caller, for every state and role.

use super::callers::User;
use super::world::World;
use crate::common::Answer;
use api::auth::Role;
use model::ProvisionState;
use serde_json::{Value, json};

async fn ask(world: &World, user: User, method: &str, path: &str, body: Option<Value>) -> Answer {
    world.ask(method, path, Some(&user.header()), body).await
}

fn verb<'a>(rights: &'a Value, name: &str) -> Option<&'a Value> {
    rights["verbs"].as_array().unwrap().iter().find(|verb| verb["verb"] == name)
}

/// The members that a verb needs.
fn body(verb: &Value) -> Value {
    let mut body = json!({"target": verb["verb"]});
    for need in verb["needs"].as_array().unwrap() {
        let name = need.as_str().unwrap();
        body[name] = match name {
            "rescue_password" => json!("hunter2hunter2"),
            "reason" => json!("tested"),
            _ => json!([{"interface": "deploy", "step": "erase_devices"}]),
        };
    }
    body
}

#[tokio::test]
async fn a_verb_is_offered_to_whom_it_is_accepted_from() {
    let states = [
        ProvisionState::Enroll,
        ProvisionState::Manageable,
        ProvisionState::Active,
        ProvisionState::DeployFail,
        ProvisionState::CleanFail,
        ProvisionState::CleanHold,
    ];
    for state in states {
        for user in User::all().filter(|user| user.relation != "stranger") {
            let world = World::guarded().await;
            let mut node = world.api.store_node(&world.node).await;
            node.provision_state = state;
            world.api.update(node).await;
            let path = format!("/v1/nodes/{}/states/provision", world.node.uuid);
            let rights = format!("/v1/anneal/nodes/{}/rights", world.node.uuid);
            let offered = ask(&world, user, "GET", &rights, None).await.is(200).body;
            for verb in offered["verbs"].as_array().unwrap() {
                let what = format!("{} in {state:?} by {}", verb["verb"], user.name());
                assert_eq!(verb["allowed"] == false, verb["why_not"].is_string(), "{what}");
                let fresh = world.api.store_node(&world.node).await;
                let answer = ask(&world, user, "PUT", &path, Some(body(verb))).await;
                assert_eq!(answer.status == 403, verb["allowed"] == false, "{what}: {}", answer.text);
                assert!(!answer.text.contains("can not be performed"), "{what}: {}", answer.text);
                // The next one finds the node as it was.
                let mut node = world.api.store_node(&world.node).await;
                let version = node.version;
                node = fresh;
                node.version = version;
                world.api.update(node).await;
            }
        }
    }
}

#[tokio::test]
async fn flags_of_the_node_say_why_not_and_what_erases_says_so() {
    let world = World::guarded().await;
    let admin = User { relation: "system", role: Role::Admin };
    let path = format!("/v1/anneal/nodes/{}/rights", world.node.uuid);
    let rights = ask(&world, admin, "GET", &path, None).await.is(200).body;
    let provide = verb(&rights, "provide").unwrap();
    assert_eq!((&provide["risk"], &provide["usual"]), (&json!("erase"), &json!(true)));
    assert_eq!(provide["question"], "its disks are erased");
    assert!(verb(&rights, "active").is_none(), "the state does not take it");
    assert_eq!(
        rights["power"][0],
        json!({"target": "power on", "risk": null, "question": null, "allowed": true, "why_not": null})
    );
    assert_eq!((&rights["delete"], &rights["maintenance"]["set"]), (&json!(true), &json!(true)));
    let mut node = world.api.store_node(&world.node).await;
    node.retired = true;
    node.other.insert("disable_power_off".into(), true.into());
    world.api.update(node).await;
    let rights = ask(&world, admin, "GET", &path, None).await.is(200).body;
    let provide = verb(&rights, "provide").unwrap();
    assert_eq!(provide["allowed"], false);
    assert!(provide["why_not"].as_str().unwrap().contains("retired"), "{provide}");
    let off =
        rights["power"].as_array().unwrap().iter().find(|power| power["target"] == "power off").unwrap();
    assert!(off["why_not"].as_str().unwrap().contains("disable_power_off"), "{off}");
    let reader = User { relation: "system", role: Role::Reader };
    let rights = ask(&world, reader, "GET", &path, None).await.is(200).body;
    let denied = verb(&rights, "provide").unwrap()["why_not"].as_str().unwrap().to_owned();
    assert!(denied.contains("baremetal:node:set_provision_state"), "{denied}");
    let own = ask(&world, reader, "GET", "/v1/anneal/rights", None).await.is(200).body;
    let policies = own["policies"].as_array().unwrap();
    assert!(
        policies.contains(&json!("baremetal:node:get"))
            && !policies.contains(&json!("baremetal:node:create"))
    );
}
