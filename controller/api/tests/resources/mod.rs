//! Resources: one table for what all of them do, and a test for each rule of one alone.

mod rules;

use crate::common::{Api, keys};
use model::{PowerState, ProvisionState};
use serde_json::{Value, json};

/// One resource, as the tests make it.
struct Case {
    path: &'static str,
    list: &'static str,
    since: u16,
    /// Status of a POST before that.
    post_before: u16,
    /// A new one; `N` in it is a number of its own, `NODE` the node.
    new: Value,
    /// Keys in lists.
    short: &'static [&'static str],
    /// A PATCH that is taken, and what it makes of a field.
    patch: (Value, &'static str, Value),
    /// A value that each of these fields does not take.
    bad: &'static [(&'static str, &'static str)],
    /// What must be there.
    required: &'static [&'static str],
    /// Something no two may share: its field.
    unique: Option<&'static str>,
    /// Lists take `detail`, and have a path for it.
    detail: (bool, bool),
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn cases() -> Vec<Case> {
    vec![
        Case {
            path: "chassis",
            list: "chassis",
            since: 1,
            post_before: 404,
            new: json!({"description": "rack N"}),
            short: &["description", "links", "uuid"],
            patch: (
                json!([{"op": "replace", "path": "/description", "value": "x"}]),
                "description",
                json!("x"),
            ),
            bad: &[("description", "5"), ("extra", "[]"), ("uuid", "\"x\"")],
            required: &[],
            unique: None,
            detail: (true, true),
        },
        Case {
            path: "portgroups",
            list: "portgroups",
            since: 23,
            post_before: 404,
            new: json!({"node_uuid": "NODE", "address": "52:54:00:00:00:0N", "name": "bond-N"}),
            short: &["address", "links", "name", "uuid"],
            patch: (json!([{"op": "add", "path": "/mode", "value": "802.3ad"}]), "mode", json!("802.3ad")),
            bad: &[
                ("address", "\"x\""),
                ("name", "\"a b\""),
                ("properties", "5"),
                ("standalone_ports_supported", "\"maybe\""),
                ("node_uuid", "\"00000000-0000-4000-8000-000000000000\""),
                ("node_uuid", "null"),
            ],
            required: &["node_uuid"],
            unique: Some("address"),
            detail: (true, true),
        },
        Case {
            path: "volume/connectors",
            list: "connectors",
            since: 32,
            post_before: 404,
            new: json!({"node_uuid": "NODE", "type": "iqn", "connector_id": "iqn.2026-01.example:N"}),
            short: &["connector_id", "links", "node_uuid", "type", "uuid"],
            patch: (json!([{"op": "replace", "path": "/type", "value": "ip"}]), "type", json!("ip")),
            bad: &[("type", "null"), ("connector_id", "5"), ("extra", "\"x\""), ("node_uuid", "\"x\"")],
            required: &["connector_id", "node_uuid", "type"],
            unique: Some("connector_id"),
            detail: (true, false),
        },
        Case {
            path: "volume/targets",
            list: "targets",
            since: 32,
            post_before: 404,
            new: json!({"node_uuid": "NODE", "boot_index": "INDEX", "volume_id": "v", "volume_type": "iscsi"}),
            short: &["boot_index", "links", "node_uuid", "uuid", "volume_id", "volume_type"],
            patch: (json!([{"op": "replace", "path": "/volume_id", "value": "w"}]), "volume_id", json!("w")),
            bad: &[("boot_index", "\"0\""), ("volume_id", "null"), ("properties", "[]")],
            required: &["boot_index", "node_uuid", "volume_id", "volume_type"],
            unique: Some("boot_index"),
            detail: (true, false),
        },
        Case {
            path: "allocations",
            list: "allocations",
            since: 52,
            post_before: 405,
            new: json!({"name": "wish-N", "resource_class": "none-such"}),
            short: &[
                "candidate_nodes",
                "created_at",
                "extra",
                "last_error",
                "links",
                "name",
                "node_uuid",
                "owner",
                "resource_class",
                "state",
                "traits",
                "updated_at",
                "uuid",
            ],
            patch: (json!([{"op": "add", "path": "/extra/k", "value": 1}]), "extra", json!({"k": 1})),
            bad: &[
                ("name", "\"a b\""),
                ("traits", "[\"x\"]"),
                ("candidate_nodes", "[\"nosuch\"]"),
                ("candidate_nodes", "\"x\""),
                ("resource_class", "5"),
            ],
            required: &[],
            unique: Some("name"),
            detail: (false, false),
        },
        Case {
            path: "runbooks",
            list: "runbooks",
            since: 92,
            post_before: 405,
            new: json!({"name": "CUSTOM_N", "steps": [{"interface": "deploy", "step": "erase_devices", "order": 1}]}),
            short: &["links", "name", "uuid"],
            patch: (json!([{"op": "add", "path": "/public", "value": true}]), "public", json!(true)),
            bad: &[
                ("name", "\"a b\""),
                ("name", "null"),
                ("steps", "[]"),
                ("steps", "[{\"interface\": \"deploy\", \"step\": \"x\"}]"),
                ("steps", "[{\"interface\": \"nosuch\", \"step\": \"x\", \"order\": 0}]"),
                ("disable_ramdisk", "5"),
            ],
            required: &["name", "steps"],
            unique: Some("name"),
            detail: (true, false),
        },
        Case {
            path: "inspection_rules",
            list: "inspection_rules",
            since: 96,
            post_before: 405,
            new: json!({"priority": "INDEX", "actions": [{"op": "fail", "args": {"msg": "no"}}]}),
            short: &["description", "links", "phase", "priority", "uuid"],
            patch: (json!([{"op": "add", "path": "/description", "value": "x"}]), "description", json!("x")),
            bad: &[
                ("actions", "[]"),
                ("actions", "[{\"op\": \"nosuch\", \"args\": {}}]"),
                ("actions", "[{\"op\": \"fail\", \"args\": {}}]"),
                ("conditions", "[{\"op\": \"!!eq\", \"args\": {\"values\": []}}]"),
                ("priority", "-1"),
                ("priority", "10000"),
                ("phase", "\"nosuch\""),
            ],
            required: &["actions"],
            unique: None,
            detail: (true, false),
        },
    ]
}

