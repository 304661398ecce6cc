//! Inspection rules from the request that makes them to what an inspection leaves: the real API, the real conductor, a
//! node without hardware.

use crate::common::Api;
use async_trait::async_trait;
use conductor::decision::{Action, ActionError, Outcome};
use conductor::{CertificateIssuer, Conductor, Executor, Settings, SigningKey};
use model::abilities::{Abilities, Inspect, Rescue};
use model::{Contact, Node, PowerState, ProvisionState, ResourceKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{Members, SystemClock};
use tokio_util::sync::CancellationToken;

const MAC: &str = "52:54:00:12:34:56";

/// A machine with a power switch.
struct Switch(AtomicBool);

#[async_trait]
impl Executor for Switch {
    fn abilities(&self, _: &Node) -> Result<Arc<Abilities>, String> {
        let (inspect, rescue) = (Inspect::Agent, Rescue::None);
        Ok(Arc::new(Abilities { agent: true, inspect, rescue, steps: BTreeMap::new() }))
    }

    fn unfenced_call(&self, _: &Contact, _: &Action) -> Duration {
        Duration::ZERO
    }

    async fn act(&self, _: u64, _: &Node, _: &Contact, action: &Action) -> Outcome {
        match action {
            Action::SetPower(target) => {
                let state = target.resulting_state();
                self.0.store(state == PowerState::On, Ordering::SeqCst);
                Outcome::Power(state)
            }
            Action::ReadPower => {
                Outcome::Power(if self.0.load(Ordering::SeqCst) { PowerState::On } else { PowerState::Off })
            }
            Action::ReadBootDevice => Outcome::BootDevice(None),
            Action::SetBootDevice => Outcome::Done,
            other => {
                let text = format!("{other:?} is not of this test");
                Outcome::Failed(ActionError { text, retryable: false, unreachable: false })
            }
        }
    }
}

struct World {
    api: Api,
    node: Node,
    port: String,
    stop: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    async fn new() -> Self {
        let api = Api::new();
        let node = api.node_with("n", ProvisionState::Manageable, |node| {
            node.driver_info.insert("redfish_password".into(), "hunter2".into());
            node.properties.insert("cpus".into(), 1.into());
        });
        let node = node.await;
        let port = api.port(&node, MAC).await.uuid.to_string();
        let issuer = CertificateIssuer::new(SigningKey::generate().unwrap().0, "test");
        let executor = Arc::new(Switch(AtomicBool::new(false)));
        let (store, clock) = (api.store.clone(), Arc::new(SystemClock::default()));
        let conductor =
            Conductor::new(store, executor, clock, Settings::default(), Members::alone("test"), issuer);
        let stop = CancellationToken::new();
        tokio::spawn(conductor.run(stop.clone()));
        Self { api, node, port, stop }
    }

    async fn rule(&self, rule: Value) -> String {
        let made = self.api.post("/v1/inspection_rules", rule).await.is(201).body;
        made["uuid"].as_str().unwrap().to_owned()
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Node) -> bool) -> Node {
        for _ in 0..3000 {
            let node = self.api.store.node(self.node.uuid).await.unwrap();
            if wanted(&node) {
                return node;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never {what}: {:?}", self.api.store.node(self.node.uuid).await.unwrap());
    }

    /// Inspect the node; its ramdisk reports this.
    async fn inspect(&self, report: Value) -> Node {
        self.api.put("/v1/nodes/n/states/provision", json!({"target": "inspect"})).await.is(202);
        self.until("waits", |node| {
            let waits = node.run.as_ref().is_some_and(|run| run.cursor == model::Cursor::AwaitInventory);
            waits && node.provision_state == ProvisionState::InspectWait
        })
        .await;
        self.api.post("/v1/continue_inspection", report).await.is(202);
        let ended = [ProvisionState::Manageable, ProvisionState::InspectFail];
        self.until("at rest", |node| ended.contains(&node.provision_state)).await
    }
}

fn report() -> Value {
    json!({
        "inventory": {"interfaces": [{"name": "eno1", "mac_address": MAC}], "hostname": "host-7",
            "cpu": {"count": 8}, "system_vendor": {"manufacturer": "ACME", "product_name": "R7"}},
        "bay": "7", "error": null,
    })
}

#[tokio::test]
async fn a_rule_that_was_made_is_applied_by_the_next_inspection() {
    let world = World::new().await;
    let acme = json!([{"op": "matches", "args": {"value": "{inventory[system_vendor][manufacturer]}", "regex": "ACM."}}]);
    world
        .rule(json!({"priority": 5, "conditions": acme, "actions": [
            {"op": "set-attribute", "args": {"path": "/extra/bay", "value": "{plugin_data[bay]} of {node.name}"}},
            {"op": "set-attribute", "args": {"path": "/properties/cpus", "value": 64}},
            {"op": "set-attribute", "args": {"path": "/resource_class", "value": "{inventory[system_vendor][product_name]}"}},
            {"op": "set-attribute", "args": {"path": "/extra/copy", "value": "{node.driver_info[redfish_password]}"}},
            {"op": "add-trait", "args": {"name": "CUSTOM_{item}"}, "loop": ["ACME", "R7"]},
            {"op": "set-capability", "args": {"name": "boot_mode", "value": "uefi"}},
            {"op": "set-plugin-data", "args": {"path": "ruled.by", "value": "me"}},
            {"op": "log", "args": {"msg": "a node of ACME: {inventory[hostname]}"}},
        ]}))
        .await;
    let of_port =
        json!({"port_id": world.port, "path": "physical_network", "value": "net-{plugin_data[ruled][by]}"});
    world.rule(json!({"actions": [{"op": "set-port-attribute", "args": of_port}]})).await;
    let other = json!([{"op": "eq", "args": {"values": ["{inventory[hostname]}", "other"]}}]);
    world
        .rule(json!({"conditions": other, "actions": [{"op": "fail", "args": {"msg": "not this one"}}]}))
        .await;

    let node = world.inspect(report()).await;
    assert_eq!((node.provision_state, node.last_error), (ProvisionState::Manageable, None));
    let shown = world.api.get("/v1/nodes/n").await.is(200).body;
    assert_eq!(shown["extra"], json!({"bay": "7 of n", "copy": "******"}));
    let properties = json!({"cpus": 64, "vendor": "ACME", "capabilities": "boot_mode:uefi"});
    assert_eq!((&shown["properties"], &shown["resource_class"]), (&properties, &json!("R7")));
    assert_eq!(shown["traits"], json!(["CUSTOM_ACME", "CUSTOM_R7"]));
    let port = world.api.get(&format!("/v1/ports/{}", world.port)).await.is(200).body;
    assert_eq!(port["physical_network"], "net-me");
    let kept = world.api.get("/v1/nodes/n/inventory").await.is(200).body;
    assert_eq!(kept["inventory"], report()["inventory"]);
    assert_eq!(kept["plugin_data"], json!({"bay": "7", "error": null, "ruled": {"by": "me"}}));
    let shown = world.api.store.history(world.node.uuid).await.unwrap();
    assert!(shown.iter().any(|event| event.text.ends_with("a node of ACME: host-7")), "{shown:?}");
}

#[tokio::test]
async fn a_rule_that_fails_fails_the_inspection_and_changes_nothing_of_the_node() {
    let world = World::new().await;
    let set = |value: &str| json!({"op": "set-attribute", "args": {"path": "/extra/set", "value": value}});
    let first = json!({"priority": 9, "actions": [set("by the first"), {"op": "add-trait", "args": {"name": "CUSTOM_A"}},
        {"op": "set-port-attribute", "args": {"port_id": world.port, "path": "/extra/x", "value": 1}},
        {"op": "set-plugin-data", "args": {"path": "x", "value": 1}}]});
    world.rule(first).await;
    let second = json!({"actions": [set("by the second"), {"op": "fail", "args": {"msg": "unknown rack"}}]});
    let failing = world.rule(second).await;
    let ports = || world.api.store.resources(ResourceKind::Port, Some(world.node.uuid));
    let port = ports().await.unwrap();

    let node = world.inspect(report()).await;
    assert_eq!(node.provision_state, ProvisionState::InspectFail);
    let error = format!(
        "Failed to finish inspection: inspection rule {failing} failed in action 2 (fail): unknown rack"
    );
    assert_eq!(node.last_error, Some(error));
    let rest = |node: &Node| (node.extra.clone(), node.traits.clone(), node.properties.clone());
    assert_eq!(rest(&node), rest(&world.node));
    assert_eq!(node.inspection_finished_at, None);
    assert_eq!(ports().await.unwrap(), port);
    let kept = world.api.store.inventory(world.node.uuid).await.unwrap().unwrap();
    assert_eq!(kept.plugin_data, json!({"bay": "7", "error": null}), "as it was reported");

    // Without the rule the next one works.
    world.api.delete(&format!("/v1/inspection_rules/{failing}")).await.is(204);
    let node = world.inspect(report()).await;
    assert_eq!(
        (node.provision_state, &node.extra["set"]),
        (ProvisionState::Manageable, &json!("by the first"))
    );
}

#[tokio::test]
async fn a_sensitive_rule_is_never_shown() {
    let world = World::new().await;
    let secret = "s3cr3t-of-the-rule";
    let log = json!({"op": "log", "args": {"msg": secret}});
    let fail = json!({"op": "fail", "args": {"msg": secret}});
    let rule = world.rule(json!({"sensitive": true, "actions": [log, fail]})).await;
    let node = world.inspect(report()).await;
    let error = node.last_error.unwrap();
    assert!(error.contains(&rule) && error.contains("action 2 (fail)"), "{error}");
    let shown = format!("{error} {:?}", world.api.store.history(world.node.uuid).await.unwrap());
    assert!(!shown.contains(secret), "{shown}");

    // One that works logs nothing either.
    world.api.delete(&format!("/v1/inspection_rules/{rule}")).await.is(204);
    world.rule(json!({"sensitive": true, "actions": [log]})).await;
    assert_eq!(world.inspect(report()).await.provision_state, ProvisionState::Manageable);
    let shown = format!("{:?}", world.api.store.history(world.node.uuid).await.unwrap());
    assert!(!shown.contains(secret), "{shown}");
}

/// What could only fail later, or must not be, is refused when the rule is made; nothing is kept.
#[tokio::test]
async fn what_no_inspection_could_apply_is_refused() {
    let api = Api::new();
    let action = |op: &str, args: Value| json!({"actions": [{"op": op, "args": args}]});
    let condition = |op: &str, args: Value| json!({"conditions": [{"op": op, "args": args}], "actions": [{"op": "fail", "args": {"msg": "x"}}]});
    for (rule, why) in [
        (action("explode", json!({})), "'explode' is not one of ['fail', 'log', 'set-attribute',"),
        (condition("!ne", json!({})), "'!ne' is not one of ['eq', 'lt', 'gt', 'is-empty',"),
        (
            action("api-call", json!({"url": "http://169.254.169.254/"})),
            "api-call: this controller makes no requests",
        ),
        (
            action("set-attribute", json!({"path": "/provision_state", "value": "available"})),
            "\"provision_state\" of a node cannot be set by inspection rules; these can: driver, driver_info,",
        ),
        (
            action("set-attribute", json!({"path": "driver_internal_info.agent_secret_token", "value": "x"})),
            "\"driver_internal_info\" of a node cannot be set",
        ),
        (action("del-attribute", json!({"path": "/uuid"})), "\"uuid\" of a node cannot be set"),
        (
            action("extend-attribute", json!({"path": "/traits", "value": "x"})),
            "\"traits\" of a node cannot be set",
        ),
        (
            action("set-port-attribute", json!({"port_id": "x", "path": "/address", "value": MAC})),
            "\"address\" of a port cannot be set",
        ),
        (action("add-trait", json!({"name": "fast"})), "add-trait: name is no name of a trait"),
        (
            action("log", json!({"msg": "x", "level": "loud"})),
            "log: Invalid log level. Choose from debug, info,",
        ),
        (action("fail", json!({})), "fail: missing required argument(s): msg"),
        (action("fail", json!({"msg": "x", "twice": true})), "fail: unexpected argument(s): twice"),
        (
            action("set-attribute", json!(["extra/a"])),
            "set-attribute: Not enough arguments provided. Missing: value",
        ),
        (
            action("set-attribute", json!({"path": "extra/a", "value": "{node.name:>99999999}"})),
            "format specifications",
        ),
        (condition("eq", json!({"values": "{node.name}"})), "eq: values is not of type 'array'"),
        (
            condition("matches", json!({"value": "x", "regex": "(?=s3cr3t)"})),
            "matches: invalid regular expression",
        ),
        (condition("contains", json!({"value": "x", "regex": "("})), "contains: invalid regular expression"),
        (condition("contains", json!({"value": "x", "regex": 5})), "contains: regex is not of type 'string'"),
    ] {
        let fault = api.post("/v1/inspection_rules", rule.clone()).await.is(400).fault();
        assert!(fault.contains(why), "{rule}: {fault}");
        assert!(!fault.contains("s3cr3t"), "{fault}");
    }
    assert_eq!(api.get("/v1/inspection_rules").await.body, json!({"inspection_rules": []}));
    // In a loop the same are templates.
    let looped = json!({"actions": [{"op": "set-attribute", "args": {"path": "{item}", "value": "x"}, "loop": ["uuid"]}]});
    let uuid = api.post("/v1/inspection_rules", looped).await.is(201).body["uuid"].clone();
    let path = format!("/v1/inspection_rules/{}", uuid.as_str().unwrap());
    let patch = json!([{"op": "replace", "path": "/actions", "value": action("api-call", json!({"url": "http://x/"}))["actions"]}]);
    api.patch(&path, patch).await.is(400);
}
