//! What rules may not do, whatever Ironic lets them.

use inspection_rules::attribute::{Attributes, NODE, PORT};
use inspection_rules::{Failure, Findings, apply, check};
use model::{Node, Resource, ResourceKind, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

fn found() -> Findings {
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    node.driver_info.insert("redfish_password".into(), "hunter2".into());
    node.instance_info.insert("hashed_rescue_password".into(), "$6$hash".into());
    node.driver_internal_info.insert("agent_secret_token".into(), "t0ken".into());
    let port = Resource::port(Uuid::nil(), Uuid::nil(), "52:54:00:00:00:01".parse().unwrap(), Timestamp(0));
    let inventory =
        json!({"bmc_password": "hunter2", "hostname": "{node.driver_info}{plugin_data[auth_token]}{{x}}"});
    Findings { node, ports: vec![port], inventory, plugin_data: json!({"auth_token": "hunter2", "list": []}) }
}

fn rule(fields: Value) -> Resource {
    let mut rule = Resource::new(ResourceKind::InspectionRule, Uuid::from_u128(7), Timestamp(0));
    rule.fields = fields.as_object().unwrap().clone();
    rule
}

fn done(actions: Value) -> Result<Findings, Box<Failure>> {
    apply(&[rule(json!({"actions": actions}))], found()).map(|applied| applied.findings)
}

fn why(actions: Value) -> String {
    done(actions).unwrap_err().to_string()
}

/// Every field of the rows that is in no table stays as it is, also behind a loop, where nothing was checked before.
#[test]
fn nothing_but_the_tables_can_be_set() {
    let rows = [
        (serde_json::to_value(found().node).unwrap(), &NODE[..], "set-attribute", "del-attribute"),
        (
            serde_json::to_value(&found().ports[0]).unwrap(),
            &PORT[..],
            "set-port-attribute",
            "del-port-attribute",
        ),
    ];
    for (row, table, set, delete) in rows {
        let fields = row.as_object().unwrap().keys().filter(|key| table.iter().all(|(name, _)| name != key));
        let mut seen = 0;
        for field in
            fields.map(String::as_str).chain(["traits", "id", "chassis_uuid", "deploy_interface", ""])
        {
            for path in [field.to_owned(), format!("/{field}/x"), format!("{field}.x")] {
                for op in [set, delete] {
                    let mut args = json!({"path": "{item}"});
                    if op == set {
                        args["value"] = json!({"x": 1});
                    }
                    if op.contains("port") {
                        args["port_id"] = json!(Uuid::nil());
                    }
                    let error = why(json!([{"op": op, "args": args, "loop": [path]}]));
                    assert!(error.contains("cannot be set by inspection rules"), "{path}: {error}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 30, "{seen}");
    }
    for name in
        ["provision_state", "uuid", "driver_internal_info", "protected", "maintenance", "power_state", "name"]
    {
        assert!(Node::kind(name).is_err(), "{name}");
    }
    for name in ["uuid", "node_uuid", "address"] {
        assert!(Resource::kind(name).is_err(), "{name}");
    }
}

/// Whatever a template asks for, no secret comes out.
#[test]
fn templates_see_no_secret() {
    let templates = [
        "{node.driver_info}",
        "{node.driver_info[redfish_password]}",
        "{node.instance_info}",
        "{node}",
        "{node.driver_internal_info}",
        "{node.driver_internal_info[agent_secret_token]}",
        "{node.__dict__}",
        "{inventory}",
        "{inventory[bmc_password]}",
        "{inventory._data}",
        "{inventory!r}",
        "{plugin_data}",
        "{plugin_data[auth_token]}",
        "{plugin_data[auth_token]!r}",
    ];
    for template in templates {
        let set = json!({"op": "set-attribute", "args": {"path": "extra/x", "value": template}});
        let mut looped = set.clone();
        looped["loop"] = json!([template]);
        let mut item = looped.clone();
        item["args"]["value"] = "{item}".into();
        for action in [set, looped, item] {
            let node = done(json!([action])).unwrap().node;
            let shown = node.extra["x"].to_string();
            for secret in ["hunter2", "$6$", "t0ken"] {
                assert!(!shown.contains(secret), "{template}: {shown}");
            }
        }
    }
}

/// In a loop texts are filled in twice: what a machine says is not a template the second time.
#[test]
fn what_a_machine_says_is_no_template() {
    let action = json!([{"op": "set-attribute", "args": {"path": "extra/x", "value": "{inventory[hostname]}"}, "loop": [1]}]);
    let said = found().inventory["hostname"].clone();
    assert_eq!(done(action).unwrap().node.extra["x"], said);
    let action = json!([{"op": "set-attribute", "args": {"path": "extra/x", "value": "{item}"},
        "loop": ["{inventory[hostname]}"]}]);
    assert_eq!(done(action).unwrap().node.extra["x"], said);
}

#[test]
fn a_failure_names_the_rule_and_reveals_nothing_of_a_sensitive_one() {
    let actions = json!([{"op": "log", "args": {"msg": "x"}}, {"op": "fail", "args": {"msg": "s3cr3t"}}]);
    let name = "inspection rule 00000000-0000-0000-0000-000000000007 failed in action 2 (fail): ";
    assert_eq!(why(actions.clone()), format!("{name}s3cr3t"));
    let sensitive = rule(json!({"actions": actions, "sensitive": true}));
    let error = apply(&[sensitive], found()).unwrap_err();
    assert_eq!(error.to_string(), format!("{name}the rule is sensitive, so its reason is not shown"));
    let compare =
        json!([{"op": "eq", "args": {"values": [1]}}, {"op": "lt", "args": {"values": [1, "s3cr3t"]}}]);
    let error = apply(&[rule(json!({"conditions": compare, "actions": actions}))], found()).unwrap_err();
    assert!(error.to_string().contains("failed in condition 2 (lt): "), "{error}");
    assert!(why(json!([{"op": "fail", "args": {"msg": "x".repeat(1 << 20)}}])).len() < 2000);
}

/// One who writes rules cannot hold up the controller, nor store what cannot be read again.
#[test]
fn work_and_depth_are_bounded() {
    let turns = |count: usize| vec![json!(1); count];
    let loud = json!({"op": "log", "args": {"msg": "x"}, "loop": turns(10_001)});
    assert!(why(json!([loud])).contains("at most 10000 operations"));
    let long = "{inventory}".repeat(1000);
    let copy =
        json!({"op": "set-attribute", "args": {"path": "extra/x", "value": long}, "loop": turns(1000)});
    assert!(why(json!([copy])).contains("at most 16777216 bytes"));
    let deep = vec!["a"; 100_000].join(".");
    for (op, root) in [
        ("set-attribute", "extra."),
        ("extend-attribute", "extra."),
        ("set-plugin-data", ""),
        ("extend-plugin-data", ""),
    ] {
        let error = why(json!([{"op": op, "args": {"path": format!("{root}{deep}"), "value": 1}}]));
        assert!(error.contains("nested deeper than"), "{error}");
    }
    let mut nested = json!(1);
    for _ in 0..60 {
        nested = json!([nested]);
    }
    assert!(
        why(json!([{"op": "set-attribute", "args": {"path": "extra/x", "value": nested}}]))
            .contains("nested")
    );
    let nested = json!([{"op": "set-attribute", "args": {"path": "extra", "value": {"x": nested}}}]);
    assert!(why(nested).contains("nested"));
    // A large expression, and one that takes other engines very long.
    let large = json!([{"op": "contains", "args": {"value": "x", "regex": "(\\w{500}){500}"}}]);
    assert!(check::conditions(&large).unwrap_err().contains("too large"));
    let slow = json!({"op": "matches", "args": {"value": "a".repeat(100_000) + "b", "regex": "(a*)*c"}});
    let applied = apply(
        &[rule(json!({"conditions": [slow], "actions": [{"op": "fail", "args": {"msg": "x"}}]}))],
        found(),
    );
    assert!(applied.is_ok());
}

/// What was kept by a release that did not refuse it fails its inspection.
#[test]
fn the_controller_makes_no_requests() {
    let action = json!([{"op": "api-call", "args": {"url": "http://127.0.0.1:1/"}}]);
    assert!(check::actions(&action).unwrap_err().contains("makes no requests"));
    assert!(why(action).contains("makes no requests"));
}

#[test]
fn values_fit_their_attributes() {
    let set = |path: &str, value: Value| {
        done(json!([{"op": "set-attribute", "args": {"path": path, "value": value}}]))
    };
    for (path, value) in [
        ("resource_class", json!("x".repeat(81))),
        ("resource_class", json!([1])),
        ("extra", json!("x")),
        ("retired", json!("maybe")),
        ("description", json!({})),
        ("extra", json!([])),
    ] {
        assert!(set(path, value.clone()).is_err(), "{path} {value}");
    }
    assert!(set("retired", json!("True")).unwrap().node.retired);
    assert_eq!(set("conductor_group", json!("RackA")).unwrap().node.other["conductor_group"], "racka");
    assert_eq!(set("resource_class", json!(5)).unwrap().node.resource_class.as_deref(), Some("5"));
    let capability =
        |value: &str| done(json!([{"op": "set-capability", "args": {"name": "a", "value": value}}]));
    for bad in ["x,secure:yes", "x:y", ""] {
        assert!(capability(bad).is_err(), "{bad}");
    }
    let traits: Vec<_> = (0..51).map(|n| json!(n)).collect();
    let add = json!([{"op": "add-trait", "args": {"name": "CUSTOM_{item}"}, "loop": traits}]);
    assert!(why(add).contains("at most 50 traits"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z{}\\[\\]./!:*+?()|\\\\$0-9]{0,12}",
        Just("{node.extra[x]}".to_owned()),
        Just("{inventory[hostname]}".to_owned()),
        Just("extra/a".to_owned()),
        Just("list".to_owned()),
        Just("{item}".to_owned()),
        Just("192.0.2.0/24".to_owned()),
        Just("properties.x".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever a rule says: no panic, what is not in the tables is as it was, and what it made can be read again.
    #[test]
    fn no_rule_breaks_anything(
        op in prop::sample::select(vec![
            "fail", "log", "set-attribute", "extend-attribute", "del-attribute", "set-capability", "unset-capability",
            "add-trait", "remove-trait", "set-plugin-data", "extend-plugin-data", "unset-plugin-data",
            "set-port-attribute", "extend-port-attribute", "del-port-attribute",
        ]),
        condition in prop::sample::select(vec![
            "eq", "!lt", "gt", "is-empty", "in-net", "matches", "contains", "one-of", "is-none", "!is-true", "is-false",
        ]),
        values in prop::collection::vec(any_value(), 12),
        items in prop::option::of(any_value()),
    ) {
        let take = |names: &[&str], from: usize| -> Value {
            let named = names.iter().zip(&values[from..]).map(|(name, value)| ((*name).to_owned(), value.clone()));
            Value::Object(named.collect())
        };
        let args = match op {
            "fail" => take(&["msg"], 0),
            "log" => take(&["msg", "level"], 0),
            op if op.contains("del-port") => take(&["port_id", "path"], 0),
            op if op.contains("-port-") => {
                let mut args = take(&["path", "value"], 0);
                args["port_id"] = json!(Uuid::nil());
                args
            }
            op if op.contains("capability") && op.starts_with("set") => take(&["name", "value"], 0),
            op if op.contains("capability") || op.contains("trait") => take(&["name"], 0),
            op if op.starts_with("del") || op.starts_with("unset") => take(&["path"], 0),
            _ => take(&["path", "value"], 0),
        };
        let mut action = json!({"op": op, "args": args});
        let mut test = match condition.trim_start_matches('!') {
            "eq" | "lt" | "gt" => json!({"op": condition, "args": {"values": [values[3], values[4]]}}),
            "in-net" => json!({"op": condition, "args": take(&["address", "subnet"], 3)}),
            "matches" | "contains" => json!({"op": condition, "args": take(&["value", "regex"], 3)}),
            "one-of" => json!({"op": condition, "args": take(&["value", "values"], 3)}),
            _ => json!({"op": condition, "args": take(&["value"], 3)}),
        };
        if let Some(items) = &items {
            (action["loop"], test["loop"]) = (items.clone(), items.clone());
        }
        let _ = (check::actions(&json!([action])), check::conditions(&json!([test])));
        let before = found();
        let rules = [rule(json!({"actions": [action], "priority": 1})), rule(json!({"actions": [action], "conditions": [test]}))];
        let Ok(applied) = apply(&rules, before.clone()) else { return Ok(()) };
        let after = applied.findings;
        let (mut old, mut new) = (serde_json::to_value(&before.node).unwrap(), serde_json::to_value(&after.node).unwrap());
        let text = new.to_string();
        prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &new);
        for row in [&mut old, &mut new] {
            let fields = row.as_object_mut().unwrap();
            NODE.iter().for_each(|(name, _)| drop(fields.remove(*name)));
            for kept_apart in ["traits", "other"] {
                fields.remove(kept_apart);
            }
        }
        prop_assert_eq!(old, new);
        prop_assert_eq!(after.inventory, before.inventory);
        prop_assert_eq!(after.ports[0].address(), before.ports[0].address());
        prop_assert!(after.node.traits.iter().all(|name| model::traits::is_name(name)));
    }
}

#[test]
fn no_rule_sends_a_stored_password_elsewhere() {
    let set =
        |path: &str, value: Value| json!({"op": "set-attribute", "args": {"path": path, "value": value}});
    let elsewhere = || set("driver_info/redfish_address", json!("https://192.0.2.66"));
    let refused = "they change driver_info/redfish_address and do not set driver_info/redfish_password";
    for actions in [
        json!([elsewhere()]),
        json!([{"op": "set-attribute", "args": ["driver_info.redfish_address", "{inventory[hostname]}"]}]),
        json!([{"op": "set-attribute", "args": {"path": "driver_info/{item}", "value": "x"}, "loop": ["redfish_address"]}]),
        json!([elsewhere(), set("driver_info/redfish_username", json!("root"))]),
        json!([elsewhere(), set("extra/redfish_password", json!("new"))]),
    ] {
        let error = why(actions.clone());
        assert!(error.contains(refused) && error.contains("failed in its actions"), "{actions}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let verify = why(json!([set("driver_info/redfish_verify_ca", json!(false))]));
    assert!(verify.contains("they change driver_info/redfish_verify_ca"), "{verify}");
    for actions in [
        json!([elsewhere(), set("driver_info/redfish_password", json!("new"))]),
        json!([set("/driver_info/redfish_password", json!("hunter2")), elsewhere()]),
        json!([set("driver_info", json!({"redfish_address": "x", "redfish_password": "hunter2"}))]),
        json!([set("driver_info", json!({"redfish_address": "x"}))]),
        json!([{"op": "del-attribute", "args": {"path": "driver_info/redfish_password"}}, elsewhere()]),
        json!([set("driver_info/ipmi_address", json!("192.0.2.66"))]),
    ] {
        let set = done(actions.clone()).unwrap().node.driver_info;
        assert_ne!(set, found().node.driver_info, "{actions}");
    }
    let sensitive = json!({"sensitive": true, "actions": [elsewhere()]});
    let hidden = apply(&[rule(sensitive)], found()).unwrap_err().to_string();
    assert!(!hidden.contains("redfish"), "{hidden}");
}
