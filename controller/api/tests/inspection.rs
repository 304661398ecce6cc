//! `POST /v1/continue_inspection`: which reports are accepted, and what is stored. The endpoint needs no authentication.

use crate::common::Api;
use axum::body::Body;
use axum::http::Request;
use model::boot::{Boot, BootNonce};
use model::{Cursor, Inventory, Node, ProvisionState, Run, RunKind};
use serde_json::{Value, json};

const PATH: &str = "/v1/continue_inspection";
const MAC: &str = "52:54:00:12:34:56";
const NOT_FOUND: &str = "Resource could not be found.";

fn report(mac: &str) -> Value {
    json!({"inventory": {"interfaces": [{"name": "eno1", "mac_address": mac}], "cpu": {"count": 2}}, "error": null})
}

/// A node that waits for the report of its ramdisk.
async fn inspected(api: &Api, name: &str, shape: impl FnOnce(&mut Node)) -> Node {
    let node = api.node_with(name, ProvisionState::InspectWait, |node| {
        let mut run = Run::new(RunKind::Inspect, node.created_at);
        (run.cursor, run.booted) = (Cursor::AwaitInventory, true);
        node.run = Some(run);
        shape(node);
    });
    node.await
}

/// As ironic-python-agent asks: in no version.
async fn send_report(api: &Api, body: Value) -> crate::common::Answer {
    let request = Request::post(PATH).header("Content-Type", "application/json");
    api.raw(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_report_is_stored_and_wakes_the_conductor() {
    let api = Api::new();
    let node = inspected(&api, "n", |_| {}).await;
    api.port(&node, MAC).await;
    let mut bell = api.store.bell().listen();
    // Interfaces that are no port of a node, and those that are none at all, do not matter.
    let mut body = report("52-54-00-12-34-56");
    (body["inventory"]["bmc_address"], body["inventory"]["bmc_v6address"]) =
        (json!("0.0.0.0"), json!("::/0"));
    let interfaces = body["inventory"]["interfaces"].as_array_mut().unwrap();
    interfaces.push(json!({"mac_address": "52:54:00:99:99:99"}));
    interfaces.push(json!({"mac_address": "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:c2:29:21"}));
    let answer = send_report(&api, body.clone()).await.is(202);
    assert_eq!(answer.body, json!({"uuid": node.uuid}));
    assert_eq!(bell.recv().await, Some(node.uuid));
    let kept = api.store.inventory(node.uuid).await.unwrap().unwrap();
    assert_eq!((kept.inventory, kept.plugin_data), (body["inventory"].clone(), json!({"error": null})));
    assert_eq!(kept.source, "agent");
    assert_eq!(api.store.node(node.uuid).await.unwrap(), node, "the node is the conductor's");
    assert_eq!(
        api.store.contact(node.uuid).await.unwrap().token,
        None,
        "a token is for those who ask in 1.84"
    );
    let shown = api.get("/v1/nodes/n/inventory").await.is(200).body;
    assert_eq!(shown["inventory"], body["inventory"]);
}

/// The first of an inspection counts: who comes later changes nothing, and who did not hear the answer hears it.
#[tokio::test]
async fn one_inventory_an_inspection() {
    let api = Api::new();
    let node = inspected(&api, "n", |_| {}).await;
    api.port(&node, MAC).await;
    send_report(&api, report(MAC)).await.is(202);
    let kept = api.store.inventory(node.uuid).await.unwrap();
    send_report(&api, report(MAC)).await.is(202);
    let mut other = report(MAC);
    other["inventory"]["cpu"]["count"] = json!(64);
    assert_eq!(send_report(&api, other.clone()).await.is(404).fault(), NOT_FOUND);
    assert_eq!(api.store.inventory(node.uuid).await.unwrap(), kept);

    // What rules have made of it since cannot be compared: an agent that repeats its report still gets the answer.
    let ruled = Inventory { plugin_data: json!({"by": "rule"}), ruled: true, ..kept.clone().unwrap() };
    api.store.put_inventory(node.uuid, ruled.clone()).await.unwrap();
    send_report(&api, report(MAC)).await.is(202);
    assert_eq!(send_report(&api, other.clone()).await.is(404).fault(), NOT_FOUND);
    assert_eq!(api.store.inventory(node.uuid).await.unwrap(), Some(ruled));

    // The next inspection takes a new one.
    let mut node = api.store.node(node.uuid).await.unwrap();
    node.run.as_mut().unwrap().started_at = kept.unwrap().at.after(std::time::Duration::from_micros(1));
    api.store.update_node(node.clone(), Vec::new(), None).await.unwrap();
    send_report(&api, other).await.is(202);
    assert_eq!(api.store.inventory(node.uuid).await.unwrap().unwrap().inventory["cpu"]["count"], 64);
}

#[tokio::test]
async fn only_an_inspection_that_waits_for_its_ramdisk_listens() {
    for state in ProvisionState::ALL {
        let listens = matches!(state, ProvisionState::Inspecting | ProvisionState::InspectWait);
        for (kind, cursor, booted, abort, expected) in [
            (RunKind::Inspect, Cursor::AwaitInventory, true, false, listens),
            (RunKind::Inspect, Cursor::PowerOn, true, false, false),
            (RunKind::Inspect, Cursor::AwaitInventory, true, true, false),
            (RunKind::Inspect, Cursor::AskInventory, false, false, false),
            (RunKind::Inspect, Cursor::TearDown, true, false, false),
            (RunKind::Inspect, Cursor::Done, true, false, false),
            (RunKind::AutomatedClean, Cursor::AwaitAgent, true, false, false),
        ] {
            let api = Api::new();
            let node = inspected(&api, "n", |node| {
                room::put(node, state, node.created_at);
                let run = node.run.as_mut().unwrap();
                (run.kind, run.cursor, run.booted, run.abort) = (kind, cursor.clone(), booted, abort);
            })
            .await;
            api.port(&node, MAC).await;
            let context = format!("{state:?} {kind:?} {cursor:?} abort {abort}");
            let answer = send_report(&api, report(MAC)).await;
            if expected {
                assert_eq!(answer.status, 202, "{context}: {}", answer.text);
            } else {
                assert_eq!((answer.status, answer.fault().as_str()), (404, NOT_FOUND), "{context}");
                assert_eq!(api.store.inventory(node.uuid).await.unwrap(), None, "{context}");
            }
        }
    }
    let api = Api::new();
    let node = api.node("n", ProvisionState::InspectWait).await;
    api.port(&node, MAC).await;
    send_report(&api, report(MAC)).await.is(404);
}

/// Everything in a report must identify one node; otherwise the answer gives no reason.
#[tokio::test]
async fn the_node_is_found_by_uuid_by_addresses_and_by_its_bmc() {
    let api = Api::new();
    let bmc = |address: &'static str| {
        move |node: &mut Node| {
            node.driver_info.insert("redfish_address".into(), format!("https://{address}:8443").into());
        }
    };
    let a = inspected(&api, "a", bmc("192.0.2.1")).await;
    let b = inspected(&api, "b", bmc("192.0.2.2")).await;
    // Two servers in one chassis.
    inspected(&api, "c1", bmc("192.0.2.3")).await;
    inspected(&api, "c2", bmc("192.0.2.3")).await;
    // Not inspected: its BMC is not considered.
    api.node_with("idle", ProvisionState::Manageable, bmc("192.0.2.9")).await;
    api.port(&a, MAC).await;
    api.port(&b, "52:54:00:12:34:57").await;
    let stranger = "52:54:00:ee:ee:99";
    let both =
        json!({"inventory": {"interfaces": [{"mac_address": MAC}, {"mac_address": "52:54:00:12:34:57"}]}});
    let with = |mac: &str, key: &str, value: Value| {
        let mut body = report(mac);
        body["inventory"][key] = value;
        body
    };
    let unknown = uuid::Uuid::new_v4();
    let before = api.everything().await;
    for (query, body) in [
        (None, report(stranger)),
        (None, both),
        (Some(unknown), report(MAC)),
        (Some(b.uuid), report(MAC)),
        (None, with(MAC, "bmc_address", json!("192.0.2.2"))),
        (None, with(stranger, "bmc_address", json!("192.0.2.3"))),
        (None, with(stranger, "bmc_address", json!("192.0.2.9"))),
        (None, with(stranger, "bmc_address", json!("bmc.example"))),
        (Some(a.uuid), with(stranger, "bmc_address", json!("192.0.2.2"))),
    ] {
        let query = query.map(|uuid| format!("?node_uuid={uuid}")).unwrap_or_default();
        let answer = api.at(84, "POST", &format!("{PATH}{query}"), Some(body.clone())).await;
        assert_eq!((answer.status, answer.fault().as_str()), (404, NOT_FOUND), "{query} {body}");
    }
    assert_eq!(api.everything().await, before);
    for node in [&a, &b] {
        assert_eq!(api.store.inventory(node.uuid).await.unwrap(), None);
    }
    let by_bmc = with(stranger, "bmc_v6address", Value::Null);
    let by_bmc = {
        let mut body = by_bmc;
        body["inventory"]["bmc_address"] = json!("192.0.2.2");
        body
    };
    assert_eq!(send_report(&api, by_bmc).await.is(202).body["uuid"], json!(b.uuid));
    // A BMC that reports another address of itself than the one it is reached by is no contradiction.
    let path = format!("{PATH}?node_uuid={}", a.uuid);
    api.at(84, "POST", &path, Some(with(MAC, "bmc_address", json!("198.51.100.7")))).await.is(202);
}

#[tokio::test]
async fn bad_reports_are_named_and_change_nothing() {
    let api = Api::new();
    let node = inspected(&api, "n", |_| {}).await;
    api.port(&node, MAC).await;
    let many: Vec<_> = (0..257).map(|_| json!({"mac_address": MAC})).collect();
    for (body, says) in [
        (json!({"inventory": {"interfaces": many}}), "257 interfaces are too many"),
        (
            json!({"inventory": {"interfaces": [{"mac_address": MAC}, {"mac_address": 5}]}}),
            "inventory.interfaces[1].mac_address",
        ),
        (
            json!({"inventory": {"interfaces": [{"mac_address": MAC}], "bmc_v6address": []}}),
            "inventory.bmc_v6address",
        ),
        (json!({"inventory": [{"interfaces": []}]}), "(field \"inventory\")"),
        (json!({"inventory": {"interfaces": "x"}}), "(field \"inventory.interfaces\")"),
    ] {
        let fault = send_report(&api, body).await.is(400).fault();
        assert!(fault.contains(says), "{fault}");
    }
    // Larger than an inventory may be; larger than is read at all.
    let mut large = report(MAC);
    large["extra"] = "x".repeat(store::inventory::MAX).into();
    let fault = send_report(&api, large).await.is(413).fault();
    assert!(fault.contains(&format!("node {} has", node.uuid)), "{fault}");
    let huge = Body::from(vec![b' '; 9 << 20]);
    let request = Request::post(PATH).header("Content-Type", "application/json");
    api.raw(request.body(huge).unwrap()).await.is(413).fault();
    assert_eq!(api.store.inventory(node.uuid).await.unwrap(), None);
    // The ramdisk's logs may be large, and are not kept.
    let mut logs = report(MAC);
    logs["logs"] = "x".repeat(store::inventory::MAX).into();
    send_report(&api, logs).await.is(202);
    assert_eq!(api.store.inventory(node.uuid).await.unwrap().unwrap().plugin_data, json!({"error": null}));
}

/// Nothing above 256 KiB is read of a stranger.
#[tokio::test]
async fn a_large_report_is_read_only_while_a_node_waits() {
    let api = Api::new();
    let mut large = report(MAC);
    large["extra"] = "x".repeat(300 << 10).into();
    send_report(&api, large.clone()).await.is(413).fault();
    let idle = api.node("idle", ProvisionState::Available).await;
    api.port(&idle, MAC).await;
    send_report(&api, large.clone()).await.is(413).fault();
    let uuid = idle.uuid;
    let to_idle =
        Request::post(format!("{PATH}?node_uuid={uuid}")).header("x-openstack-ironic-api-version", "1.84");
    let to_idle = to_idle.header("content-type", "application/json");
    api.raw(to_idle.body(Body::from(large.to_string())).unwrap()).await.is(413).fault();

    let node = inspected(&api, "n", |_| {}).await;
    send_report(&api, large.clone()).await.is(404).fault();
    large["inventory"]["interfaces"][0]["mac_address"] = json!("52:54:00:12:34:57");
    api.port(&node, "52:54:00:12:34:57").await;
    send_report(&api, large).await.is(202);
    assert!(api.store.inventory(node.uuid).await.unwrap().is_some());
}

#[tokio::test]
async fn secrets_in_an_inventory_are_masked() {
    let api = Api::new();
    let node = inspected(&api, "n", |_| {}).await;
    api.port(&node, MAC).await;
    let mut body = report(MAC);
    body["extra"] = json!({"bmc": {"password": "hunter2"}});
    send_report(&api, body).await.is(202);
    let shown = api.get("/v1/nodes/n/inventory").await.is(200);
    assert_eq!(shown.body["plugin_data"]["extra"]["bmc"]["password"], "******");
    assert!(!shown.text.contains("hunter2"));
}

/// Since 1.84 the answer is that of a lookup, with the token, once.
#[tokio::test]
async fn in_1_84_the_agent_gets_its_token_here() {
    let api = Api::new();
    let node = inspected(&api, "n", |_| {}).await;
    api.port(&node, MAC).await;
    let first = api.at(84, "POST", PATH, Some(report(MAC))).await.is(202).body;
    let token = first["config"]["agent_token"].as_str().unwrap();
    assert_eq!(api.store.contact(node.uuid).await.unwrap().token.as_deref(), Some(token));
    let again = api.at(84, "POST", PATH, Some(report(MAC))).await.is(202).body;
    assert_eq!(again["config"]["agent_token"], "******");
}

/// Finding 10 of the security review: the report of any client was taken, 20 ms after power-on.
#[tokio::test]
async fn a_report_shows_the_nonce_of_its_boot() {
    let api = Api::demanding_nonce();
    let node = inspected(&api, "n", |_| {}).await;
    api.port(&node, MAC).await;
    let boot = Boot::fresh();
    let nonce = boot.nonce.clone();
    api.store.forget_agent(node.uuid, Some(boot), None).await.unwrap();
    send_report(&api, report(MAC)).await.is(404);
    assert_eq!(api.store.inventory(node.uuid).await.unwrap(), None);
    let send = |nonce: &BootNonce| {
        let path = format!("/boot-nonce/{}{PATH}", nonce.expose());
        Request::post(path)
            .header("Content-Type", "application/json")
            .body(Body::from(report(MAC).to_string()))
            .unwrap()
    };
    api.raw(send(&BootNonce::fresh())).await.is(404);
    let history = api.store.history(node.uuid).await.unwrap();
    assert!(
        history.iter().any(|event| event.text.contains("shows the nonce of another boot")),
        "{history:?}"
    );
    let path = format!("/boot-nonce/{}{PATH}", nonce.expose());
    let request = Request::post(path).header("Content-Type", "application/json");
    api.raw(request.body(Body::from(report(MAC).to_string())).unwrap()).await.is(202);
    assert!(api.store.inventory(node.uuid).await.unwrap().is_some());
}
