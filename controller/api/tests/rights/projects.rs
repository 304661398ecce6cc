//! A project sees and makes what is its own.

use super::callers::User;
use super::world::{ABSENT, CERTIFICATE, RESOURCE, World};
use api::auth::Role;
use axum::body::Body;
use axum::http::Request;
use model::history::{EventKind, Severity};
use model::{Bundle, Event, Node, ProvisionState, Scope, Timestamp};
use serde_json::{Value, json};

fn user(relation: &'static str, role: Role) -> String {
    User { relation, role }.header()
}

fn names(answer: &Value, list: &str, field: &str) -> Vec<String> {
    let items = answer[list].as_array().expect("a list");
    items.iter().map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn lists_hold_what_is_the_callers() {
    let world = World::guarded().await;
    let shape = |node: &mut Node| drop(node.other.insert("owner".into(), "p-stranger".into()));
    let theirs = world.api.node_with("theirs", ProvisionState::Enroll, shape).await;
    world.api.port(&theirs, "52:54:00:00:00:09").await;
    world.api.node("nobodys", ProvisionState::Enroll).await;
    let nodes = [
        ("system", vec!["n", "theirs", "nobodys"]),
        ("owner", vec!["n"]),
        ("lessee", vec!["n"]),
        ("stranger", vec!["theirs"]),
    ];
    for (relation, expected) in nodes {
        let header = user(relation, Role::Reader);
        let get = async |path: String| world.ask("GET", &path, Some(&header), None).await;
        for path in ["/v1/nodes", "/v1/nodes/detail", "/v1/nodes?sort_key=name&limit=2"] {
            let mut found = names(&get(path.to_owned()).await.is(200).body, "nodes", "name");
            let mut expected = expected.clone();
            if path.contains("limit") {
                expected.sort_unstable();
                expected.truncate(2);
            }
            found.sort();
            let mut expected = expected.clone();
            expected.sort_unstable();
            assert_eq!(found, expected, "{path} by {relation}");
        }
        let ports = names(&get("/v1/ports".into()).await.is(200).body, "ports", "address");
        let own = |address: &str| ports.iter().any(|port| port == address);
        assert_eq!(own("52:54:00:00:00:01"), expected.contains(&"n"), "{relation}: {ports:?}");
        assert_eq!(own("52:54:00:00:00:09"), expected.contains(&"theirs"), "{relation}: {ports:?}");
        let by_address = get("/v1/ports?address=52:54:00:00:00:09".into()).await.is(200).body;
        assert_eq!(names(&by_address, "ports", "address").len(), usize::from(expected.contains(&"theirs")));
        let certificates =
            get(format!("/v1/anneal/certificates?node={}", world.node.uuid)).await.is(200).body;
        assert_eq!(
            names(&certificates, "certificates", "id").contains(&CERTIFICATE.to_owned()),
            relation != "stranger"
        );
        if relation != "system" {
            get("/v1/nodes?project=p-other".into()).await.is(403);
            get(format!("/v1/nodes?project=p-{relation}")).await.is(200);
            get(format!("/v1/nodes?marker={ABSENT}")).await.is(404);
        }
    }
    let header = user("stranger", Role::Admin);
    let marker =
        world.ask("GET", &format!("/v1/nodes?marker={}", world.node.uuid), Some(&header), None).await;
    assert!(marker.is(404).fault().contains("could not be found"));
}

/// Until 1.91 the suffix `.json` of a path may be the end of a name: the guard finds the same node by it as the
/// handler, and the rights are those by its UUID.
#[tokio::test]
async fn the_rights_of_a_name_that_ends_in_json_are_those_of_its_node() {
    let world = World::guarded().await;
    let of = |owner: &'static str, lessee: &'static str| {
        move |node: &mut Node| {
            node.other.insert("owner".into(), owner.into());
            node.other.insert("lessee".into(), lessee.into());
        }
    };
    let blade =
        world.api.node_with("blade.json", ProvisionState::Enroll, of("p-owner", "p-lessee")).await.uuid;
    // What is found first is the name without it, by whom it is seen.
    let plain = world.api.node_with("twin", ProvisionState::Enroll, of("p-stranger", "")).await.uuid;
    let suffixed = world.api.node_with("twin.json", ProvisionState::Enroll, of("p-owner", "")).await.uuid;
    let ask = |method: &'static str, path: String, user: User, body: Option<Value>| {
        let request = Request::builder()
            .header("Content-Type", "application/json")
            .method(method)
            .uri(path)
            .header("X-OpenStack-Ironic-API-Version", "1.90")
            .header("Authorization", user.header());
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        world.api.raw(request.body(body).unwrap())
    };
    let change = json!([{"op": "replace", "path": "/description", "value": "changed"}]);
    let mut seen = std::collections::BTreeSet::new();
    for user in User::all() {
        for (method, body) in [("GET", None), ("PATCH", Some(change.clone()))] {
            let by_uuid = ask(method, format!("/v1/nodes/{blade}"), user, body.clone()).await;
            let by_name = ask(method, "/v1/nodes/blade.json".into(), user, body).await;
            assert_eq!(by_name.status, by_uuid.status, "{method} by {}: {}", user.name(), by_name.text);
            if by_name.status == 200 {
                assert_eq!(by_name.body["uuid"], json!(blade));
            }
            seen.insert((method, user.relation, by_name.status));
        }
        let found = ask("GET", "/v1/nodes/twin.json".into(), user, None).await;
        let expected = match user.relation {
            "owner" => json!(suffixed),
            "lessee" => Value::Null,
            _ => json!(plain),
        };
        if found.status == 200 || user.relation == "lessee" {
            assert_eq!(found.body["uuid"], expected, "{}", user.name());
        }
    }
    for right in [
        ("GET", "owner", 200),
        ("GET", "lessee", 200),
        ("GET", "stranger", 404),
        ("PATCH", "owner", 200),
        ("PATCH", "owner", 403),
        ("PATCH", "stranger", 404),
    ] {
        assert!(seen.contains(&right), "{right:?} is not in {seen:?}");
    }
}

