//! A machine that outlives its controllers: a Redfish BMC, and an agent for every boot from the network.

use agent_protocol::step::Step;
use anyhow::Result;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use bench::agent::Agent;
use bench::heart::Heart;
use room::Power;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const SYSTEM: &str = "/redfish/v1/Systems/1";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
/// Before a lookup or a heartbeat that brought nothing is sent again.
const AGAIN: Duration = Duration::from_millis(15);
/// Between heartbeats when no command ends.
const REGULAR: Duration = Duration::from_secs(1);
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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The agent of a boot from the network runs with its tasks.
    power: Power<Option<(Arc<Agent>, JoinSet<()>)>>,
    from_network: bool,
    journal: Vec<String>,
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
        self.inside.state().from_network = true;
        self.inside.switch(true);
    }

    /// What it did: switched on and off, and each step that an agent of it ran.
    pub fn journal(&self) -> Vec<String> {
        let state = self.inside.state();
        state.journal.iter().cloned().chain(ran(&state.power.runs)).collect()
    }
}

fn ran(runs: &Option<(Arc<Agent>, JoinSet<()>)>) -> Vec<String> {
    let marks = runs.iter().flat_map(|(agent, _)| agent.journal());
    marks.map(|mark| format!("ran {}", mark.step)).collect()
}

impl Inside {
    fn state(&self) -> MutexGuard<'_, State> {
        room::held(&self.state)
    }

    fn switch(&self, on: bool) {
        let mut state = self.state();
        if !on {
            let Some(runs) = state.power.switch_off() else { return };
            state.journal.extend(ran(&runs));
            state.journal.push("off".to_owned());
        } else if state.power.switch_on() {
            if !std::mem::take(&mut state.from_network) {
                return state.journal.push("on, from its disk".to_owned());
            }
            state.journal.push("on, from the network".to_owned());
            let agent = Arc::new(Agent::of(MAC.to_owned(), self.steps.clone()));
            let mut life = JoinSet::new();
            life.spawn(live(agent.clone(), self.controller));
            state.power.runs = Some((agent, life));
        }
    }
}

/// Lives until it is aborted. A controller that does not answer is asked again at once: how long a real agent would
/// wait is not what is tested here.
async fn live(agent: Arc<Agent>, controller: SocketAddr) {
    let mut serving = JoinSet::new();
    let mut heart = match Heart::new(agent, controller, true, &mut serving).await {
        Ok(heart) => heart,
        Err(error) => return eprintln!("agent: {error:#}"),
    };
    while heart.look_up().await.is_err() {
        tokio::time::sleep(AGAIN).await;
    }
    loop {
        let pause = if heart.beat().await.is_ok() { REGULAR } else { AGAIN };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = heart.agent.process.ended.notified() => {}
        }
    }
}

async fn show(Shared(inside): Shared<Arc<Inside>>) -> Json<Value> {
    let state = inside.state();
    Json(json!({
        "@odata.id": SYSTEM,
        "Id": "1",
        "PowerState": if state.power.on { "On" } else { "Off" },
        "Boot": {
            "BootSourceOverrideTarget": if state.from_network { "Pxe" } else { "None" },
            "BootSourceOverrideEnabled": if state.from_network { "Once" } else { "Disabled" },
        },
        "Actions": { "#ComputerSystem.Reset": {
            "target": RESET,
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff"],
        } },
    }))
}

async fn patch(Shared(inside): Shared<Arc<Inside>>, Json(body): Json<Value>) -> StatusCode {
    inside.state().from_network = body["Boot"]["BootSourceOverrideTarget"] == "Pxe";
    StatusCode::NO_CONTENT
}

async fn reset(Shared(inside): Shared<Arc<Inside>>, Json(body): Json<Value>) -> StatusCode {
    match body["ResetType"].as_str() {
        Some("On") => inside.switch(true),
        Some("ForceOff") => inside.switch(false),
        _ => return StatusCode::BAD_REQUEST,
    }
    StatusCode::NO_CONTENT
}
