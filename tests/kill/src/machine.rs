//! A machine that outlives its controllers: a Redfish BMC, and an agent for every boot from the network.

use crate::heart;
use agent_protocol::step::Step;
use anyhow::Result;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use bench::agent::Agent;
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const SYSTEM: &str = "/redfish/v1/Systems/1";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
/// Its MAC address.
pub const MAC: &str = "52:54:00:be:00:00";

/// The machine; switched off when dropped.
pub struct Machine {
    inside: Arc<Inside>,
    bmc: SocketAddr,
    _serving: JoinSet<()>,
}

struct Inside {
    controller: SocketAddr,
    steps: Vec<Step>,
    state: Mutex<Power>,
}

#[derive(Default)]
struct Power {
    on: bool,
    from_network: bool,
    agent: Option<Arc<Agent>>,
    life: JoinSet<()>,
    journal: Vec<String>,
}

/// A clean step of the agents.
pub fn step(name: &str, priority: u32, reboot_requested: bool) -> Step {
    Step {
        step: name.to_owned(),
        priority: priority.into(),
        interface: "deploy".to_owned(),
        reboot_requested,
        abortable: false,
        argsinfo: None,
        args: None,
        other: Map::new(),
    }
}

impl Machine {
    /// A machine that is off. Its agents offer `steps` and ask the controller at `controller` who they are.
    ///
    /// # Errors
    /// When there is no port for its BMC.
    pub async fn new(controller: SocketAddr, steps: Vec<Step>) -> Result<Self> {
        let inside = Arc::new(Inside { controller, steps, state: Mutex::default() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let bmc = listener.local_addr()?;
        let router = Router::new()
            .route(SYSTEM, get(show).patch(patch))
            .route(RESET, post(reset))
            .with_state(inside.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("BMC {bmc}: {error}");
            }
        });
        Ok(Self { inside, bmc, _serving: serving })
    }

    /// What a node behind this BMC is enrolled with.
    pub fn driver_info(&self) -> Value {
        json!({ "redfish_address": format!("http://{}", self.bmc), "redfish_system_id": SYSTEM })
    }

    /// Switches it on without a BMC's doing, to boot from the network.
    pub fn boot(&self) {
        self.inside.power().from_network = true;
        self.inside.switch(true);
    }

    /// What it did: switched on and off, and each step that an agent of it ran.
    pub fn journal(&self) -> Vec<String> {
        let power = self.inside.power();
        power.journal.iter().cloned().chain(ran(&power)).collect()
    }
}

fn ran(power: &Power) -> Vec<String> {
    let marks = power.agent.iter().flat_map(|agent| agent.journal());
    marks.map(|mark| format!("ran {}", mark.step)).collect()
}

impl Inside {
    fn power(&self) -> MutexGuard<'_, Power> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn switch(&self, on: bool) {
        let mut power = self.power();
        if power.on == on {
            return;
        }
        power.on = on;
        let ran = ran(&power);
        power.journal.extend(ran);
        power.agent = None;
        power.life.abort_all();
        if !on {
            power.journal.push("off".to_owned());
            return;
        }
        if !std::mem::take(&mut power.from_network) {
            power.journal.push("on, from its disk".to_owned());
            return;
        }
        power.journal.push("on, from the network".to_owned());
        let agent = Arc::new(Agent::of(MAC.to_owned(), self.steps.clone()));
        power.agent = Some(agent.clone());
        power.life.spawn(heart::live(agent, self.controller));
    }
}

async fn show(State(inside): State<Arc<Inside>>) -> Json<Value> {
    let power = inside.power();
    Json(json!({
        "@odata.id": SYSTEM,
        "Id": "1",
        "PowerState": if power.on { "On" } else { "Off" },
        "Boot": {
            "BootSourceOverrideTarget": if power.from_network { "Pxe" } else { "None" },
            "BootSourceOverrideEnabled": if power.from_network { "Once" } else { "Disabled" },
        },
        "Actions": { "#ComputerSystem.Reset": {
            "target": RESET,
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff"],
        } },
    }))
}

async fn patch(State(inside): State<Arc<Inside>>, Json(body): Json<Value>) -> StatusCode {
    inside.power().from_network = body["Boot"]["BootSourceOverrideTarget"] == "Pxe";
    StatusCode::NO_CONTENT
}

async fn reset(State(inside): State<Arc<Inside>>, Json(body): Json<Value>) -> StatusCode {
    match body["ResetType"].as_str() {
        Some("On") => inside.switch(true),
        Some("ForceOff") => inside.switch(false),
        _ => return StatusCode::BAD_REQUEST,
    }
    StatusCode::NO_CONTENT
}
