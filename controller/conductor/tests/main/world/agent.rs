//! The ramdisk and its agent: lookup, heartbeats, commands.

use super::fault::Fault;
use super::setup::World;
use agent_protocol::command::{CommandError, CommandStatus, Status};
use conductor::decision::{ActionError, Outcome};
use model::agent::{AgentKind, AgentState};
use model::{Contact, Inventory, PlannedStep, RunKind, StepKind};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, HeartbeatRecord, TokenGrant, prelude::*};
use tokio::time::sleep;

/// The one NIC of the node.
pub const NIC: &str = "52:54:00:00:00:01";

impl World {
    /// One boot of the ramdisk: 25 s to the lookup, then heartbeats until the boot is over.
    pub async fn ramdisk(self: Arc<Self>, boot: u32) {
        sleep(Duration::from_secs(25)).await;
        let process = self.machine.lock().unwrap().process;
        self.agent(boot, process).await;
    }

    async fn agent(self: &Arc<Self>, boot: u32, process: u32) {
        let alive = || {
            let machine = self.machine.lock().unwrap();
            machine.on && machine.boots == boot && machine.process == process
        };
        let token = format!("token-{boot}-{process}");
        let boot_id = format!("boot-{boot}");
        while alive() {
            let node = self.store.node(self.node).await.unwrap();
            if node.boots_ramdisk() && !node.provision_state.is_stable() {
                if node.run.as_ref().is_some_and(|run| run.kind == RunKind::Inspect) {
                    self.store.put_inventory(self.node, self.inventory("agent")).await.unwrap();
                }
                let grant = self.store.grant_token(self.node, &token, Some(&boot_id), self.clock.now()).await;
                if grant.unwrap() == TokenGrant::Given {
                    self.machine.lock().unwrap().token = Some(token.clone());
                    break;
                }
            }
            sleep(Duration::from_secs(3)).await;
        }
        while alive() {
            self.beat(&boot_id, &token).await;
            sleep(Duration::from_secs(20)).await;
        }
    }

    async fn beat(&self, boot_id: &str, token: &str) {
        let (ended, running) = {
            let machine = self.machine.lock().unwrap();
            let ids = |running: bool| {
                let of = |status: &CommandStatus| (status.command_status == Status::Running) == running;
                machine.commands.iter().filter(|(_, s)| of(s)).map(|(id, _)| id.clone()).collect::<Vec<_>>()
            };
            (ids(false), ids(true).pop())
        };
        let state = AgentState {
            boot_id: boot_id.into(),
            process_id: token.into(),
            evidence_key: None,
            running,
            ended,
            progress: None,
        };
        let beat = HeartbeatRecord {
            callback_url: "https://192.0.2.1:9999".into(),
            verify_ca: None,
            agent_version: Some("sim".into()),
            at: self.clock.now(),
            agent: AgentKind::Anneal(state),
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
            }),
            plugin_data: self.plugin_data.lock().unwrap().clone(),
            at: self.clock.now(),
            source: source.into(),
            ruled: false,
        }
    }

    pub fn status(id: &str, status: Status, result: Value, error: Option<&str>) -> CommandStatus {
        CommandStatus {
            id: id.into(),
            command_name: "execute_clean_step".into(),
            command_status: status,
            command_error: error.map(|text| CommandError {
                kind: "CleaningError".into(),
                code: 500,
                message: "Clean step failed".into(),
                details: text.into(),
            }),
            command_result: Some(result),
            progress: None,
            checkpoint: None,
        }
    }

    /// Take a command, unless the agent has it already.
    pub fn send(self: &Arc<Self>, id: &str, run: RunKind, step: &PlannedStep, contact: &Contact) -> Outcome {
        let mut machine = self.machine.lock().unwrap();
        if !machine.on || machine.token != contact.token || machine.token.is_none() {
            return unreachable_agent();
        }
        if let Some((_, status)) = machine.commands.iter().find(|(known, _)| known == id) {
            return Outcome::Command(status.clone());
        }
        let fault = self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
        if fault == Fault::VersionMismatch {
            return Outcome::Command(Self::status(id, Status::VersionMismatch, Value::Null, None));
        }
        if run == RunKind::Rescue {
            let done = Self::status(id, Status::Succeeded, Value::Null, None);
            machine.commands.push((id.to_owned(), done.clone()));
            return Outcome::Command(done);
        }
        let running = Self::status(id, Status::Running, Value::Null, None);
        machine.commands.push((id.to_owned(), running.clone()));
        self.ran.lock().unwrap().push(step.step.step.clone());
        let (world, id, boot, process) = (self.clone(), id.to_owned(), machine.boots, machine.process);
        let (name, interface) = (step.step.step.clone(), step.step.interface.clone());
        let lost = fault == Fault::LostAnswer;
        if fault == Fault::Hang {
            return Outcome::Command(running);
        }
        let key = run.steps().map_or("clean", StepKind::as_str);
        tokio::spawn(async move { world.execute(id, (name, interface, key), fault, boot, process).await });
        if lost { unreachable_agent() } else { Outcome::Command(running) }
    }

    async fn execute(
        self: Arc<Self>,
        id: String,
        (name, interface, key): (String, String, &str),
        fault: Fault,
        boot: u32,
        process: u32,
    ) {
        sleep(Duration::from_secs(2)).await;
        match fault {
            Fault::PowerCut => return self.switch(false),
            Fault::Reset => {
                self.switch(false);
                return self.switch(true);
            }
            Fault::AgentRestart => {
                let mut machine = self.machine.lock().unwrap();
                machine.process += 1;
                machine.commands.clear();
                machine.token = None;
                let (world, process) = (self.clone(), machine.process);
                tokio::spawn(async move { world.agent(boot, process).await });
                return;
            }
            _ => {}
        }
        sleep(self.step_time).await;
        let disk = |outcome: &str| {
            json!({"disks": [{"device": "/dev/vda", "serial": "S1", "size": 1, "outcome": outcome,
            "bytes_erased": 1, "verification": {"kind": "full", "bytes_read": 1, "expected": "zeroes",
            "mismatched_bytes": 0, "unchanged_samples": 0, "samples": 0, "passed": true}}]})
        };
        let result = |report: Value| {
            json!({format!("{key}_result"): report,
                format!("{key}_step"): {"step": name, "interface": interface}})
        };
        let ended = match fault {
            Fault::StepFails(text) => Self::status(&id, Status::Failed, result(disk("failed")), Some(text)),
            Fault::LyingReport => Self::status(&id, Status::Succeeded, result(disk("failed")), None),
            _ => Self::status(&id, Status::Succeeded, result(disk("erased")), None),
        };
        let (boot_id, token) = {
            let mut machine = self.machine.lock().unwrap();
            if machine.boots != boot || machine.process != process {
                return;
            }
            let Some(entry) = machine.commands.iter_mut().find(|(known, _)| *known == id) else { return };
            if entry.1.command_status == Status::Running {
                entry.1 = ended;
            }
            (format!("boot-{boot}"), machine.token.clone().unwrap_or_default())
        };
        self.beat(&boot_id, &token).await;
    }
}

/// The outcome of a call that no agent answers.
pub fn unreachable_agent() -> Outcome {
    Outcome::Failed(ActionError {
        text: "the agent could not be reached".into(),
        retryable: true,
        unreachable: true,
    })
}
