//! Machines that no node is known for: whose report makes a node, what their agents hear, and what operators decide.

use crate::common::{Answer, Api};
use api::{ClientAddress, DiscoverySettings, Settings};
use axum::body::Body;
use axum::http::Request;
use model::boot::BootNonce;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, NotBooted, UnknownBoot};
use model::interface::AddPorts;
use model::{Contact, ProvisionState, ResourceKind, Timestamp};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use store::UnknownBootGrant;
use uuid::Uuid;

const MAC: &str = "52:54:00:12:34:56";
const OTHER: &str = "52:54:00:12:34:57";
const INSIDE: [u8; 4] = [10, 9, 0, 7];
const NOT_FOUND: &str = "Resource could not be found.";
/// When the clock of the tests begins.
const START: Timestamp = Timestamp(1_795_229_965_688_786);
const PATH: &str = "/v1/anneal/discovery";

fn settings() -> DiscoverySettings {
    let limits = DiscoveryLimits { wait: Duration::from_secs(3600), per_minute: 5, waiting: 10 };
    let networks = vec!["10.9.0.0/24".parse().unwrap()];
    DiscoverySettings { networks, limits, driver: "redfish".to_owned(), add_ports: AddPorts::Pxe }
}

fn api() -> Api {
    Api::with(Settings { discovery: Some(settings()), ..Settings::default() })
}

async fn boots(api: &Api, mac: &str, at: Timestamp) -> UnknownBootGrant {
    let boot = UnknownBoot { mac: mac.parse().unwrap(), from: INSIDE.into(), at };
    api.store.boot_unknown(boot, settings().limits).await.unwrap()
}

/// A machine that was booted, and its nonce.
async fn booted(api: &Api) -> (Uuid, String) {
    let nonce = boots(api, MAC, START).await.expect("it is booted");
    (DiscoveredMachine::id_of(&nonce).expect("its id"), nonce.expose().to_owned())
}

fn report(macs: &[&str]) -> Value {
    let interface =
        |(number, mac): (usize, &&str)| json!({"name": format!("eno{number}"), "mac_address": mac});
    let interfaces: Vec<_> = macs.iter().enumerate().map(interface).collect();
    json!({
        "inventory": {
            "interfaces": interfaces, "cpu": {"count": 8}, "bmc_address": "192.0.2.9",
            "boot": {"pxe_interface": macs.first()},
        },
        "error": null,
    })
}

/// A request of an agent at this address that shows this nonce.
async fn asks(api: &Api, from: Option<IpAddr>, nonce: &str, path: &str, body: Option<Value>) -> Answer {
    // As our agent asks: it names no version with a report.
    let (method, version) = if body.is_some() { ("POST", "1.1") } else { ("GET", "1.62") };
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("X-OpenStack-Ironic-API-Version", version)
        .header("Content-Type", "application/json")
        .header(agent_protocol::NONCE_HEADER, nonce);
    let mut request = request.body(body).unwrap();
    if let Some(from) = from {
        request.extensions_mut().insert(ClientAddress(from));
    }
    api.raw(request).await
}

async fn reports(api: &Api, from: [u8; 4], nonce: &str, macs: &[&str]) -> Answer {
    asks(api, Some(from.into()), nonce, "/v1/continue_inspection", Some(report(macs))).await
}

async fn looks_up(api: &Api, nonce: &str) -> Answer {
    asks(api, Some(INSIDE.into()), nonce, &format!("/v1/lookup?addresses={MAC}"), None).await
}

