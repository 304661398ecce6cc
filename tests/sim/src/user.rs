//! Users: what they ask for, in whatever state they find a node. They are impatient, and do not read.

use crate::drivers::DRIVER;
use crate::http::{Answer, Request};
use crate::invariants::end::rests;
use crate::machine::Machine;
use crate::world::World;
use model::boot::AGENT_KIND;
use model::{Node, PowerTarget, ProvisionState, StepKind};
use room::Kind;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;
use tokio::time::sleep;

/// Traits that every node has, and that deploy templates are named by.
pub const TRAITS: [&str; 2] = ["CUSTOM_FIRMWARE", "CUSTOM_PLAIN"];

/// A user of the API who works on one node.
#[derive(Clone)]
pub struct User {
    world: Arc<World>,
    machine: Arc<Machine>,
}

/// What every node's RAID is to be.
pub fn wanted_raid() -> Value {
    json!({"logical_disks": [{"raid_level": "1", "size_gb": 100, "is_root_volume": true}]})
}

impl User {
    /// A user of the node that a machine is.
    pub fn of(world: &Arc<World>, machine: &Arc<Machine>) -> Self {
        Self { world: world.clone(), machine: machine.clone() }
    }

    /// Send a request; what is not answered is not asked again.
    pub async fn ask(&self, method: &'static str, tail: &str, body: Value) -> Result<Answer, String> {
        let path = format!("/v1/nodes/{}{tail}", self.machine.uuid);
        let answer = self.world.send(&self.machine, Request::new(method, &path).with(body.clone())).await;
        self.world.trace.note(|| {
            let result = match &answer {
                Ok(answer) if answer.is_good() => answer.status.to_string(),
                Ok(answer) => format!("{} {}", answer.status, String::from_utf8_lossy(&answer.bytes)),
                Err(text) => text.clone(),
            };
            format!("{} user: {method} {tail} {body} → {result}", self.machine.name)
        });
        answer
    }

    /// A verb with what comes along.
    pub async fn verb(&self, target: &str, rest: Value) -> Result<Answer, String> {
        let mut body = json!({"target": target});
        if let (Some(body), Value::Object(rest)) = (body.as_object_mut(), rest) {
            body.extend(rest);
        }
        self.ask("PUT", "/states/provision", body).await
    }

    /// Enrol the node with its port, RAID and traits, until it is there.
    pub async fn enrol(&self) {
        let machine = &self.machine;
        let kind = match machine.agent_kind {
            Some(Kind::Ipa) => "ironic-python-agent",
            _ => "anneal",
        };
        let node = json!({
            "uuid": machine.uuid, "name": machine.name, "driver": DRIVER, "deploy_interface": machine.name,
            "resource_class": "baremetal", "properties": {AGENT_KIND: kind},
            "disable_power_off": machine.never_off,
            // Half of the nodes keep their ramdisks for a deployment.
            "driver_info": {"fast_track": machine.uuid.as_u128().is_multiple_of(2)},
        });
        let port = json!({"node_uuid": machine.uuid, "address": machine.mac});
        let raid_path = format!("/v1/nodes/{}/states/raid", machine.uuid);
        for (method, path, body) in [
            ("POST", "/v1/nodes", node),
            ("POST", "/v1/ports", port),
            ("PUT", raid_path.as_str(), wanted_raid()),
        ] {
            let done = |answer: Result<Answer, String>| {
                answer.is_ok_and(|answer| answer.is_good() || answer.status == 409)
            };
            while !done(self.world.send(machine, Request::new(method, path).with(body.clone())).await) {
                sleep(Duration::from_secs(5)).await;
            }
        }
        let _ = self.ask("PUT", "/traits", json!({"traits": TRAITS})).await;
    }

    /// The node as it is stored.
    pub async fn node(&self) -> Option<Node> {
        self.world.disk.node(self.machine.uuid).await.ok()
    }

    /// Send requests until the faults end.
    pub async fn live(self) {
        loop {
            let pause = if self.world.rng.chance(0.2) { 1..30 } else { 30..400 };
            sleep(self.world.rng.seconds(pause)).await;
            let Some(node) = self.node().await else { continue };
            let impatience = self.world.faults().impatience;
            if self.world.rng.chance(impatience * 0.3) {
                self.meddle(&node).await;
            } else if rests(&node) || self.world.rng.chance(impatience) {
                self.go_on(&node).await;
            } else if node.provision_state.as_str().ends_with("hold") {
                let target = if self.world.rng.chance(0.8) { "unhold" } else { "abort" };
                let _ = self.verb(target, Value::Null).await;
            }
        }
    }

    /// A verb that the state knows.
    async fn go_on(&self, node: &Node) {
        use ProvisionState as P;
        let rng = &self.world.rng;
        let answer = match node.provision_state {
            P::Enroll => self.verb("manage", Value::Null).await,
            P::Manageable => match rng.number(0..10) {
                0..5 => self.verb("provide", Value::Null).await,
                5..8 => self.verb("clean", self.clean_steps()).await,
                8 => self.verb("inspect", Value::Null).await,
                _ => self.retire(!node.retired).await,
            },
            P::Available => match rng.number(0..5) {
                0 => self.verb("manage", Value::Null).await,
                _ => self.deploy().await,
            },
            P::Active => match rng.number(0..10) {
                0..3 => self.verb("service", self.service_steps()).await,
                3..5 => self.verb("rescue", json!({"rescue_password": "let me in"})).await,
                5 => self.verb("rebuild", Value::Null).await,
                6 => self.retire(!node.retired).await,
                _ => self.verb("deleted", Value::Null).await,
            },
            P::Rescue => {
                let target = if rng.chance(0.8) { "unrescue" } else { "deleted" };
                self.verb(target, Value::Null).await
            }
            P::CleanFail | P::InspectFail | P::AdoptFail => self.verb("manage", Value::Null).await,
            P::DeployFail => match rng.number(0..3) {
                0 => self.deploy().await,
                _ => self.verb("deleted", Value::Null).await,
            },
            P::RescueFail | P::UnrescueFail => {
                let target = *rng.pick(&["rescue", "unrescue", "deleted"]);
                let rest =
                    if target == "rescue" { json!({"rescue_password": "let me in"}) } else { Value::Null };
                self.verb(target, rest).await
            }
            P::ServiceFail => match rng.number(0..3) {
                0 => self.verb("abort", Value::Null).await,
                1 => self.verb("service", self.service_steps()).await,
                _ => self.verb("deleted", Value::Null).await,
            },
            P::Error => self.verb("deleted", Value::Null).await,
            // At work: the user has lost patience.
            _ => self.verb("abort", Value::Null).await,
        };
        // Whatever it says, the user looks at the node the next time.
        let _ = answer;
    }