/// Two ways to name a node in one query: the one that is asked for is the one that is answered for.
#[tokio::test]
async fn a_query_with_two_names_has_the_rights_of_the_node_that_is_validated() {
    let world = World::guarded().await;
    let shape = |node: &mut Node| drop(node.other.insert("owner".into(), "p-lessee".into()));
    world.api.node_with("own", ProvisionState::Enroll, shape).await;
    let mut refused = 0;
    for user in User::all().filter(|user| user.relation == "lessee") {
        let ask = async |query: &str| {
            let path = format!("/v1/nodes/validate?{query}");
            world.ask("GET", &path, Some(&user.header()), None).await.status
        };
        let alone = ask("node_uuid=n").await;
        assert_eq!(ask("node=own&node_uuid=n").await, alone, "{}", user.name());
        refused += usize::from(alone == 403 && ask("node=own").await == 200);
    }
    assert!(refused > 0, "no caller has different rights to the two nodes");
}

#[tokio::test]
async fn a_node_that_a_project_enrols_is_its_own() {
    let world = World::guarded().await;
    let enrol = |header: String, body: Value| {
        let world = &world;
        async move { world.ask("POST", "/v1/nodes", Some(&header), Some(body)).await }
    };
    let admin = user("stranger", Role::Admin);
    let mine = enrol(admin.clone(), json!({"driver": "fake-hardware", "name": "mine"})).await.is(201).body;
    assert_eq!(mine["owner"], "p-stranger");
    enrol(admin.clone(), json!({"driver": "fake-hardware", "owner": "p-stranger"})).await.is(201);
    let before = world.api.everything().await;
    let answer = enrol(admin.clone(), json!({"driver": "fake-hardware", "owner": "p-owner"})).await.is(400);
    assert!(answer.fault().contains("other than your own project"));
    enrol(user("stranger", Role::Manager), json!({"driver": "fake-hardware"})).await.is(403);
    // Below a node of another project, visible or not, alike.
    for (who, parent) in [
        ("stranger", world.node.uuid.to_string()),
        ("stranger", ABSENT.into()),
        ("lessee", world.node.uuid.to_string()),
    ] {
        let child = json!({"driver": "fake-hardware", "parent_node": parent});
        let answer = enrol(user(who, Role::Admin), child).await.is(400);
        assert!(answer.fault().contains("parent_node"), "{}", answer.text);
    }
    assert_eq!(world.api.everything().await, before);
    let child = json!({"driver": "fake-hardware", "parent_node": mine["uuid"]});
    enrol(admin.clone(), child).await.is(201);

    // What is unique is unique among all, also objects that the caller does not see.
    enrol(admin.clone(), json!({"driver": "fake-hardware", "name": "n"})).await.is(409);
    world.api.name_port(&world.port, "eth").await;
    let twin = json!({"node_uuid": mine["uuid"], "address": "52:54:00:00:00:0a", "name": "eth"});
    world.ask("POST", "/v1/ports", Some(&admin), Some(twin)).await.is(409);
    world.ask("DELETE", "/v1/nodes/mine", Some(&user("stranger", Role::Manager)), None).await.is(403);
    world.ask("DELETE", "/v1/nodes/mine", Some(&admin), None).await.is(204);
}