impl Case {
    fn body(&self, number: u64, node: &str) -> Value {
        let text = self.new.to_string();
        let text = text.replace("\"INDEX\"", &number.to_string()).replace("NODE", node);
        serde_json::from_str(&text.replace('N', &number.to_string())).expect("a body")
    }
}

#[tokio::test]
async fn every_resource_is_made_listed_changed_and_removed() {
    for case in cases() {
        let api = Api::new();
        let node = api.node_with("n", ProvisionState::Manageable, |node| {
            node.power_state = Some(PowerState::Off);
        });
        let node = node.await.uuid.to_string().to_lowercase();
        let path = format!("/v1/{}", case.path);
        eprintln!("{path}");
        // Before its version.
        if case.since > 1 {
            let before = case.since - 1;
            api.at(before, "GET", &path, None).await.is(404);
            api.at(before, "POST", &path, Some(case.body(1, &node))).await.is(case.post_before);
            assert!(api.at(before, "GET", "/v1/", None).await.body.get(case.path).is_none());
        }
        let root = case.path.split('/').next().unwrap();
        assert!(api.get("/v1/").await.body[root][0]["href"].is_string());

        let mut made = Vec::new();
        for number in 1..=3 {
            let answer = api.post(&path, case.body(number, &node)).await.is(201);
            let uuid = answer.body["uuid"].as_str().unwrap().to_owned();
            let place = format!("http://127.0.0.1:6385{path}/{uuid}");
            assert_eq!(answer.header("location"), Some(place.as_str()));
            assert_eq!(answer.body["links"][0]["href"], place);
            let mut shown = api.get(&format!("{path}/{uuid}")).await.is(200).body;
            if case.path == "allocations" {
                // What has become of it is no part of the first answer.
                assert_eq!(shown["state"], "error");
                (shown["state"], shown["last_error"]) = (json!("allocating"), Value::Null);
            }
            assert_eq!(shown, answer.body);
            if let Some(name) = answer.body["name"].as_str() {
                assert_eq!(
                    api.get(&format!("{path}/{name}")).await.is(200).body["uuid"],
                    answer.body["uuid"]
                );
            }
            made.push(uuid);
        }
        let before = api.everything().await;
        reads(&api, &case, &path, &made).await;
        refuses(&api, &case, &path, &made, &node).await;
        assert_eq!(api.everything().await, before, "{path}: what was refused changed something");

        let item = format!("{path}/{}", made[1]);
        let (patch, field, value) = &case.patch;
        let patched = api.patch(&item, patch.clone()).await.is(200).body;
        assert_eq!(&patched[field], value);
        assert!(patched["updated_at"].is_string());
        assert_eq!(api.get(&item).await.body, patched);
        api.delete(&item).await.is(204);
        api.delete(&item).await.is(404);
        api.get(&item).await.is(404);
        assert_eq!(api.get(&path).await.body[case.list].as_array().unwrap().len(), 2);
    }
}

