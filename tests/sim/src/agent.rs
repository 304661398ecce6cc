//! An agent's process in the ramdisk: inspection, lookup, heartbeats, with the real agent's own judgement of
//! answers, its pace and its registry. What it does with commands is in `commands.rs`.

use crate::held;
use crate::http::{Answer, Request};
use crate::machine::{Flavour, Machine};
use crate::world::World;
use agent_protocol::heartbeat::{AgentState, Heartbeat};
use agent_protocol::{EXTENSION, HEARTBEAT_MICROVERSION, LOOKUP_MICROVERSION};
use agentd::heartbeat::{Activity, Outcome, Pace};
use agentd::http;
use agentd::lookup::{self, LookupError, LookupResult};
use agentd::registry::Registry;
use agentd::token::Token;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longest wait between lookups, as the real agent's.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);
/// A certificate's PEM begins and ends so; nothing of the inside is looked at but its being the same.
const PEM: (&str, &str) = ("-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n");

/// One process of an agent.
pub struct AgentProcess {
    /// Of the boot.
    pub boot_id: String,
    /// Of the process.
    pub process_id: String,
    /// What its API shows; a controller pins it.
    pub certificate: String,
    /// Ends when the process does.
    pub died: CancellationToken,
    /// Its commands.
    pub registry: Mutex<Registry>,
    /// Its token, once it has one.
    pub token: Mutex<Option<Token>>,
    /// A command has ended.
    pub bell: Notify,
    /// A command has reported its first progress.
    pub progressed: Notify,
}

impl AgentProcess {
    fn new(world: &World, boot_id: String) -> Arc<Self> {
        let process_id = world.rng.uuid().to_string();
        // Base64 of nothing in particular; a process makes its own.
        let inside = process_id.replace('-', "");
        Arc::new(Self {
            boot_id,
            certificate: format!("{}{inside}{}", PEM.0, PEM.1),
            process_id,
            died: CancellationToken::new(),
            registry: Mutex::default(),
            token: Mutex::default(),
            bell: Notify::new(),
            progressed: Notify::new(),
        })
    }

    fn state(&self) -> AgentState {
        let registry = held(&self.registry);
        AgentState {
            extension: EXTENSION,
            boot_id: self.boot_id.clone(),
            process_id: self.process_id.clone(),
            evidence_key: None,
            running: registry.running(),
            ended: registry.ended(),
        }
    }
}

/// Start a process in a boot that has come up; `inspects`: the kernel command line names an inspection callback.
pub fn start(world: &Arc<World>, machine: &Arc<Machine>, boot_id: String, inspects: bool) {
    let agent = AgentProcess::new(world, boot_id);
    machine.state().agent = Some(agent.clone());
    world.happened(machine, "agent started");
    let (world, machine) = (world.clone(), machine.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = agent.died.cancelled() => {}
            () = live(&world, &machine, &agent, inspects) => {}
        }
    });
}

/// End the process that runs, if any; a supervisor starts another in the same boot.
pub fn kill(world: &Arc<World>, machine: &Arc<Machine>) {
    let (agent, boot) = {
        let mut state = machine.state();
        (state.agent.take(), state.boot)
    };
    let Some(agent) = agent else { return };
    end(world, machine, &agent, "agent killed");
    let (world, machine) = (world.clone(), machine.clone());
    tokio::spawn(async move {
        sleep(world.rng.seconds(1..30)).await;
        if machine.is_in(boot) && machine.agent().is_none() {
            start(&world, &machine, agent.boot_id.clone(), false);
        }
    });
}

/// The process is over, and what it was doing with it.
pub fn end(world: &World, machine: &Machine, agent: &AgentProcess, how: &str) {
    agent.died.cancel();
    world.happened(machine, how);
    held(&world.ground_truth).interrupt(machine.index, world.now());
}