/// What the only machine is shown as.
async fn shown(api: &Api) -> Value {
    let listed = api.get(PATH).await.is(200).body;
    let machines = listed["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 1, "{listed}");
    machines[0].clone()
}

#[tokio::test]
async fn a_report_makes_a_node_in_enroll_and_its_agent_waits_without_a_token() {
    let api = api();
    let (id, nonce) = booted(&api).await;
    assert_eq!(shown(&api).await["state"], "booted");
    let answer = reports(&api, INSIDE, &nonce, &[MAC, OTHER]).await.is(202).body;
    assert_eq!(answer["anneal_discovery"]["verdict"], "waiting");
    let left = answer["anneal_discovery"]["seconds_left"].as_u64().unwrap();
    assert!((3590..=3600).contains(&left), "{left}");
    let uuid: Uuid = answer["uuid"].as_str().unwrap().parse().unwrap();

    let node = api.store.node(uuid).await.unwrap();
    assert_eq!((node.provision_state, node.driver.as_str()), (ProvisionState::Enroll, "redfish"));
    assert_eq!(
        (&node.driver_info["redfish_address"], &node.properties["cpus"]),
        (&json!("192.0.2.9"), &json!(8))
    );
    assert!(node.run.is_none() && node.next_wake_at.is_none(), "nothing is done with it");
    let ports = api.store.resources(ResourceKind::Port, Some(uuid)).await.unwrap();
    assert_eq!(ports.iter().map(|port| port.address()).collect::<Vec<_>>(), [MAC], "only what was booted");
    let kept = api.store.inventory(uuid).await.unwrap().unwrap();
    assert_eq!(kept.inventory, report(&[MAC, OTHER])["inventory"]);
    let history = api.store.history(uuid).await.unwrap();
    assert!(
        history[0].text.starts_with(&format!("discovered: booted from {MAC} by 10.9.0.7")),
        "{history:?}"
    );
    let machine = shown(&api).await;
    assert_eq!((&machine["state"], &machine["node_uuid"]), (&json!("waiting"), &json!(uuid)));
    assert_eq!((&machine["uuid"], &machine["macs"]), (&json!(id), &json!([MAC, OTHER])));
    assert!(!machine.to_string().contains(&nonce), "the nonce is a secret");

    // Its lookups bring a verdict; those of others, and its heartbeats, nothing.
    let answer = looks_up(&api, &nonce).await.is(200);
    assert_eq!(answer.body["anneal_discovery"]["verdict"], "waiting");
    assert!(answer.body.get("config").is_none() && answer.body.get("node").is_none(), "{}", answer.text);
    api.at(62, "GET", &format!("/v1/lookup?addresses={MAC}"), None).await.is(404);
    api.at(62, "GET", &format!("/v1/lookup?node_uuid={uuid}"), None).await.is(404);
    let beat = json!({"callback_url": "https://10.9.0.7:9999", "agent_token": "x".repeat(43), "agent_version": "0.1.0"});
    let beat = api.at(68, "POST", &format!("/v1/heartbeat/{uuid}"), Some(beat)).await.is(400);
    assert!(beat.text.contains("agent token"), "{}", beat.text);
    assert_eq!(api.store.contact(uuid).await.unwrap(), Contact::default());

    // An agent that missed the answer may repeat its report: nothing changes.
    let before = api.everything().await;
    let again = reports(&api, INSIDE, &nonce, &[MAC]).await.is(202).body;
    assert_eq!(again["uuid"], json!(uuid));
    assert_eq!(api.everything().await, before);
}

#[tokio::test]
async fn what_is_not_the_machine_that_was_booted_makes_nothing() {
    let api = api();
    let (id, nonce) = booted(&api).await;
    let known = api.node("known", ProvisionState::Available).await;
    api.port(&known, OTHER).await;
    let before = api.everything().await;
    let wrong = format!("discovery-{}-{}", id.simple(), "0".repeat(64));
    let absent = format!("discovery-{}-{}", Uuid::new_v4().simple(), "0".repeat(64));
    for (why, from, nonce, macs) in [
        ("another network", [10, 9, 1, 7], nonce.as_str(), &[MAC][..]),
        ("another nonce", INSIDE, wrong.as_str(), &[MAC]),
        ("no such machine", INSIDE, absent.as_str(), &[MAC]),
        ("the nonce of an ordinary boot", INSIDE, BootNonce::fresh().expose(), &[MAC]),
        ("another MAC address than was booted", INSIDE, nonce.as_str(), &["52:54:00:12:34:99"]),
        ("the MAC address of a known node alone", INSIDE, nonce.as_str(), &[OTHER]),
        ("the MAC address of a known node besides", INSIDE, nonce.as_str(), &[MAC, OTHER]),
    ] {
        let answer = reports(&api, from, nonce, macs).await;
        assert_eq!((answer.status, answer.fault().as_str()), (404, NOT_FOUND), "{why}");
        assert_eq!(api.everything().await, before, "{why}");
        assert_eq!(shown(&api).await["state"], "booted", "{why}");
    }
    let unknown_address = asks(&api, None, &nonce, "/v1/continue_inspection", Some(report(&[MAC]))).await;
    assert_eq!(unknown_address.status, 404);
    for wrong in [&wrong, &absent] {
        assert_eq!(looks_up(&api, wrong).await.is(404).fault(), NOT_FOUND);
    }
    // A server of a known node that has started by an interface that is no port goes on with its disk, by either.
    for mac in [MAC, OTHER] {
        assert!(boots(&api, mac, START).await.is_err(), "{mac}");
    }
    reports(&api, INSIDE, &nonce, &[MAC]).await.is(202);
}

#[tokio::test]
async fn a_late_report_makes_nothing_and_nor_does_one_where_nothing_is_discovered() {
    let late = api();
    let nonce = boots(&late, MAC, Timestamp(START.0 - 3_600_000_000)).await.expect("it is booted");
    reports(&late, INSIDE, nonce.expose(), &[MAC]).await.is(404);
    assert_eq!(shown(&late).await["state"], "booted");

    let off = Api::with(Settings::default());
    let (_, nonce) = booted(&off).await;
    reports(&off, INSIDE, &nonce, &[MAC]).await.is(404);
    looks_up(&off, &nonce).await.is(404);
    assert_eq!(off.store.nodes().await.unwrap(), []);
}

#[tokio::test]
async fn an_approved_machine_is_a_node_like_any_other() {
    let api = api();
    let (id, nonce) = booted(&api).await;
    let approve = format!("{PATH}/{id}/approve");
    let early = api.post(&approve, json!({})).await.is(409);
    assert!(early.fault().contains("has not reported"), "{}", early.text);
    let uuid = reports(&api, INSIDE, &nonce, &[MAC]).await.is(202).body["uuid"].clone();
    let forgotten = api.delete(&format!("{PATH}/{id}")).await.is(409);
    assert!(forgotten.fault().contains("approve or reject it first"), "{}", forgotten.text);

    let approved = api.post(&format!("{PATH}/{MAC}/approve"), json!({})).await.is(200).body;
    assert_eq!((&approved["state"], &approved["node_uuid"]), (&json!("approved"), &uuid));
    assert!(approved["decided_at"].is_string());
    api.post(&approve, json!({})).await.is(200);
    assert_eq!(looks_up(&api, &nonce).await.is(200).body["anneal_discovery"]["verdict"], "approved");
    let node: Uuid = uuid.as_str().unwrap().parse().unwrap();
    let history = api.store.history(node).await.unwrap();
    assert_eq!(history.iter().filter(|event| event.text == "discovery: approved by a user").count(), 1);
    assert_eq!(api.store.contact(node).await.unwrap(), Contact::default(), "no token for that boot");
    let rejected = api.post(&format!("{PATH}/{id}/reject"), json!({})).await.is(409);
    assert!(rejected.fault().contains("delete that"), "{}", rejected.text);
    api.delete(&format!("{PATH}/{id}")).await.is(204);
    api.store.node(node).await.expect("the node stays");
    assert_eq!(boots(&api, MAC, START).await, Err(NotBooted::Known));
}

#[tokio::test]
async fn a_rejected_machine_is_gone_and_stays_away_until_it_is_forgotten() {
    let api = api();
    let (id, nonce) = booted(&api).await;
    let uuid = reports(&api, INSIDE, &nonce, &[MAC, OTHER]).await.is(202).body["uuid"].clone();
    let rejected = api.post(&format!("{PATH}/{id}/reject"), json!({})).await.is(200).body;
    assert_eq!((&rejected["state"], &rejected["node_uuid"]), (&json!("rejected"), &Value::Null));
    assert_eq!(api.store.nodes().await.unwrap(), [], "{uuid}");
    assert_eq!(api.store.resources(ResourceKind::Port, None).await.unwrap(), []);
    assert_eq!(looks_up(&api, &nonce).await.is(200).body["anneal_discovery"]["verdict"], "rejected");
    let year = START.after(Duration::from_secs(365 * 86_400));
    for mac in [MAC, OTHER] {
        assert_eq!(boots(&api, mac, year).await, Err(NotBooted::Rejected), "{mac}");
    }
    api.post(&format!("{PATH}/{id}/approve"), json!({})).await.is(409);
    api.delete(&format!("{PATH}/{id}")).await.is(204);
    api.delete(&format!("{PATH}/{id}")).await.is(404);
    assert!(boots(&api, MAC, START).await.is_ok());
}

/// Without a word to discovery: who deletes the node has rejected it, who puts it to work has approved it.
#[tokio::test]
async fn what_is_done_to_the_node_decides_too() {
    let api = api();
    let (id, nonce) = booted(&api).await;
    let uuid = reports(&api, INSIDE, &nonce, &[MAC]).await.is(202).body["uuid"].as_str().unwrap().to_owned();
    let mut node = api.store.node_by_ident(&uuid).await.unwrap();
    node.provision_state = ProvisionState::Manageable;
    api.update(node).await;
    assert_eq!(shown(&api).await["state"], "approved");
    assert_eq!(looks_up(&api, &nonce).await.is(200).body["anneal_discovery"]["verdict"], "approved");
    api.delete(&format!("/v1/nodes/{uuid}")).await.is(204);
    assert_eq!(shown(&api).await["state"], "rejected");
    assert_eq!(looks_up(&api, &nonce).await.is(200).body["anneal_discovery"]["verdict"], "rejected");
    assert_eq!(boots(&api, MAC, START).await, Err(NotBooted::Rejected));
    api.delete(&format!("{PATH}/{id}")).await.is(204);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_named() {
    let api = api();
    let (id, _) = booted(&api).await;
    for (path, status, says) in [
        (format!("{PATH}/rack7/approve"), 400, "UUID or a MAC address"),
        (format!("{PATH}/{}/approve", Uuid::nil()), 404, "Discovered machine 00000000"),
        (format!("{PATH}/{OTHER}/reject"), 404, OTHER),
        (format!("{PATH}/{id}/reject?x=1"), 400, "x"),
    ] {
        let answer = api.post(&path, json!({})).await.is(status);
        assert!(answer.fault().contains(says), "{path}: {}", answer.fault());
    }
    api.post(&format!("{PATH}/{id}/reject"), json!({"why": "x"})).await.is(400);
    assert_eq!(shown(&api).await["state"], "booted");
    api.post(&format!("{PATH}/{id}/reject"), json!({})).await.is(200);
    assert_eq!(shown(&api).await["state"], "rejected");
}
