//! The ramdisk and its agent: lookup, heartbeats, and what its commands do.

use super::fault::Fault;
use super::setup::World;
use agent_protocol::command::Status;
use agent_protocol::record::Outcome as DiskOutcome;
use async_trait::async_trait;
use conductor::agent_transport::{AgentCall, AgentTransport};
use model::agent::{AgentKind, AgentState};
use model::{Inventory, RunKind, StepKind};
use reqwest::StatusCode;
use room::{Agent, Begun, Call, Ending, Kind, StepContext, Work, advertised, deployed, erased, step_result};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{Clock, HeartbeatRecord, TokenGrant, TokenRequest, prelude::*};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// The one NIC of the node.
pub const NIC: &str = "52:54:00:00:00:01";

impl World {
    /// One boot of the ramdisk: 25 s to the start of the agent.
    pub async fn ramdisk(self: Arc<Self>, boot: u32) {
        sleep(Duration::from_secs(25)).await;
        if self.machine.lock().unwrap().is_in(boot) {
            self.start_agent(format!("boot-{boot}"));
        }
    }

    /// A new process in this boot.
    fn start_agent(self: &Arc<Self>, boot_id: String) {
        let agent = Arc::new(Agent::new(Kind::Anneal, boot_id, Uuid::new_v4().to_string()));
        self.machine.lock().unwrap().runs = Some(agent.clone());
        let world = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = agent.died.cancelled() => {}
                () = world.live(&agent) => {}
            }
        });
    }

    async fn live(&self, agent: &Agent) {
        let token = self.look_up(agent).await;
        *agent.token.lock().unwrap() = Some(token.clone());
        loop {
            self.beat(agent, &token).await;
            tokio::select! {
                () = agent.ended.notified() => {}
                () = sleep(Duration::from_secs(20)) => {}
            }
        }
    }

    /// The token of the lookup, with the inventory sent before where it is asked for.
    async fn look_up(&self, agent: &Agent) -> String {
        let token = Uuid::new_v4().to_string();
        // As its boot script has it.
        let nonce = self.store.contact(self.node).await.unwrap().boot.map(|boot| boot.nonce);
        loop {
            let node = self.store.node(self.node).await.unwrap();
            if node.boots_ramdisk() && !node.provision_state.is_stable() {
                if node.run.as_ref().is_some_and(|run| run.kind == RunKind::Inspect) {
                    self.store.put_inventory(self.node, self.inventory("agent")).await.unwrap();
                }
                let now = self.clock.now();
                let without = TokenRequest::without_nonce(&token, Some(&agent.boot_id), now);
                let request = TokenRequest { nonce: nonce.clone(), ..without };
                let grant = self.store.grant_token(self.node, request).await;
                if grant.unwrap() == TokenGrant::Given {
                    return token;
                }
            }
            sleep(Duration::from_secs(3)).await;
        }
    }

    async fn beat(&self, agent: &Agent, token: &str) {
        let state = agent.state();
        let beat = HeartbeatRecord {
            callback_url: "https://192.0.2.1:9999".into(),
            verify_ca: Some(agent.certificate.clone()),
            agent_version: Some("sim".into()),
            at: self.clock.now(),
            agent: AgentKind::Anneal(AgentState {
                boot_id: state.boot_id,
                process_id: state.process_id,
                evidence_key: state.evidence_key,
                running: state.running.map(|running| running.id),
                ended: state.ended,
                progress: None,
            }),
        };
        // A token that is no longer valid is refused; the agent then stays silent.
        let _ = self.store.record_heartbeat(self.node, token, beat).await;
    }

    pub fn inventory(&self, source: &str) -> Inventory {
        Inventory {
            inventory: json!({
                "cpu": {"count": 4, "architecture": "x86_64"},
                "memory": {"physical_mb": 512},
                "interfaces": [{"name": "eno1", "mac_address": NIC}],
                "disks": [{"name": "/dev/vda", "serial": "S1", "anneal": {"removable": false}}],
            }),
            plugin_data: self.plugin_data.lock().unwrap().clone(),
            at: self.clock.now(),
            source: source.into(),
            ruled: false,
        }
    }
}

/// The network between the conductor and the agent.
pub struct Network(pub Arc<World>);