async fn live(world: &Arc<World>, machine: &Arc<Machine>, agent: &Arc<AgentProcess>, inspects: bool) {
    if inspects {
        inspect(world, machine).await;
    }
    let mut found = look_up(world, machine).await;
    *held(&agent.token) = Some(found.token.clone());
    let mut failures = 0;
    loop {
        let sent = Instant::now();
        let outcome = beat(world, machine, agent, &found).await;
        // ironic-python-agent does not ask again who it is.
        if outcome == Outcome::Refused
            && machine.flavour == Flavour::Anneal
            && let Ok(fresh) = ask(world, machine, Some(&found.token)).await
        {
            *held(&agent.token) = Some(fresh.token.clone());
            found = fresh;
        }
        failures = if outcome == Outcome::Accepted { 0 } else { failures + 1 };
        let pace = Pace {
            heartbeat_timeout: found.heartbeat_timeout,
            extension: found.extension && machine.flavour == Flavour::Anneal,
            outcome,
            failures,
            random: world.rng.unit(),
        };
        rest(agent, sent, &pace).await;
    }
}

async fn rest(agent: &AgentProcess, sent: Instant, pace: &Pace) {
    let progress = held(&agent.registry).running().is_some_and(|running| running.progress.is_some());
    let mut activity = Activity { ended: false, progress };
    loop {
        tokio::select! {
            biased;
            () = agent.bell.notified() => activity.ended = true,
            () = agent.progressed.notified() => activity.progress = true,
            () = sleep_until(sent + pace.due_after(activity)) => return,
        }
    }
}

async fn inspect(world: &Arc<World>, machine: &Machine) {
    let body = json!({
        "inventory": {
            "interfaces": [{"name": "eth0", "mac_address": machine.mac}],
            "cpu": {"count": 8, "architecture": "x86_64"}, "memory": {"physical_mb": 4096},
            "disks": [], "system_vendor": {"manufacturer": "ACME"}, "boot": {},
        },
        "boot_interface": machine.mac,
    });
    for attempt in 0..5 {
        // In this version ironic-python-agent asks, and so does ours.
        let request = Request::new("POST", "/v1/continue_inspection").at("1.1").with(body.clone());
        match world.send(machine, request).await {
            Ok(Answer { status: 409 | 500.., .. }) | Err(_) => sleep(Duration::from_secs(5 + attempt)).await,
            Ok(_) => return,
        }
    }
}

async fn look_up(world: &Arc<World>, machine: &Machine) -> LookupResult {
    let mut failures = 0;
    loop {
        match ask(world, machine, None).await {
            Ok(found) => return found,
            Err(error) => {
                world.trace.note(|| format!("{} lookup: {error}", machine.name));
                sleep(lookup::delay(&error, failures, LOOKUP_INTERVAL, world.rng.unit())).await;
                failures += 1;
            }
        }
    }
}

async fn ask(
    world: &Arc<World>,
    machine: &Machine,
    own: Option<&Token>,
) -> Result<LookupResult, LookupError> {
    let path = format!("/v1/lookup?addresses={}", machine.mac.replace(':', "%3A"));
    match world.send(machine, Request::new("GET", &path).at(LOOKUP_MICROVERSION)).await {
        Ok(answer) => lookup::judge(answer.status, &answer.bytes, own),
        Err(text) => Err(LookupError::Answer(text)),
    }
}

async fn beat(world: &Arc<World>, machine: &Machine, agent: &AgentProcess, found: &LookupResult) -> Outcome {
    let ours = found.extension && machine.flavour == Flavour::Anneal;
    let beat = Heartbeat {
        callback_url: format!("https://{}:9999", machine.address),
        agent_token: Some(found.token.expose().to_owned()),
        agent_version: Some("sim".to_owned()),
        agent_verify_ca: Some(agent.certificate.clone()),
        anneal: ours.then(|| agent.state()),
    };
    let body = serde_json::to_value(&beat).unwrap_or(Value::Null);
    let path = format!("/v1/heartbeat/{}", found.node_uuid.parse::<Uuid>().unwrap_or(machine.uuid));
    match world.send(machine, Request::new("POST", &path).at(HEARTBEAT_MICROVERSION).with(body)).await {
        Ok(Answer { status: 202, .. }) => Outcome::Accepted,
        Ok(Answer { status: status @ (400 | 401 | 403 | 404), bytes }) => {
            let text = http::shorten(&bytes);
            world.trace.note(|| format!("{} heartbeat refused: {status} {text}", machine.name));
            Outcome::Refused
        }
        _ => Outcome::Failed,
    }
}
