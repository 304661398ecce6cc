//! Thousands of random requests: never a 5xx, always Ironic's error body, and what was refused changed
//! nothing.

mod common;

use axum::body::Body;
use axum::http::Request;
use common::Api;
use model::ProvisionState;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

const PATHS: &[&str] = &[
    "/",
    "/v1",
    "/v1/nodes",
    "/v1/nodes/detail",
    "/v1/nodes/validate",
    "/v1/nodes/{n}",
    "/v1/nodes/{n}/validate",
    "/v1/nodes/{n}/states",
    "/v1/nodes/{n}/states/provision",
    "/v1/nodes/{n}/states/power",
    "/v1/nodes/{n}/maintenance",
    "/v1/nodes/{n}/management/boot_device",
    "/v1/nodes/{n}/management/boot_device/supported",
    "/v1/nodes/{n}/history",
    "/v1/nodes/{n}/history/{n}",
    "/v1/nodes/{n}/cleaning/steps",
    "/v1/nodes/{n}/ports",
    "/v1/nodes/{n}/vifs",
    "/v1/nodes/{n}/traits",
    "/v1/ports",
    "/v1/ports/detail",
    "/v1/ports/{n}",
    "/v1/drivers",
    "/v1/drivers/{n}",
    "/v1/drivers/redfish/properties",
    "/v1/lookup",
    "/v1/heartbeat/{n}",
    "/v1/{n}",
    "/nodes",
    "//v1//nodes//",
];

const NAMES: &[&str] = &[
    "a",
    "b",
    "c",
    "nosuch",
    "00000000-0000-4000-8000-000000000001",
    "%ff",
    "%00",
    "x%2Fy",
    "%",
    "..",
    "detail",
    "ä",
];

const KEYS: &[&str] = &[
    "target",
    "clean_steps",
    "interface",
    "step",
    "args",
    "driver",
    "name",
    "uuid",
    "extra",
    "driver_info",
    "properties",
    "address",
    "node_uuid",
    "node_ident",
    "op",
    "path",
    "value",
    "reason",
    "boot_device",
    "persistent",
    "timeout",
    "callback_url",
    "agent_token",
    "agent_version",
    "agent_verify_ca",
    "anneal",
    "extension",
    "boot_id",
    "process_id",
    "running",
    "ended",
    "maintenance",
    "retired",
    "instance_uuid",
    "local_link_connection",
    "boot_interface",
    "power_interface",
    "conductor_group",
    "network_data",
    "bogus",
];

const TEXTS: &[&str] = &[
    "",
    "manage",
    "provide",
    "clean",
    "abort",
    "power on",
    "rebooting",
    "fake-hardware",
    "redfish",
    "deploy",
    "erase_devices",
    "add",
    "replace",
    "remove",
    "/extra/a",
    "/extra",
    "/name",
    "/maintenance",
    "/uuid",
    "/a//b",
    "/extra/~2",
    "pxe",
    "52:54:00:aa:bb:01",
    "52-54-00-AA-BB-09",
    "00000000-0000-4000-8000-000000000001",
    "http://127.0.0.1:9999",
    "https://h",
    "tok",
    "true",
    "\u{0}\n",
    "é\u{1f600}",
    "a",
];

const QUERIES: &[&str] = &[
    "limit=1",
    "limit=-1",
    "limit=99999999999999999999",
    "marker=00000000-0000-4000-8000-000000000001",
    "sort_key=name",
    "sort_key=extra",
    "sort_key=\u{e4}",
    "sort_dir=desc",
    "fields=name,uuid",
    "fields=,",
    "fields=x",
    "detail=true",
    "detail=x",
    "maintenance=1",
    "associated=",
    "provision_state=manageable",
    "driver=%00",
    "addresses=52:54:00:aa:bb:01",
    "addresses=,,",
    "node_uuid=00000000-0000-4000-8000-000000000001",
    "node=a",
    "anneal_boot_id=x",
    "min_priority=1e999",
    "min_priority=3",
    "address=52:54:00:aa:bb:01",
    "%ff=%ff",
    "a&&=b",
    "shard=a",
    "reset_interfaces=true",
    "portgroup=x",
    "conductor_groups=a",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1e308..1e308f64).prop_map(Value::from),
        select(TEXTS).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((select(KEYS), inner), 0..6).prop_map(|pairs| {
                Value::Object(
                    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>(),
                )
            }),
        ]
    })
}