    async fn deploy(&self) -> Result<Answer, String> {
        let rng = &self.world.rng;
        let traits: Vec<&str> = TRAITS.into_iter().filter(|_| rng.chance(0.5)).collect();
        let patch = json!([{"op": "add", "path": "/instance_info/traits", "value": traits}]);
        let patched = self.ask("PATCH", "", patch).await?;
        if !patched.is_good() {
            return Ok(patched);
        }
        let optional =
            ["bios.apply_settings", "raid.create_configuration", "management.collect", "firmware.flash"];
        let offered = self.labels(StepKind::Deploy);
        let mut steps = Vec::new();
        for label in optional.iter().filter(|label| offered.contains(&(**label).to_owned())) {
            if rng.chance(0.4) {
                steps.push(step(label, Some(*rng.pick(&[0, 60, 90, 120]))));
            }
        }
        self.verb("active", json!({"deploy_steps": steps})).await
    }

    /// Labels that the machine offers, in-band and out-of-band.
    fn labels(&self, kind: StepKind) -> Vec<String> {
        let offers = self.machine.state().offers.clone();
        let all = offers.steps.iter().chain(&self.machine.out_of_band);
        all.filter(|offer| offer.wire(kind).is_some()).map(crate::offers::Offer::label).collect()
    }

    fn clean_steps(&self) -> Value {
        json!({"clean_steps": self.some_steps(StepKind::Clean)})
    }

    fn service_steps(&self) -> Value {
        json!({"service_steps": self.some_steps(StepKind::Service)})
    }

    /// One to four steps, the reserved ones among them; sometimes one that does not exist.
    fn some_steps(&self, kind: StepKind) -> Vec<Value> {
        let rng = &self.world.rng;
        let mut labels = self.labels(kind);
        labels
            .extend(["power.reboot", "power.power_off", "power.power_on", "deploy.hold"].map(str::to_owned));
        let mut steps: Vec<Value> =
            (0..rng.number(1..5)).map(|_| step(rng.pick::<String>(&labels), None)).collect();
        if rng.chance(0.2) {
            steps
                .push(json!({"interface": "power", "step": "wait", "args": {"seconds": rng.number(1..120)}}));
        }
        if rng.chance(0.03) {
            steps.push(step("deploy.unknown_step", None));
        }
        steps
    }

    async fn retire(&self, retired: bool) -> Result<Answer, String> {
        self.ask("PATCH", "", json!([{"op": "add", "path": "/retired", "value": retired}])).await
    }

    /// Send a request that does not make sense in this state.
    async fn meddle(&self, node: &Node) {
        let rng = &self.world.rng;
        let answer = match rng.number(0..8) {
            0..3 => self.verb("abort", Value::Null).await,
            3 => {
                let target =
                    *rng.pick(&["provide", "manage", "active", "deleted", "unhold", "rebuild", "adopt"]);
                // A foreign node that is adopted is not judged.
                if target == "adopt" {
                    return;
                }
                self.verb(target, Value::Null).await
            }
            4 => {
                let target = rng.pick(&[PowerTarget::On, PowerTarget::Off, PowerTarget::Reboot]).as_str();
                self.ask("PUT", "/states/power", json!({"target": target})).await
            }
            5 if node.maintenance => self.ask("DELETE", "/maintenance", Value::Null).await,
            5 => self.ask("PUT", "/maintenance", json!({"reason": "a user"})).await,
            6 => self.retire(!node.retired).await,
            _ if node.provision_state == ProvisionState::CleanFail => {
                self.verb("available", json!({"reason": "sim"})).await
            }
            _ => self.verb("abort", Value::Null).await,
        };
        let _ = answer;
    }

    /// One polite step towards AVAILABLE by cleaning. True when the node is there and was cleaned since `since`.
    pub async fn towards_available(&self, node: &Node) -> Result<Answer, String> {
        use ProvisionState as P;
        if node.retired {
            return self.retire(false).await;
        }
        if node.maintenance && node.fault.is_none() {
            return self.ask("DELETE", "/maintenance", Value::Null).await;
        }
        match node.provision_state {
            P::Enroll | P::CleanFail | P::InspectFail | P::AdoptFail | P::Available => {
                self.verb("manage", Value::Null).await
            }
            P::Manageable => self.verb("provide", Value::Null).await,
            _ => self.verb("deleted", Value::Null).await,
        }
    }
}

fn step(label: &str, priority: Option<u32>) -> Value {
    let (interface, name) = label.split_once('.').unwrap_or(("deploy", label));
    let mut step = json!({"interface": interface, "step": name});
    if let Some(priority) = priority {
        step["priority"] = priority.into();
        step["args"] = json!({});
    }
    step
}
