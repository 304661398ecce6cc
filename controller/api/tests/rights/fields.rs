//! Fields of a node: who may change which, and who sees which.

use super::callers::User;
use super::world::World;
use api::auth::Role;
use model::{Cursor, ProvisionState, Run, RunKind};
use serde_json::{Value, json};

/// Field, value, and Ironic's policy (`_authorize_patch_and_get_node` in ironic/api/controllers/v1/node.py).
fn patches() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("instance_info/k", json!(1), "baremetal:node:update_instance_info"),
        ("instance_name", json!("i"), "baremetal:node:update_instance_info"),
        ("extra/k", json!(1), "baremetal:node:update_extra"),
        ("driver_info/k", json!("v"), "baremetal:node:update:driver_info"),
        ("properties/k", json!(1), "baremetal:node:update:properties"),
        ("instance_uuid", json!(super::world::ABSENT), "baremetal:node:update:instance_uuid"),
        ("lessee", json!("p-other"), "baremetal:node:update:lessee"),
        ("owner", json!("p-other"), "baremetal:node:update:owner"),
        ("driver", json!("redfish"), "baremetal:node:update:driver_interfaces"),
        ("bios_interface", json!("no-bios"), "baremetal:node:update:driver_interfaces"),
        ("network_data", json!({}), "baremetal:node:update:network_data"),
        ("conductor_group", json!("g"), "baremetal:node:update:conductor_group"),
        ("name", json!("other"), "baremetal:node:update:name"),
        ("retired", json!(true), "baremetal:node:update:retired"),
        ("shard", json!("s"), "baremetal:node:update:shard"),
        ("parent_node", json!(super::world::ABSENT), "baremetal:node:update:parent_node"),
        ("disable_power_off", json!(true), "baremetal:node:update:disable_power_off"),
        ("automated_clean", json!(false), "baremetal:node:disable_cleaning"),
        ("automated_clean", json!("no"), "baremetal:node:disable_cleaning"),
        ("automated_clean", json!(true), "baremetal:node:update"),
        ("description", json!("d"), "baremetal:node:update"),
        ("resource_class", json!("r"), "baremetal:node:update"),
    ]
}

#[tokio::test]
async fn each_field_is_changed_only_with_ironics_policy() {
    for (field, value, policy) in patches() {
        let ops = json!([{"op": "add", "path": format!("/{field}"), "value": value}]);
        // Next to a field that every caller with any right may change.
        let both = json!([{"op": "add", "path": "/extra/x", "value": 1}, ops[0]]);
        for user in User::all().filter(|user| user.relation != "stranger") {
            let world = World::guarded().await;
            let before = world.api.everything().await;
            for ops in [&ops, &both] {
                let answer = world.ask("PATCH", "/v1/nodes/n", Some(&user.header()), Some(ops.clone())).await;
                let what = format!("{field} by {}: {}", user.name(), answer.text);
                if user.may(policy) {
                    assert_ne!(answer.status, 403, "{what}");
                    break;
                }
                assert_eq!(answer.status, 403, "{what}");
                let named = if user.may("baremetal:node:update") { policy } else { "baremetal:node:update" };
                assert!(answer.fault().ends_with(named), "{what}");
            }
            if !user.may(policy) {
                assert_eq!(world.api.everything().await, before, "{field} by {}", user.name());
            }
        }
    }
}

#[tokio::test]
async fn the_owner_of_a_node_in_use_is_changed_by_an_administrator() {
    let ops = json!([{"op": "replace", "path": "/owner", "value": "p-other"}]);
    for (role, status) in [(Role::Manager, 409), (Role::Admin, 200)] {
        let world = World::guarded().await;
        let mut node = world.node.clone();
        node.enter(ProvisionState::Active, None, model::Timestamp(2));
        world.api.store.update_node(node, Vec::new(), None).await.unwrap();
        let user = User { relation: "system", role };
        world.ask("PATCH", "/v1/nodes/n", Some(&user.header()), Some(ops.clone())).await.is(status);
    }
}

#[tokio::test]
async fn fields_that_a_lessee_may_not_see_are_redacted() {
    let world = World::guarded().await;
    world
        .api
        .store
        .take_lease(world.node.uuid, "host", model::Timestamp(0), model::Timestamp(i64::MAX))
        .await
        .unwrap();
    let word = |name: &str| format!("baremetal:node:get:{name} permission");
    for user in User::all().filter(|user| user.relation != "stranger") {
        let header = user.header();
        let get = |path: &'static str| world.ask("GET", path, Some(&header), None);
        let one = get("/v1/nodes/n").await.is(200).body;
        let of_a_list = get("/v1/nodes/detail").await.is(200).body["nodes"][0].clone();
        let fields =
            get("/v1/nodes?fields=driver_info,last_error,reservation,driver_internal_info").await.is(200);
        let states = get("/v1/nodes/n/states").await.is(200).body;
        for field in ["driver_info", "driver_internal_info", "last_error", "reservation"] {
            let hidden = !user.may(&format!("baremetal:node:get:{field}"));
            assert_eq!(hidden, user.relation == "lessee");
            for view in [&one, &of_a_list, &fields.body["nodes"][0]] {
                let shown = view[field].to_string();
                assert_eq!(shown.contains(&word(field)), hidden, "{field} for {}: {shown}", user.name());
            }
        }
        assert_eq!(states["last_error"].as_str().unwrap().contains("secret"), user.relation != "lessee");
        assert_eq!(one["reservation"] == "host", user.relation != "lessee");
    }
}

/// `why` quotes what a view of the node hides in `last_error`, `driver_internal_info` and `reservation`.
#[tokio::test]
async fn why_shows_no_text_that_a_view_of_the_node_hides() {
    let world = World::guarded().await;
    let mut node = world.node.clone();
    node.enter(ProvisionState::CleanWait, None, model::Timestamp(2));
    let run = Run {
        cursor: Cursor::LearnSteps,
        attempts: 1,
        ..Run::new(RunKind::AutomatedClean, model::Timestamp(2))
    };
    node.run = Some(Run { hung: Some("secret of the agent".to_owned()), ..run });
    node.last_error = Some("secret of the BMC".to_owned());
    (node.maintenance, node.maintenance_reason) = (true, Some("secret of the failure".to_owned()));
    let reason = "the agent to answer (secret of the wait)".to_owned();
    node.wait = Some(model::Wait { reason, since: model::Timestamp(3), deadline: None });
    world.api.store.update_node(node, Vec::new(), None).await.unwrap();
    let forever = model::Timestamp(i64::MAX);
    world.api.store.take_lease(world.node.uuid, "host", model::Timestamp(0), forever).await.unwrap();
    for user in User::all().filter(|user| user.relation != "stranger") {
        let why = world.ask("GET", "/v1/anneal/nodes/n/why", Some(&user.header()), None).await.is(200);
        let shown: Vec<_> = ["the agent", "the BMC", "the failure", "the wait"]
            .into_iter()
            .filter(|of| why.text.contains(&format!("secret of {of}")))
            .collect();
        let hidden = user.relation == "lessee";
        assert_eq!(shown.len(), if hidden { 0 } else { 4 }, "{}: {shown:?} {}", user.name(), why.text);
        assert_eq!(why.text.contains("controller host is at it"), !hidden, "{}", user.name());
    }
}
