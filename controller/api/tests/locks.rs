//! A node that is locked: requests that need it unlocked wait for at most 3 s, read it again, and decide.
//!
//! Time is tokio's paused clock: it passes when every task waits.

use crate::common::Api;
use model::{Node, PowerState, PowerTarget, ProvisionState, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

const LONGEST: Duration = Duration::from_secs(3);

/// A node that is off, with a volume target, a connector, a port group, a resource class and an accepted request to power on.
async fn asked_to_power_on(api: &Api, state: ProvisionState) -> Node {
    let node = api.node_with("n", state, |node| {
        node.power_state = Some(PowerState::Off);
        node.resource_class = Some("c".into());
        node.driver = "redfish".into();
        node.driver_info.insert("redfish_address".into(), "https://bmc".into());
    });
    let uuid = node.await.uuid;
    for (path, more) in [
        (
            "volume/targets",
            json!({"uuid": TARGET, "boot_index": 0, "volume_id": "v", "volume_type": "iscsi"}),
        ),
        ("volume/connectors", json!({"uuid": CONNECTOR, "type": "iqn", "connector_id": "i"})),
        ("portgroups", json!({"uuid": PORTGROUP, "name": "bond0"})),
    ] {
        let mut body = json!({"node_uuid": uuid});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.post(&format!("/v1/{path}"), body).await.is(201);
    }
    api.put("/v1/nodes/n/states/power", json!({"target": "power on"})).await.is(202);
    api.store.node(uuid).await.unwrap()
}

const TARGET: &str = "11111111-1111-4111-8111-111111111111";
const CONNECTOR: &str = "22222222-2222-4222-8222-222222222222";
const PORTGROUP: &str = "33333333-3333-4333-8333-333333333333";

/// The conductor has carried the request out.
async fn carry_out(api: &Api, node: &Node) {
    let mut node = api.store.node(node.uuid).await.unwrap();
    node.power_state = node.target_power_state.take().map(PowerTarget::resulting_state);
    api.update(node).await;
}

fn replace(path: &str, value: &str) -> Value {
    json!([{"op": "replace", "path": path, "value": value}])
}

/// What needs the node unlocked, as its status once the node is on: method, path, body.
fn needs_unlocked() -> Vec<(u16, &'static str, String, Option<Value>)> {
    let target = || format!("/v1/volume/targets/{TARGET}");
    let connector = || format!("/v1/volume/connectors/{CONNECTOR}");
    let group = || format!("/v1/portgroups/{PORTGROUP}");
    let of = |path: &str| format!("/v1/nodes/n/{path}");
    vec![
        (400, "PATCH", target(), Some(replace("/volume_id", "w"))),
        (400, "DELETE", target(), None),
        (400, "PATCH", connector(), Some(replace("/connector_id", "j"))),
        (400, "DELETE", connector(), None),
        (200, "PATCH", group(), Some(replace("/name", "bond1"))),
        (204, "DELETE", group(), None),
        (202, "PUT", of("states/power"), Some(json!({"target": "power off"}))),
        (202, "PUT", of("states/provision"), Some(json!({"target": "deleted"}))),
        (202, "PUT", of("states/boot_mode"), Some(json!({"target": "uefi"}))),
        (202, "PUT", of("states/secure_boot"), Some(json!({"target": true}))),
        (204, "PUT", of("states/raid"), Some(json!({}))),
        (204, "PUT", of("management/boot_device"), Some(json!({"boot_device": "pxe"}))),
        (204, "PUT", of("management/inject_nmi"), Some(json!({}))),
        (204, "PUT", of("management/indicators/led@system"), Some(json!({"state": "on"}))),
        (204, "DELETE", of("vmedia"), None),
        (204, "PUT", of("traits/CUSTOM_A"), None),
        (200, "PATCH", "/v1/nodes/n".into(), Some(json!([{"op": "add", "path": "/retired", "value": true}]))),
        (201, "POST", "/v1/allocations".into(), Some(json!({"name": "a", "node": "n"}))),
        (409, "DELETE", "/v1/nodes/n".into(), None),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_needs_the_node_unlocked_waits_for_a_change_of_power_and_is_then_decided() {
    for (status, method, path, body) in needs_unlocked() {
        let api = Api::new();
        let node = asked_to_power_on(&api, ProvisionState::Active).await;
        let begun = Instant::now();
        let (answer, ()) = tokio::join!(api.at(115, method, &path, body), async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            carry_out(&api, &node).await;
        });
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        assert!(!answer.text.contains("is locked"), "{method} {path}: {}", answer.text);
        assert_eq!(begun.elapsed().as_secs(), 2, "{method} {path}: woken, at once");
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_for_more_than_three_seconds() {
    for (_, method, path, body) in needs_unlocked() {
        let api = Api::new();
        let node = asked_to_power_on(&api, ProvisionState::Active).await;
        let begun = Instant::now();
        let answer = api.at(115, method, &path, body).await.is(409);
        let says = format!(
            "Node {} is locked by host probe-conductor, please retry after the current operation is completed.",
            node.uuid
        );
        assert_eq!(answer.fault(), says, "{method} {path}");
        let took = begun.elapsed();
        assert!(took >= LONGEST && took < LONGEST + Duration::from_millis(100), "{method} {path}: {took:?}");
        assert_eq!(api.store_node(&node).await, node, "{method} {path}: a refused request changes nothing");
    }
}

/// Two nodes of one request, or one node twice, do not make it wait twice.
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_three_seconds_in_all() {
    let api = Api::new();
    let node = asked_to_power_on(&api, ProvisionState::Active).await;
    let until = Timestamp(i64::MAX);
    let other = api.node("other", ProvisionState::Active).await;
    let lease = api.store.take_lease(other.uuid, "host", Timestamp(0), until).await.unwrap().unwrap();
    let begun = Instant::now();
    let path = format!("/v1/volume/targets/{TARGET}");
    let (answer, ()) =
        tokio::join!(api.patch(&path, replace("/node_uuid", &other.uuid.to_string())), async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let mut free = api.store.node(other.uuid).await.unwrap();
            free.power_state = Some(PowerState::Off);
            api.update(free).await;
            api.store.release_lease(lease).await.unwrap();
        });
    assert!(answer.is(409).fault().contains(&node.uuid.to_string()));
    assert!(begun.elapsed() < LONGEST + Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_release_of_a_lease_is_heard() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Active).await;
    let until = Timestamp(i64::MAX);
    let lease = api.store.take_lease(node.uuid, "host", Timestamp(0), until).await.unwrap().unwrap();
    let begun = Instant::now();
    let (answer, ()) = tokio::join!(api.at(115, "PUT", "/v1/nodes/n/traits/CUSTOM_A", None), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        api.store.release_lease(lease).await.unwrap();
    });
    answer.is(204);
    assert_eq!(begun.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn sixty_four_requests_wait_and_no_more() {
    let api = Arc::new(Api::new());
    let node = asked_to_power_on(&api, ProvisionState::Active).await;
    let mut waiting = JoinSet::new();
    for _ in 0..64 {
        let api = api.clone();
        waiting.spawn(async move { api.at(115, "PUT", "/v1/nodes/n/traits/CUSTOM_A", None).await });
    }
    // They begin to wait before time passes.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let begun = Instant::now();
    let one_more = || api.at(115, "PUT", "/v1/nodes/n/traits/CUSTOM_A", None);
    assert!(one_more().await.is(409).fault().contains("is locked by host probe-conductor"));
    assert_eq!(begun.elapsed(), Duration::ZERO, "it does not wait");

    carry_out(&api, &node).await;
    while let Some(answer) = waiting.join_next().await {
        // So many writers of one node at once are in each other's way; none is refused for the lock.
        let answer = answer.unwrap();
        assert!(!answer.text.contains("is locked"), "{}", answer.text);
    }
    one_more().await.is(204);
}

/// Of two changes at once the conductor would send only the first to the BMC.
#[tokio::test(start_paused = true)]
async fn one_change_of_power_comes_after_the_other() {
    let api = Api::new();
    let node = asked_to_power_on(&api, ProvisionState::Manageable).await;
    let path = "/v1/nodes/n/states/power";
    api.put(path, json!({"target": "power off"})).await.is(409);
    assert_eq!(api.store_node(&node).await.target_power_state, Some(PowerTarget::On));
    carry_out(&api, &node).await;
    api.put(path, json!({"target": "power off"})).await.is(202);
}

/// The run would begin, and the node would be switched off when it has ended.
#[tokio::test(start_paused = true)]
async fn no_run_begins_before_a_change_of_power_is_carried_out() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    api.put("/v1/nodes/n/states/power", json!({"target": "power off"})).await.is(202);
    let provide = || api.put("/v1/nodes/n/states/provision", json!({"target": "provide"}));
    provide().await.is(409);
    let (answer, ()) = tokio::join!(provide(), carry_out(&api, &node));
    answer.is(202);
    let stored = api.store_node(&node).await;
    assert_eq!((stored.provision_state, stored.target_power_state), (ProvisionState::Cleaning, None));
}

/// Clients wait for the field to become null.
#[tokio::test]
async fn a_node_with_an_outstanding_change_of_power_is_reserved() {
    let api = Api::new();
    let node = asked_to_power_on(&api, ProvisionState::Active).await;
    assert_eq!(api.get("/v1/nodes/n").await.body["reservation"], "probe-conductor");
    carry_out(&api, &node).await;
    assert_eq!(api.get("/v1/nodes/n").await.body["reservation"], Value::Null);
}

/// What became of an allocation.
async fn ended(api: &Api, made: &Value) -> Value {
    api.get(&format!("/v1/allocations/{}", made["uuid"].as_str().unwrap())).await.is(200).body
}

#[tokio::test(start_paused = true)]
async fn an_allocation_waits_for_a_node_that_is_locked() {
    let api = Api::new();
    let node = asked_to_power_on(&api, ProvisionState::Available).await;
    let wish = || api.post("/v1/allocations", json!({"resource_class": "c"}));
    // It leaves no allocation in the state `error`: clients ask again.
    let begun = Instant::now();
    let fault = wish().await.is(409).fault();
    assert!(fault.contains(&format!("Node {} is locked", node.uuid)), "{fault}");
    assert!(begun.elapsed() >= LONGEST && begun.elapsed() < LONGEST + Duration::from_millis(100));
    assert_eq!(api.get("/v1/allocations").await.body["allocations"], json!([]));

    let (made, ()) = tokio::join!(wish(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        carry_out(&api, &node).await;
    });
    let made = ended(&api, &made.is(201).body).await;
    assert_eq!((&made["state"], &made["node_uuid"]), (&json!("active"), &json!(node.uuid)));
}

#[tokio::test(start_paused = true)]
async fn an_allocation_takes_a_free_node_before_one_that_is_locked() {
    let api = Api::new();
    asked_to_power_on(&api, ProvisionState::Available).await;
    let free = api.node_with("free", ProvisionState::Available, |node| {
        node.power_state = Some(PowerState::Off);
        node.resource_class = Some("c".into());
    });
    let free = free.await;
    let begun = Instant::now();
    let wish = || api.post("/v1/allocations", json!({"resource_class": "c"}));
    let made = wish().await.is(201).body;
    assert_eq!(ended(&api, &made).await["node_uuid"], json!(free.uuid));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// The node that it waits for is given to no one else meanwhile, or it goes on without it.
#[tokio::test(start_paused = true)]
async fn an_allocation_does_not_wait_for_a_node_that_no_longer_suits_it() {
    let api = Api::new();
    let node = asked_to_power_on(&api, ProvisionState::Available).await;
    let (made, ()) = tokio::join!(api.post("/v1/allocations", json!({"resource_class": "c"})), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut taken = api.store.node(node.uuid).await.unwrap();
        taken.maintenance = true;
        api.update(taken).await;
    });
    let made = ended(&api, &made.is(201).body).await;
    assert_eq!(made["state"], "error");
    let error = made["last_error"].to_string();
    assert!(error.contains("could not reserve any of 1 suitable nodes"), "{error}");
}
