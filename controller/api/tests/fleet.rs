//! `GET /v1/anneal/fleet` and the search: counts, what needs someone, and what a project sees of it.

use crate::common::Api;
use crate::common::parts::Parts;
use crate::rights::callers::{User, users};
use api::Auth;
use api::auth::Role;
use axum::body::Body;
use axum::http::Request;
use model::{ConductorReport, Node, ProvisionState, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// Before the clock of the tests.
const PAST: Timestamp = Timestamp(1_795_000_000_000_000);

/// How many nodes are counted under a value.
fn count(fleet: &Value, field: &str, value: &Value) -> u64 {
    let counts = fleet["counts"][field].as_array().unwrap();
    counts.iter().find(|count| count["value"] == *value).map_or(0, |count| count["count"].as_u64().unwrap())
}

fn of_owner(owner: &str) -> impl FnOnce(&mut Node) {
    move |node| drop(node.other.insert("owner".into(), owner.into()))
}

#[tokio::test]
async fn nodes_are_counted_by_state_owner_class_and_conductor() {
    let api = Api::new();
    for number in 0..5 {
        let shape = |node: &mut Node| {
            node.resource_class = Some(if number < 3 { "large" } else { "small" }.to_owned());
            node.maintenance = number == 0;
            node.retired = number == 1;
        };
        api.node_with(&format!("n{number}"), ProvisionState::Manageable, shape).await;
    }
    api.node_with("owned", ProvisionState::Active, of_owner("p1")).await;
    let fleet = api.get("/v1/anneal/fleet").await.is(200).body;
    assert_eq!(
        (&fleet["nodes"], &fleet["maintenance"], &fleet["retired"]),
        (&json!(6), &json!(1), &json!(1))
    );
    let expected = [
        ("provision_state", json!("manageable"), 5),
        ("provision_state", json!("active"), 1),
        ("owner", json!("p1"), 1),
        ("owner", Value::Null, 5),
        ("resource_class", json!("large"), 3),
        ("resource_class", json!("small"), 2),
        ("conductor", json!("probe-conductor"), 6),
    ];
    for (field, value, nodes) in expected {
        assert_eq!(count(&fleet, field, &value), nodes, "{field} {value}: {fleet}");
    }
    assert_eq!(fleet["counts"]["provision_state"][0]["value"], "manageable", "the largest comes first");
    assert_eq!(
        fleet["others"],
        json!({"provision_state": 0, "owner": 0, "resource_class": 0, "conductor": 0})
    );
}

fn report(hostname: &str, group: Option<&str>) -> ConductorReport {
    ConductorReport {
        hostname: hostname.to_owned(),
        group: group.map(str::to_owned),
        drivers: Vec::new(),
        version: String::new(),
        agent_api: None,
        bmc_request_timeout_s: None,
        started_at: Timestamp(0),
        reported_at: Timestamp(0),
        alive_until: Timestamp(i64::MAX),
    }
}

/// The counts by conductor are those of the nodes as lists show them, whichever way they are computed.
#[tokio::test]
async fn nodes_are_counted_under_the_controller_that_drives_them() {
    let api = Api::new();
    for number in 0..40 {
        let shape = |node: &mut Node| {
            let group = ["", "rack1", "nowhere"][number % 3];
            node.other.insert("conductor_group".into(), group.into());
        };
        api.node_with(&format!("n{number}"), ProvisionState::Manageable, shape).await;
    }
    for alive in [
        vec![report("c1", None), report("c2", Some("rack1"))],
        vec![report("c1", None), report("c2", None), report("c3", Some("rack1"))],
        vec![report("c1", Some("rack1")), report("c2", Some("rack1"))],
    ] {
        api.members.replace(alive.clone());
        let fleet = api.get("/v1/anneal/fleet").await.is(200).body;
        let nodes = api.get("/v1/nodes?fields=conductor&limit=100").await.is(200).body;
        let nodes = nodes["nodes"].as_array().unwrap().clone();
        for conductor in [json!("c1"), json!("c2"), json!("c3"), Value::Null] {
            let expected = nodes.iter().filter(|node| node["conductor"] == conductor).count() as u64;
            assert_eq!(count(&fleet, "conductor", &conductor), expected, "{conductor} of {alive:?}");
        }
    }
}

#[tokio::test]
async fn what_needs_someone_is_named_with_the_reason_and_the_way_out() {
    let api = Api::new();
    api.node("well", ProvisionState::Available).await;
    let failed = |node: &mut Node| {
        node.maintenance = true;
        node.fault = Some("clean failure".to_owned());
        node.last_error = Some("disk S1 was not read back".to_owned());
    };
    api.node_with("failed", ProvisionState::CleanFail, failed).await;
    api.node("held", ProvisionState::CleanHold).await;
    api.node_with("late", ProvisionState::Cleaning, |node| node.next_wake_at = Some(PAST)).await;
    // Its power is looked at now and then, and nothing is to be done about it.
    api.node_with("idle", ProvisionState::Manageable, |node| node.next_wake_at = Some(PAST)).await;
    let repaired = |node: &mut Node| {
        node.maintenance = true;
        node.maintenance_reason = Some("a fan".to_owned());
    };
    api.node_with("repaired", ProvisionState::Manageable, repaired).await;
    let fleet = api.get("/v1/anneal/fleet").await.is(200).body;
    let needs = &fleet["needs"];
    let named: Vec<_> = needs["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["name"].clone(), node["kind"].clone()))
        .collect();
    let expected = [("failed", "failed"), ("held", "held"), ("late", "overdue"), ("repaired", "maintenance")];
    assert_eq!(named, expected.map(|(name, kind)| (json!(name), json!(kind))));
    assert_eq!(needs["counts"], json!({"failed": 1, "held": 1, "overdue": 1, "maintenance": 2}));
    assert_eq!(needs["more"], false);
    let node = |index: usize| &needs["nodes"][index];
    let reason = node(0)["reason"].as_str().unwrap();
    assert!(reason.starts_with("its cleaning failed or was aborted"), "{reason}");
    assert!(reason.ends_with(": disk S1 was not read back"), "{reason}");
    assert_eq!(node(0)["commands"][0]["verb"], "provide");
    assert_eq!(node(0)["commands"][0]["command"], "anneal node provide failed");
    assert_eq!(node(1)["commands"][0]["verb"], "unhold");
    assert!(node(2)["reason"].as_str().unwrap().contains("no controller has looked at it"), "{}", node(2));
    assert_eq!(node(3)["reason"], "in maintenance: a fan");
    let leaves =
        node(3)["commands"].as_array().unwrap().iter().find(|one| one["action"] == "unset_maintenance");
    assert_eq!(leaves.unwrap()["verb"], Value::Null);
}

#[tokio::test]
async fn a_hundred_nodes_are_named_and_all_are_counted() {
    let api = Api::new();
    for number in 0..103 {
        api.node(&format!("n{number}"), ProvisionState::CleanFail).await;
    }
    let fleet = api.get("/v1/anneal/fleet").await.is(200).body;
    assert_eq!(fleet["needs"]["nodes"].as_array().unwrap().len(), 100);
    assert_eq!((&fleet["needs"]["more"], &fleet["needs"]["counts"]["failed"]), (&json!(true), &json!(103)));
}

async fn as_user(api: &Api, user: User, path: &str) -> Value {
    let request = Request::get(path)
        .header("Authorization", user.header())
        .header("X-OpenStack-Ironic-API-Version", "1.115");
    api.raw(request.body(Body::empty()).unwrap()).await.is(200).body
}

#[tokio::test]
async fn a_project_counts_and_finds_its_own_nodes_only() {
    let api = Api::guarded(Auth::Basic(users()));
    let shape = |node: &mut Node| {
        node.other.insert("owner".into(), "p-owner".into());
        node.other.insert("lessee".into(), "p-lessee".into());
        node.last_error = Some("an address inside".to_owned());
    };
    api.node_with("rack-1", ProvisionState::CleanFail, shape).await;
    api.node_with("rack-2", ProvisionState::CleanFail, of_owner("p-other")).await;
    for (relation, nodes) in [("system", 2), ("owner", 1), ("lessee", 1), ("stranger", 0)] {
        let user = User { relation, role: Role::Reader };
        let fleet = as_user(&api, user, "/v1/anneal/fleet").await;
        assert_eq!(fleet["nodes"], nodes, "{relation}");
        assert_eq!(fleet["needs"]["nodes"].as_array().unwrap().len(), nodes, "{relation}");
        let others = fleet.to_string().contains("p-other");
        assert_eq!(others, relation == "system", "{relation}");
        // What BMC and agent said is not for who leases.
        let sees = fleet.to_string().contains("an address inside");
        assert_eq!(sees, matches!(relation, "system" | "owner"), "{relation}");
        let found = as_user(&api, user, "/v1/anneal/nodes?search=RACK").await;
        assert_eq!(found["nodes"].as_array().unwrap().len(), nodes, "{relation}");
    }
}

#[tokio::test]
async fn a_search_finds_names_and_uuids_in_any_case_and_goes_on_in_pages() {
    let api = Api::new();
    for name in ["Rack7-a", "rack7-b", "rack8-a"] {
        api.node(name, ProvisionState::Manageable).await;
    }
    let found = async |query: &str| {
        let page = api.get(&format!("/v1/anneal/nodes?{query}")).await.is(200).body;
        let names =
            page["nodes"].as_array().unwrap().iter().map(|node| node["name"].clone()).collect::<Vec<_>>();
        (names, page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(found("search=RACK7&sort_key=name").await.0, ["Rack7-a", "rack7-b"]);
    assert_eq!(found("search=nothing").await.0, Vec::<Value>::new());
    let uuid = api.store.node_by_ident("rack8-a").await.unwrap().uuid.to_string();
    assert_eq!(found(&format!("search={}", &uuid[..13].to_uppercase())).await.0, ["rack8-a"]);
    assert_eq!(found("search=rack&provision_state=available").await.0, Vec::<Value>::new());
    let (first, next) = found("search=rack&sort_key=name&limit=2").await;
    assert_eq!(first, ["Rack7-a", "rack7-b"]);
    let next = next.unwrap();
    assert!(next.contains("/v1/anneal/nodes?") && next.contains("search=rack"), "{next}");
    assert_eq!(found(next.split_once('?').unwrap().1).await.0, ["rack8-a"]);
    // Ironic's list has no such argument.
    api.get("/v1/nodes?search=rack").await.is(400);
}

fn data(part: &str) -> Value {
    let data = part.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
    serde_json::from_str(data).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_fleet_sends_what_changed_and_nothing_when_nothing_does() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = Parts::open(&api.router, "/v1/anneal/fleet", &[]).await;
        let first = stream.next().await.unwrap();
        assert!(first.starts_with("retry: 2000\nevent: fleet\ndata: {\"now\":\""), "{first}");
        assert_eq!(data(&first)["nodes"], 1);
        streams.push(stream);
    }
    // A write that changes nothing of what is shown.
    let mut same = node.clone();
    same.extra.insert("x".into(), json!(1));
    let node = api.store.update_node(same, Vec::new(), None).await.unwrap();
    for stream in &mut streams {
        assert_eq!(stream.next().await.as_deref(), Some(": keep-alive\n\n"));
    }
    let mut failed = node;
    failed.enter(ProvisionState::CleanFail, None, Timestamp(1_795_229_965_000_000));
    api.store.update_node(failed, Vec::new(), None).await.unwrap();
    for stream in &mut streams {
        let part = stream.within(Duration::from_secs(5)).await.expect("an event soon");
        assert_eq!(data(&part)["needs"]["counts"]["failed"], 1, "{part}");
    }
}
