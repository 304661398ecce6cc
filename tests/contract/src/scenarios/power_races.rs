//! Requests right after a change of power was answered 202: the same questions to anneal-controller and to the real Ironic.
//! `controllerd/tests/power_races.rs` asks more of ours.

use super::{PATIENCE, start_ironic};
use crate::World;
use crate::controller::Controller;
use crate::process::wait_until;
use crate::replay::http::{Request, ask};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// As often as the issue asks.
const OUR_ROUNDS: usize = 50;
/// Ironic asks for a lock once a second.
const IRONIC_ROUNDS: usize = 5;
/// No cleaning.
const SETTINGS: &str = "\
[conductor]
automated_clean = False
";
/// What each call of a BMC of ours takes. Ironic's fakes wait for whole seconds or not at all; with one second, a request would get
/// the lock too late.
const LATENCY_MS: u64 = 50;

pub fn run(world: &World) -> Result<()> {
    let ours = Controller::with(world, "", "automated_clean_enable = false\n")?;
    let token = ours.token();
    races(&Api { address: host(&ours.endpoint), token }, OUR_ROUNDS).context("anneal-controller")?;
    drop(ours);
    let (ironic, _network) = start_ironic(world, SETTINGS)?;
    races(&Api { address: host(&ironic.endpoint), token: None }, IRONIC_ROUNDS).context("Ironic")
}

fn host(endpoint: &str) -> String {
    endpoint.trim_start_matches("http://").to_owned()
}

/// One after the other: the SQLite of an Ironic that has several of them at once answers "database is locked".
fn races(api: &Api, rounds: usize) -> Result<()> {
    allocations(api, rounds).context("allocation")?;
    changes_of_volumes(api, rounds).context("change of a volume")?;
    deletions_of_volumes(api, rounds).context("deletion of a volume")?;
    verbs(api, rounds).context("verb")
}

/// A controller.
struct Api {
    address: String,
    token: Option<String>,
}

impl Api {
    fn ask(&self, method: &str, path: &str, body: Value) -> Result<(u16, Value)> {
        let request = Request { method: method.to_owned(), path: path.to_owned(), body };
        let answer = ask(&self.address, self.token.as_deref(), Some("1.82"), &request)?;
        Ok((answer.status, answer.body))
    }

    /// A request that is asked once, and must be answered with this status.
    fn once(&self, status: u16, method: &str, path: &str, body: Value) -> Result<Value> {
        let (seen, answer) = self.ask(method, path, body)?;
        ensure!(seen == status, "{method} {path}: {seen}, not {status}: {answer}");
        Ok(answer)
    }

    /// A request of the preparations, asked again while the node is locked.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let mut answer = Value::Null;
        wait_until(&format!("{method} {path}"), PATIENCE, || {
            let (status, body) = self.ask(method, path, body.clone())?;
            ensure!([200, 201, 202, 204, 409, 503].contains(&status), "{method} {path}: {status} {body}");
            answer = body;
            Ok(status < 300)
        })?;
        Ok(answer)
    }

    fn node(&self, name: &str) -> Result<Value> {
        self.once(200, "GET", &format!("/v1/nodes/{name}"), Value::Null)
    }

    fn power(&self, name: &str, target: &str) -> Result<()> {
        self.call("PUT", &format!("/v1/nodes/{name}/states/power"), &json!({"target": target})).map(drop)
    }

    /// A node in `available`; its UUID.
    fn enrol(&self, name: &str) -> Result<Value> {
        let info = json!({"fake_power_latency_ms": LATENCY_MS});
        let node =
            json!({"name": name, "driver": "fake-hardware", "resource_class": name, "driver_info": info});
        let node = self.call("POST", "/v1/nodes", &node)?;
        for (verb, state) in [("manage", "manageable"), ("provide", "available")] {
            self.call("PUT", &format!("/v1/nodes/{name}/states/provision"), &json!({"target": verb}))?;
            wait_until(state, PATIENCE, || Ok(self.node(name)?["provision_state"] == state))?;
        }
        self.settle(name, "power on")?;
        self.settle(name, "power off")?;
        Ok(node["uuid"].clone())
    }

    /// Asks for power, and waits until the node has it and is not locked.
    fn settle(&self, name: &str, target: &str) -> Result<()> {
        self.power(name, target)?;
        wait_until(target, PATIENCE, || {
            let node = self.node(name)?;
            Ok(node["power_state"] == target && node["reservation"].is_null())
        })
    }

    /// A new volume of a node; its path.
    fn volume(&self, node: &Value) -> Result<String> {
        let volume = json!({"node_uuid": node, "boot_index": 0, "volume_id": "v", "volume_type": "iscsi"});
        let volume = self.call("POST", "/v1/volume/targets", &volume)?;
        Ok(format!("/v1/volume/targets/{}", volume["uuid"].as_str().context("a volume's UUID")?))
    }
}