async fn reads(api: &Api, case: &Case, path: &str, made: &[String]) {
    let list = async |query: &str| api.get(&format!("{path}{query}")).await.is(200).body;
    let uuids = |body: &Value| -> Vec<String> {
        let items = body[case.list].as_array().expect("a list");
        items.iter().map(|item| item["uuid"].as_str().expect("a UUID").to_owned()).collect()
    };
    let all = list("").await;
    assert_eq!(uuids(&all), made);
    assert_eq!(keys(&all[case.list][0]), case.short);
    // Paging.
    let first = list("?limit=2&sort_key=created_at&sort_dir=desc").await;
    assert_eq!(uuids(&first), [made[2].clone(), made[1].clone()]);
    let next = first["next"].as_str().expect("there is more").replace("http://127.0.0.1:6385", "");
    assert_eq!(uuids(&api.get(&next).await.is(200).body), [made[0].clone()]);
    // Fields.
    let some = list("?fields=uuid,created_at").await;
    assert_eq!(keys(&some[case.list][0]), ["created_at", "links", "uuid"]);
    let one = api.get(&format!("{path}/{}?fields=uuid", made[0])).await.is(200).body;
    assert_eq!(keys(&one), ["links", "uuid"]);
    let whole = api.get(&format!("{path}/{}", made[0])).await.body;
    let (detail, has_path) = case.detail;
    if detail {
        assert_eq!(list("?detail=True").await[case.list][0], whole);
    }
    if has_path {
        assert_eq!(list("/detail").await[case.list][0], whole);
    }
    for (query, status) in [
        ("?fields=nosuch", 400),
        ("?nosuch=1", 400),
        ("?limit=-1", 400),
        ("?sort_key=nosuch", 400),
        ("?sort_key=links", 400),
        ("?sort_dir=up", 400),
        ("?marker=00000000-0000-4000-8000-000000000000", 404),
        ("?detail=True&fields=uuid", 400),
        ("/00000000-0000-4000-8000-000000000000", 404),
        ("/a%20b", 400),
    ] {
        api.get(&format!("{path}{query}")).await.is(status);
    }
}

async fn refuses(api: &Api, case: &Case, path: &str, made: &[String], node: &str) {
    let new = case.body(7, node);
    let with = |field: &str, value: Value| {
        let mut body = new.clone();
        body[field] = value;
        body
    };
    for (field, value) in case.bad {
        let value: Value = serde_json::from_str(value).expect("a value");
        let answer = api.post(path, with(field, value)).await;
        assert_eq!(answer.status, 400, "{path} {field}: {}", answer.text);
    }
    for field in case.required {
        let mut body = new.clone();
        body.as_object_mut().expect("an object").remove(*field);
        let fault = api.post(path, body).await.is(400).fault();
        assert!(fault.contains(&format!("'{field}' is a required property")), "{fault}");
        let patch = json!([{"op": "remove", "path": format!("/{field}")}]);
        api.patch(&format!("{path}/{}", made[0]), patch).await.is(400);
    }
    api.post(path, with("nosuch", json!(1))).await.is(400);
    api.post(path, json!([])).await.is(400);
    let fault = api.post(path, with("uuid", json!(made[0]))).await.is(409).fault();
    assert!(fault.contains(&format!("with UUID {} already exists.", made[0])), "{fault}");
    if let Some(unique) = case.unique {
        let taken = case.body(1, node)[unique].clone();
        api.post(path, with(unique, taken)).await.is(409);
    }
    let item = format!("{path}/{}", made[0]);
    for patch in [
        json!({}),
        json!([{"op": "replace", "path": "/uuid", "value": "x"}]),
        json!([{"op": "replace", "path": "/created_at", "value": "x"}]),
        json!([{"op": "add", "path": "/nosuch", "value": 1}]),
        json!([{"op": "test", "path": "/extra", "value": {}}]),
        json!([{"op": "remove", "path": "/extra/nosuch"}]),
    ] {
        api.patch(&item, patch).await.is(400);
    }
}
