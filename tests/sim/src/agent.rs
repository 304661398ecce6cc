//! An agent's process in the ramdisk: inspection, lookup, heartbeats, with the real agent's own judgement of
//! answers, its pace and its registry. What it does with commands is in `commands.rs`.

use crate::held;
use crate::http::{Answer, Request};
use crate::machine::Machine;
use crate::world::World;
use agent_protocol::heartbeat::Heartbeat;
use agent_protocol::{HEARTBEAT_MICROVERSION, LOOKUP_MICROVERSION};
use agentd::heartbeat::{Activity, Outcome, Pace};
use agentd::http;
use agentd::lookup::{self, LookupError, LookupResult};
use agentd::token::Token;
use model::boot::BootNonce;
use room::{Agent, Kind};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

/// Longest wait between lookups, as the real agent's.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);

/// What the kernel command line of a boot says.
#[derive(Debug, Clone)]
pub struct BootScript {
    /// The nonce of the boot.
    pub nonce: BootNonce,
    /// It names an inspection callback.
    pub inspects: bool,
}

/// Start a process in a boot that has come up.
pub fn start(world: &Arc<World>, machine: &Arc<Machine>, boot_id: String, script: BootScript) {
    let Some(kind) = machine.agent_kind else { return };
    let agent = Arc::new(Agent::new(kind, boot_id, world.rng.uuid().to_string()));
    machine.state().power.runs = Some(agent.clone());
    world.happened(machine, "agent started");
    let (world, machine) = (world.clone(), machine.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = agent.died.cancelled() => {}
            () = live(&world, &machine, &agent, &script) => {}
        }
    });
}

/// End the process that runs, if any; a supervisor starts another in the same boot.
pub fn kill(world: &Arc<World>, machine: &Arc<Machine>) {
    let (agent, boot) = {
        let mut state = machine.state();
        (state.power.runs.take(), state.power.boot)
    };
    let Some(agent) = agent else { return };
    end(world, machine, &agent, "agent killed");
    let (world, machine) = (world.clone(), machine.clone());
    tokio::spawn(async move {
        sleep(world.rng.seconds(1..30)).await;
        if machine.is_in(boot) && machine.agent().is_none() {
            let nonce = held(&world.ground_truth).machines[machine.index].nonce.clone();
            let Some(nonce) = nonce else { return };
            start(&world, &machine, agent.boot_id.clone(), BootScript { nonce, inspects: false });
        }
    });
}

/// Someone else who knows the MAC address, and asks for the token in some boots without the boot script.
pub fn impostor(world: &Arc<World>, machine: &Arc<Machine>, boot: u32) {
    if !world.rng.chance(0.2) {
        return;
    }
    let (world, machine) = (world.clone(), machine.clone());
    tokio::spawn(async move {
        let path = format!("/v1/lookup?addresses={}", machine.mac.replace(':', "%3A"));
        while machine.is_in(boot) && machine.agent().is_none() {
            // An answer with a token breaks the rule `no_token_without_the_nonce_of_the_boot` in the store.
            let _ = world.send(&machine, Request::new("GET", &path).at(LOOKUP_MICROVERSION)).await;
            sleep(Duration::from_secs(5)).await;
        }
    });
}

/// The process is over, and what it was doing with it.
pub fn end(world: &World, machine: &Machine, agent: &Agent, how: &str) {
    agent.died.cancel();
    world.happened(machine, how);
    held(&world.ground_truth).interrupt(machine.index, world.now());
}