/// Bodies that are nearly right, so that the later checks are reached too.
fn near() -> impl Strategy<Value = Value> {
    let value = json_value;
    prop_oneof![
        (select(TEXTS), value()).prop_map(|(target, steps)| json!({"target": target, "clean_steps": steps})),
        (select(TEXTS), select(TEXTS), value())
            .prop_map(|(op, path, value)| json!([{"op": op, "path": path, "value": value}])),
        (select(KEYS), value())
            .prop_map(|(key, value)| json!([{"op": "add", "path": format!("/{key}"), "value": value}])),
        (select(KEYS), value()).prop_map(|(key, value)| json!({"driver": "fake-hardware", key: value})),
        (select(KEYS), value())
            .prop_map(|(key, value)| json!({"address": "52:54:00:aa:bb:09", "node_ident": "a", key: value})),
        (select(KEYS), value()).prop_map(|(key, value)| {
            json!({"callback_url": "http://h:9", "agent_token": "tok", "agent_version": "1", key: value})
        }),
        value().prop_map(|value| {
            json!({"callback_url": "http://h:9", "agent_token": "tok", "agent_version": "1",
                   "anneal": {"extension": 1, "boot_id": "b", "process_id": "p", "running": value}})
        }),
    ]
}

#[derive(Debug, Clone)]
struct Shot {
    method: &'static str,
    uri: String,
    version: String,
    body: Vec<u8>,
}

fn shot() -> impl Strategy<Value = Shot> {
    let method = select(&["GET", "GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS"][..]);
    let uri = (select(PATHS), select(NAMES), prop::collection::vec(select(QUERIES), 0..3)).prop_map(
        |(path, name, query)| {
            let path = path.replace("{n}", name);
            if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
        },
    );
    let version = prop_oneof![
        6 => (1..=115u16).prop_map(|minor| format!("1.{minor}")),
        6 => Just("1.115".to_owned()),
        1 => "[ -~]{0,8}",
    ];
    let body = prop_oneof![
        4 => near().prop_map(|value| value.to_string().into_bytes()),
        2 => json_value().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(Vec::new()),
    ];
    (method, uri, version, body).prop_map(|(method, uri, version, body)| Shot { method, uri, version, body })
}

async fn house() -> Api {
    use store::Store;
    let api = Api::new();
    let a = api
        .node_with("a", ProvisionState::Manageable, |node| {
            node.uuid = uuid::Uuid::from_u128(0x4000_8000_0000_0000_0001)
        })
        .await;
    let b = api.node("b", ProvisionState::CleanWait).await;
    api.node("c", ProvisionState::Cleaning).await;
    api.port(&a, "52:54:00:aa:bb:01").await;
    api.store.grant_token(b.uuid, "tok", None, model::Timestamp(0)).await.unwrap();
    api
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_breaks_the_api(shots in prop::collection::vec(shot(), 10)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let api = house().await;
            let mut before = api.everything().await;
            for shot in shots {
                let built = Request::builder()
                    .method(shot.method)
                    .uri(&shot.uri)
                    .header("X-OpenStack-Ironic-API-Version", &shot.version)
                    .body(Body::from(shot.body.clone()));
                // What no client can put on the wire is no request.
                let Ok(request) = built else { continue };
                let answer = api.raw(request).await;
                let context = format!("{shot:?} -> {} {}", answer.status, answer.text);
                assert!(answer.status < 500, "{context}");
                let after = api.everything().await;
                if answer.status >= 400 {
                    if shot.method != "HEAD" {
                        // Ironic's body, whatever refused it.
                        answer.fault();
                    }
                    assert_eq!(before, after, "refused, but changed something: {context}");
                }
                if matches!(shot.method, "HEAD" | "OPTIONS") || (shot.method == "GET" && !shot.uri.contains("lookup")) {
                    assert_eq!(before, after, "a reading request wrote: {context}");
                }
                before = after;
            }
        });
    }
}
