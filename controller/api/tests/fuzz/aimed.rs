//! Requests put together by hand: nearly right ones, and wild ones.

use crate::test_request::TestRequest;
use crate::words::{KEYS, NAMES, QUERIES, TEXTS, fields, paths};
use crate::world::TOKEN;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Any JSON, of words that mean something here.
pub fn json_value() -> impl Strategy<Value = Value> {
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

/// Requests that are nearly right, so that the later checks, and what lies behind them, are reached too.
#[expect(clippy::too_many_lines, reason = "a table of requests")]
pub fn aimed() -> impl Strategy<Value = TestRequest> {
    let node = || select(&["a", "b", "c"][..]);
    let fields = fields();
    let field = || prop_oneof![1 => select(KEYS).prop_map(str::to_owned), 2 => select(fields.clone())];
    let value = || {
        prop_oneof![
            json_value(),
            Just(json!({})),
            select(TEXTS).prop_map(Value::from),
            any::<bool>().prop_map(Value::from)
        ]
    };
    let ops = || {
        let op = (select(&["add", "replace", "remove"][..]), field(), value(), any::<bool>());
        prop::collection::vec(op, 1..3).prop_map(|ops| {
            ops.into_iter()
                .map(|(op, field, value, below)| {
                    let path = if below { format!("/{field}/k") } else { format!("/{field}") };
                    json!({"op": op, "path": path, "value": value})
                })
                .collect::<Value>()
        })
    };
    let verbs = &["manage", "provide", "clean", "abort", "cleaned", "inspect", "active", "deleted", "x"][..];
    let step = prop_oneof![
        3 => Just(json!({"interface": "deploy", "step": "erase_devices"})),
        1 => json_value(),
        1 => (select(KEYS), json_value()).prop_map(|(key, value)| json!({"interface": "deploy", "step": "s", key: value})),
    ];
    let powers = &["power on", "power off", "rebooting", "soft power off", "x"][..];
    let base = json!({"callback_url": "https://192.0.2.1:9", "agent_token": TOKEN, "agent_version": "1"});
    let anneal = json!({"extension": 1, "boot_id": "b", "process_id": "p"});
    let hit = |method: &'static str, path: String, body: Value| TestRequest {
        method,
        uri: path,
        version: Some("1.115".into()),
        headers: vec![("Content-Type", "application/json".to_owned())],
        body: body.to_string().into_bytes(),
    };
    prop_oneof![
        (node(), ops()).prop_map(move |(node, ops)| hit("PATCH", format!("/v1/nodes/{node}"), ops)),
        (field(), value()).prop_map(move |(field, value)| {
            hit("POST", "/v1/nodes".into(), json!({"driver": "fake-hardware", field: value}))
        }),
        (node(), select(verbs), prop::option::of(prop::collection::vec(step, 0..3))).prop_map(
            move |(node, target, steps)| {
                let mut body = json!({"target": target});
                if let Some(steps) = steps {
                    body["clean_steps"] = steps.into();
                }
                hit("PUT", format!("/v1/nodes/{node}/states/provision"), body)
            }
        ),
        (node(), select(powers), value()).prop_map(move |(node, target, timeout)| {
            hit(
                "PUT",
                format!("/v1/nodes/{node}/states/power"),
                json!({"target": target, "timeout": timeout}),
            )
        }),
        (node(), value()).prop_map(move |(node, reason)| {
            hit("PUT", format!("/v1/nodes/{node}/maintenance"), json!({"reason": reason}))
        }),
        (node(), value(), value()).prop_map(move |(node, disk, reason)| {
            let body = json!({"disk": disk, "reason": reason});
            hit("POST", format!("/v1/anneal/nodes/{node}/disks/retire"), body)
        }),
        (node(), select(TEXTS), value()).prop_map(move |(node, device, persistent)| {
            let body = json!({"boot_device": device, "persistent": persistent});
            hit("PUT", format!("/v1/nodes/{node}/management/boot_device"), body)
        }),
        (select(KEYS), value()).prop_map(move |(key, value)| {
            hit(
                "POST",
                "/v1/ports".into(),
                json!({"address": "52:54:00:aa:bb:09", "node_ident": "a", key: value}),
            )
        }),
        ops().prop_map(move |ops| hit("PATCH", "/v1/ports/eth0".into(), ops)),
        (node(), value()).prop_map(move |(node, traits)| {
            hit("PUT", format!("/v1/nodes/{node}/traits"), json!({"traits": traits}))
        }),
        (select(KEYS), value(), any::<bool>()).prop_map(move |(key, value, deep)| {
            let mut step = json!({"interface": "deploy", "step": "s", "args": {}, "priority": 1});
            let mut body = json!({"name": "CUSTOM_A"});
            if deep {
                step[key] = value
            } else {
                body[key] = value
            }
            body["steps"] = json!([step]);
            hit("POST", "/v1/deploy_templates".into(), body)
        }),
        (field(), value(), any::<bool>()).prop_map(move |(field, value, deep)| {
            let path = if deep { format!("/steps/0/{field}") } else { format!("/{field}") };
            let ops = json!([{"op": "add", "path": path, "value": value}]);
            hit("PATCH", "/v1/deploy_templates/CUSTOM_T".into(), ops)
        }),
        (select(KEYS), value(), 0..3usize).prop_map(move |(key, value, depth)| {
            let mut body = json!({"inventory": {"interfaces": [{"mac_address": "52:54:00:aa:bb:02"}]}});
            let place = ["", "/inventory", "/inventory/interfaces/0"][depth];
            body.pointer_mut(place).expect("it is there")[key] = value;
            hit("POST", "/v1/continue_inspection".into(), body)
        }),
        (select(KEYS), prop::option::of(value())).prop_map(move |(key, value)| {
            let mut body = base.clone();
            body["anneal"] = anneal.clone();
            if let Some(value) = value {
                if key == "bogus" { body[key] = value } else { body["anneal"][key] = value }
            }
            hit("POST", "/v1/heartbeat/b".into(), body)
        }),
        (select(QUERIES), select(QUERIES)).prop_map(move |(a, b)| hit(
            "GET",
            format!("/v1/lookup?{a}&{b}"),
            json!({})
        )),
        node().prop_map(move |node| hit("DELETE", format!("/v1/nodes/{node}"), json!({}))),
        node().prop_map(move |node| hit("DELETE", format!("/v1/nodes/{node}/maintenance"), json!({}))),
    ]
}

/// Anything.
pub fn wild() -> impl Strategy<Value = TestRequest> {
    let method = select(&["GET", "GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS"][..]);
    let uri = (select(paths()), select(NAMES), prop::collection::vec(select(QUERIES), 0..3)).prop_map(
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
        4 => json_value().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(Vec::new()),
    ];
    (method, uri, version, body).prop_map(|(method, uri, version, body)| TestRequest {
        method,
        uri,
        version: Some(version),
        headers: vec![("Content-Type", "application/json".to_owned())],
        body,
    })
}