fn allocations(api: &Api, rounds: usize) -> Result<()> {
    api.enrol("allocated")?;
    for round in 0..rounds {
        api.power("allocated", if round % 2 == 0 { "power on" } else { "power off" })?;
        let wish = json!({"name": "wish", "resource_class": "allocated"});
        let mut made = api.once(201, "POST", "/v1/allocations", wish)?;
        wait_until("the allocation is decided", PATIENCE, || {
            made = api.once(200, "GET", "/v1/allocations/wish", Value::Null)?;
            Ok(made["state"] != "allocating")
        })?;
        ensure!(made["state"] == "active", "round {round}: {made}");
        api.call("DELETE", "/v1/allocations/wish", &Value::Null)?;
    }
    Ok(())
}

fn changes_of_volumes(api: &Api, rounds: usize) -> Result<()> {
    let node = api.enrol("changed")?;
    let path = api.volume(&node)?;
    for round in 0..rounds {
        let change = json!([{"op": "replace", "path": "/volume_id", "value": format!("v{round}")}]);
        api.power("changed", "power on")?;
        api.once(400, "PATCH", &path, change.clone())?;
        api.power("changed", "power off")?;
        api.once(200, "PATCH", &path, change)?;
    }
    Ok(())
}

/// In a state in which the node's power decides: in `available` volumes may always be deleted.
fn deletions_of_volumes(api: &Api, rounds: usize) -> Result<()> {
    let node = api.enrol("adopted")?;
    for (verb, state) in [("manage", "manageable"), ("adopt", "active")] {
        api.call("PUT", "/v1/nodes/adopted/states/provision", &json!({"target": verb}))?;
        wait_until(state, PATIENCE, || Ok(api.node("adopted")?["provision_state"] == state))?;
    }
    for _ in 0..rounds {
        let path = api.volume(&node)?;
        api.settle("adopted", "power off")?;
        api.power("adopted", "power on")?;
        api.once(400, "DELETE", &path, Value::Null)?;
        api.power("adopted", "power off")?;
        api.once(204, "DELETE", &path, Value::Null)?;
    }
    Ok(())
}

/// When a verb is taken, the change of power that came before it has been carried out.
fn verbs(api: &Api, rounds: usize) -> Result<()> {
    api.enrol("verb")?;
    for round in 0..rounds {
        let target = if round % 2 == 0 { "power on" } else { "power off" };
        api.power("verb", target)?;
        let (verb, state) = if round % 2 == 0 { ("manage", "manageable") } else { ("provide", "available") };
        api.once(202, "PUT", "/v1/nodes/verb/states/provision", json!({"target": verb}))?;
        let node = api.node("verb")?;
        ensure!(
            node["power_state"] == target && node["target_power_state"].is_null(),
            "round {round}: {verb} was taken before {target}: {}",
            node["power_state"]
        );
        wait_until(state, PATIENCE, || Ok(api.node("verb")?["provision_state"] == state))?;
    }
    Ok(())
}