#[tokio::test]
async fn a_port_does_not_leave_for_the_node_of_another() {
    let world = World::guarded().await;
    let mut moves = Vec::new();
    for (name, owner, lessee) in
        [("theirs", "p-stranger", ""), ("leased", "p-stranger", "p-owner"), ("own", "p-owner", "")]
    {
        let shape = |node: &mut Node| {
            node.other.insert("owner".into(), owner.into());
            node.other.insert("lessee".into(), lessee.into());
        };
        moves.push((name, world.api.node_with(name, ProvisionState::Enroll, shape).await.uuid));
    }
    let path = format!("/v1/ports/{}", world.port.uuid);
    for ((name, node), status) in moves.into_iter().zip([400, 403, 200]) {
        let before = world.api.everything().await;
        let ops = json!([{"op": "replace", "path": "/node_uuid", "value": node}]);
        let answer = world.ask("PATCH", &path, Some(&user("owner", Role::Manager)), Some(ops)).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.text);
        assert_eq!(world.api.everything().await == before, status != 200);
    }
}

/// Steps of a runbook were chosen by its owner: the right to use it is needed in addition to that of the verb.
#[tokio::test]
async fn a_runbook_is_used_only_with_ironics_policy() {
    let mut refused = 0;
    for user in User::all().filter(|user| ["system", "owner"].contains(&user.relation)) {
        let world = World::guarded().await;
        let body = json!({"target": "clean", "runbook": RESOURCE.to_string()});
        let path = "/v1/nodes/n/states/provision";
        let answer = world.ask("PUT", path, Some(&user.header()), Some(body)).await;
        if !user.may("baremetal:node:set_provision_state") {
            continue;
        }
        if user.may("baremetal:runbook:use") {
            assert_ne!(answer.status, 403, "{}: {}", user.name(), answer.text);
        } else {
            refused += 1;
            assert!(answer.is(403).fault().ends_with("baremetal:runbook:use"), "{}", user.name());
        }
    }
    assert!(refused > 0, "no caller has one right without the other");
}

/// They may hold how to log in to a volume.
#[tokio::test]
async fn properties_of_a_volume_target_are_shown_only_with_ironics_policy() {
    let world = World::guarded().await;
    let mut redacted = 0;
    for user in User::all().filter(|user| user.may("baremetal:volume:get")) {
        for path in [format!("/v1/volume/targets/{RESOURCE}"), "/v1/volume/targets?detail=true".to_owned()] {
            let body = world.ask("GET", &path, Some(&user.header()), None).await.is(200).body;
            let hidden = body.to_string().contains("redacted_contents");
            assert_eq!(
                hidden,
                !user.may("baremetal:volume:view_target_properties"),
                "{path} by {}",
                user.name()
            );
            redacted += usize::from(hidden);
        }
    }
    assert!(redacted > 0, "no caller has one right without the other");
}