async fn live(world: &Arc<World>, machine: &Arc<Machine>, agent: &Arc<Agent>, script: &BootScript) {
    let nonce = &script.nonce;
    if script.inspects {
        inspect(world, machine, agent.kind, nonce).await;
    }
    let mut found = look_up(world, machine, agent, nonce).await;
    *held(&agent.token) = Some(found.token.expose().to_owned());
    let mut failures = 0;
    loop {
        let sent = Instant::now();
        let outcome = beat(world, machine, agent, &found, nonce).await;
        // ironic-python-agent does not ask again who it is.
        if outcome == Outcome::Refused
            && agent.kind == Kind::Anneal
            && let Ok(fresh) = ask(world, machine, agent, nonce, Some(&found.token)).await
        {
            *held(&agent.token) = Some(fresh.token.expose().to_owned());
            found = fresh;
        }
        failures = if outcome == Outcome::Accepted { 0 } else { failures + 1 };
        let pace = Pace {
            heartbeat_timeout: found.heartbeat_timeout,
            extension: found.extension && agent.kind == Kind::Anneal,
            outcome,
            failures,
            random: world.rng.unit(),
        };
        rest(agent, sent, &pace).await;
    }
}

async fn rest(agent: &Agent, sent: Instant, pace: &Pace) {
    let progress = held(&agent.registry).running().is_some_and(|running| running.progress.is_some());
    let mut activity = Activity { ended: false, progress };
    loop {
        tokio::select! {
            biased;
            () = agent.ended.notified() => activity.ended = true,
            () = agent.progressed.notified() => activity.progress = true,
            () = sleep_until(sent + pace.due_after(activity)) => return,
        }
    }
}

async fn inspect(world: &Arc<World>, machine: &Machine, kind: Kind, nonce: &BootNonce) {
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
        match world.send(machine, request.showing(nonce, kind)).await {
            Ok(Answer { status: 409 | 500.., .. }) | Err(_) => sleep(Duration::from_secs(5 + attempt)).await,
            Ok(_) => return,
        }
    }
}

async fn look_up(world: &Arc<World>, machine: &Machine, agent: &Agent, nonce: &BootNonce) -> LookupResult {
    let mut failures = 0;
    loop {
        match ask(world, machine, agent, nonce, None).await {
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
    agent: &Agent,
    nonce: &BootNonce,
    own: Option<&Token>,
) -> Result<LookupResult, LookupError> {
    let mut path = format!("/v1/lookup?addresses={}", machine.mac.replace(':', "%3A"));
    if agent.kind == Kind::Anneal {
        path.push_str(&format!("&anneal_boot_id={}", agent.boot_id));
    }
    let request = Request::new("GET", &path).at(LOOKUP_MICROVERSION).showing(nonce, agent.kind);
    match world.send(machine, request).await {
        Ok(answer) => lookup::judge(answer.status, &answer.bytes, own),
        Err(text) => Err(LookupError::Answer(text)),
    }
}

async fn beat(
    world: &Arc<World>,
    machine: &Machine,
    agent: &Agent,
    found: &LookupResult,
    nonce: &BootNonce,
) -> Outcome {
    let ours = found.extension && agent.kind == Kind::Anneal;
    let beat = Heartbeat {
        callback_url: format!("https://{}:9999", machine.address),
        agent_token: Some(found.token.expose().to_owned()),
        agent_version: Some("sim".to_owned()),
        agent_verify_ca: Some(agent.certificate.clone()),
        anneal: ours.then(|| agent.state()),
    };
    let body = serde_json::to_value(&beat).unwrap_or(Value::Null);
    let path = format!("/v1/heartbeat/{}", found.node_uuid.parse::<Uuid>().unwrap_or(machine.uuid));
    let request = Request::new("POST", &path).at(HEARTBEAT_MICROVERSION).with(body);
    match world.send(machine, request.showing(nonce, agent.kind)).await {
        Ok(Answer { status: 202, .. }) => Outcome::Accepted,
        Ok(Answer { status: status @ (400 | 401 | 403 | 404), bytes }) => {
            let text = http::shorten(&bytes);
            world.trace.note(|| format!("{} heartbeat refused: {status} {text}", machine.name));
            Outcome::Refused
        }
        _ => Outcome::Failed,
    }
}