#[async_trait]
impl AgentTransport for Network {
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String> {
        let agent = self.0.machine.lock().unwrap().runs.clone();
        let pinned = |agent: &Arc<Agent>| call.certificate.as_ref() == Some(&agent.certificate);
        let agent = agent.filter(pinned).ok_or("no agent answers")?;
        let call = Call::new(call.url.path(), call.url.query(), call.body);
        let answer = agent.answer(&Commands { world: &self.0, agent: &agent }, &call);
        if self.0.answer_is_lost.swap(false, Ordering::Relaxed) {
            return Err("the answer is lost".into());
        }
        Ok(answer)
    }
}

/// What the commands of the agent do.
struct Commands<'a> {
    world: &'a Arc<World>,
    agent: &'a Arc<Agent>,
}

impl Work for Commands<'_> {
    fn steps(&self, kind: StepKind) -> Value {
        let steps = self.world.steps.lock().unwrap().get(&kind).cloned().unwrap_or_default();
        advertised(kind, "GenericHardwareManager", "1", &steps)
    }

    fn begin(&self, step: Begun<'_>) {
        let fault = self.world.next_fault();
        if fault == Fault::VersionMismatch {
            let status = Status::VersionMismatch;
            return self.agent.finish(step.id, Ending { status, error: None, result: None });
        }
        self.world.ran.lock().unwrap().push(step.field("step").to_owned());
        if step.kind == StepKind::Deploy {
            self.world.sent.lock().unwrap().push(Value::Object(step.params.clone()));
        }
        self.world.answer_is_lost.store(fault == Fault::LostAnswer, Ordering::Relaxed);
        let (world, agent) = (self.world.clone(), self.agent.clone());
        let Begun { id, kind, params, context } = step;
        let (id, step) = (id.to_owned(), params["step"].clone());
        tokio::spawn(async move {
            if let Some(ending) = world.run(&agent, kind, &step, &context, &fault).await {
                agent.finish(&id, ending);
            }
        });
    }

    fn rescue(&self, params: &Map<String, Value>) -> Ending {
        *self.world.rescued_with.lock().unwrap() = params.get("rescue_password").cloned();
        Ending::done(None)
    }

    fn install_bootloader(&self, params: &Map<String, Value>) -> Ending {
        self.world.ran.lock().unwrap().push("install_bootloader".to_owned());
        self.world.sent.lock().unwrap().push(Value::Object(params.clone()));
        Ending::done(None)
    }
}

impl World {
    /// How a step of the agent ends; `None`: its agent ends first.
    async fn run(
        self: &Arc<Self>,
        agent: &Agent,
        kind: StepKind,
        step: &Value,
        context: &StepContext,
        fault: &Fault,
    ) -> Option<Ending> {
        sleep(Duration::from_secs(2)).await;
        match fault {
            Fault::PowerCut => self.switch(false),
            Fault::Reset => {
                self.switch(false);
                self.switch(true);
            }
            Fault::AgentRestart => {
                agent.died.cancel();
                self.start_agent(agent.boot_id.clone());
            }
            _ => {}
        }
        let end = Instant::now() + self.step_time;
        while *fault == Fault::Hang || Instant::now() < end {
            if agent.died.is_cancelled() {
                return None;
            }
            if context.is_cancelled() {
                return Some(Ending::failed("Cancelled", "Clean step failed", "cancelled"));
            }
            sleep(Duration::from_secs(1)).await;
        }
        let name = step["step"].as_str().unwrap_or_default();
        let result = |failed: bool| {
            let mut disk = erased(name, "/dev/vda", "S1", 1 << 30);
            if failed {
                disk.outcome = DiskOutcome::Failed;
            }
            let wanted = step["args"]["image_info"]["os_hash_value"].as_str();
            let report = match wanted.filter(|_| !failed) {
                Some(sha256) => json!({"image": deployed("/dev/vda", "S1", 1 << 30, sha256)}),
                None => json!({"disks": [disk]}),
            };
            Some(step_result(kind, step, &report))
        };
        Some(match fault {
            Fault::StepFails(text) => {
                Ending { result: result(true), ..Ending::failed("CleaningError", "Clean step failed", *text) }
            }
            Fault::LyingReport => Ending::done(result(true)),
            Fault::LargeResult => Ending::done(result(false).map(|mut result| {
                result["padding"] = "x".repeat(1 << 20).into();
                result
            })),
            _ => Ending::done(result(false)),
        })
    }
}