/// The disks may contain what erasing protects from these very projects.
#[tokio::test]
async fn only_an_administrator_of_the_system_overrides_a_failed_cleaning() {
    let world = World::guarded().await;
    let shape = |node: &mut Node| {
        node.other.insert("owner".into(), "p-owner".into());
        node.other.insert("lessee".into(), "p-lessee".into());
    };
    let failed = world.api.node_with("failed", ProvisionState::CleanFail, shape).await;
    let path = format!("/v1/nodes/{}/states/provision", failed.uuid);
    let overrides = json!({"target": "available", "reason": "disks removed"});
    let administrator = User { relation: "system", role: Role::Admin };
    for user in User::all().filter(|user| *user != administrator) {
        let answer = world.ask("PUT", &path, Some(&user.header()), Some(overrides.clone())).await;
        let expected = if user.relation == "stranger" { 404 } else { 403 };
        assert_eq!(answer.status, expected, "{}: {}", user.name(), answer.text);
        assert_eq!(world.api.store_node(&failed).await, failed, "{}", user.name());
    }
    world.ask("PUT", &path, Some(&administrator.header()), Some(overrides)).await.is(202);
    let events = world.api.store.history(failed.uuid).await.unwrap();
    assert!(events[0].text.contains("override by an administrator (disks removed)"), "{}", events[0].text);
    assert_eq!(events[0].sender.as_ref().unwrap().user, Some(administrator.name()));
}

/// Rights to an event are those to the history of its node, as it is owned now; of a node that is gone, as it was.
#[tokio::test]
async fn a_project_reads_the_events_of_the_nodes_that_it_owns() {
    let world = World::guarded().await;
    let shape = |node: &mut Node| drop(node.other.insert("owner".into(), "p-stranger".into()));
    let theirs = world.api.node_with("theirs", ProvisionState::Enroll, shape).await;
    let mut theirs = world.api.store.update_node(theirs, vec![flag("theirs")], None).await.unwrap();
    let gone = world.api.node_with("gone", ProvisionState::Enroll, shape).await;
    world.api.store.delete_node(gone.uuid, gone.version, vec![flag("gone")]).await.unwrap();
    world.api.store.put_bundle(bundle(Scope::Node(theirs.uuid)), flag("was added")).await.unwrap();
    let read = async |relation, path: &str| {
        let header = user(relation, Role::Reader);
        let page = world.ask("GET", path, Some(&header), None).await.is(200).body;
        (names(&page, "events", "text"), page["next"].clone())
    };
    let (all, end) = read("system", "/v1/anneal/events").await;
    let own = ["noted", "certificate 1 of the node (erased) was stored"].map(str::to_owned).to_vec();
    assert!(
        ["theirs", "gone"]
            .into_iter()
            .chain(own.iter().map(String::as_str))
            .all(|text| all.iter().any(|of| of == text))
    );
    // The owner of a node need not know of its bundles.
    let added = format!("bundle acme 1 for node:{} was added", theirs.uuid);
    assert!(all.contains(&added), "{all:?}");
    for (relation, expected) in [
        ("owner", own.clone()),
        ("lessee", Vec::new()),
        ("stranger", vec!["theirs".to_owned(), "gone".to_owned()]),
    ] {
        assert_eq!(read(relation, "/v1/anneal/events").await, (expected, end.clone()), "{relation}");
    }
    // The history of a node goes with it to another owner.
    theirs.other.insert("owner".into(), "p-owner".into());
    world.api.store.update_node(theirs.clone(), Vec::new(), None).await.unwrap();
    assert_eq!(read("stranger", "/v1/anneal/events").await.0, ["gone"]);
    let of_one = format!("/v1/anneal/events?node={}", theirs.uuid);
    assert_eq!(read("owner", &of_one).await.0, ["theirs"]);
    let hidden =
        world.ask("GET", "/v1/anneal/events?node=theirs", Some(&user("stranger", Role::Admin)), None).await;
    assert_eq!(hidden.status, 404);
}

fn bundle(scope: Scope) -> Bundle {
    Bundle {
        name: "acme".to_owned(),
        scope,
        digest: "a".repeat(64),
        size: 1,
        version: "1".to_owned(),
        vendor: "ACME".to_owned(),
        signed_by: None,
        manifest: serde_json::Map::new(),
        created_at: Timestamp(0),
    }
}

fn flag(text: &str) -> Event {
    Event::new(EventKind::Flag, Severity::Info, text.to_owned(), Timestamp(1))
}
