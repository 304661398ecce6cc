//! Hardware managers that only the agent's own tests use: what they do is of no interest, how the
//! agent treats them is.

use agent_protocol::inventory::{Interface, Inventory};
use agent_protocol::progress::{DiskProgress, Phase, Progress};
use agent_protocol::step::Step;
use agentd::executor::Executor;
use agentd::logging::LogRing;
use agentd::login::{LoginService, NoLogin};
use agentd::signer::Signer;
use agentd::state::State;
use hwm_sdk::protocol::{FirmwareComponent, InventoryPatch};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The MAC of the machine.
pub const MAC: &str = "52:54:00:12:34:56";

/// A gate that steps wait at.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Let all waiting steps through.
    pub fn open(&self) {
        *self.open.lock().expect("gate") = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let guard = self.open.lock().expect("gate");
        drop(self.changed.wait_while(guard, |open| !*open).expect("gate"));
    }
}

/// The probe of the transcripts (`ProbeHardwareManager` 1.0).
#[derive(Default)]
pub struct Probe {
    /// Where `probe_args` waits when it has an argument `seconds`.
    pub gate: Gate,
    /// How many steps were run.
    pub runs: AtomicUsize,
}

impl HardwareManager for Probe {
    fn name(&self) -> &str {
        "ProbeHardwareManager"
    }
    fn version(&self) -> &str {
        "1.0"
    }
    fn evaluate(&self, _: &Inventory) -> Support {
        Support::ServiceProvider
    }
    fn inventory(&self, _: &StepContext) -> Result<InventoryPatch, StepError> {
        let firmware = FirmwareComponent { component: "probe".into(), current_version: "7".into() };
        Ok(InventoryPatch { firmware: vec![firmware], ..InventoryPatch::default() })
    }
    fn steps(&self, _: StepKind, _: &Inventory) -> Vec<Step> {
        let with_argument = json!({
            "step": "probe_typed", "priority": 0, "interface": "deploy", "abortable": true,
            "argsinfo": {"count": {"description": "1 to 3", "required": true,
                                   "schema": {"type": "integer", "minimum": 1, "maximum": 3}}},
        });
        let names = ["probe_quick", "probe_fail", "probe_crash", "probe_args", "probe_progress"];
        let step = |name| json!({ "step": name, "priority": 0, "interface": "deploy", "abortable": true });
        let steps = names.map(step).into_iter().chain([with_argument]);
        steps.map(|step| serde_json::from_value(step).expect("step")).collect()
    }
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let done = |text: &str| Ok(StepOutcome::Done(text.into()));
        match call.step.step.as_str() {
            "probe_quick" => done("quick done"),
            "probe_fail" => Err(StepError::Failed { reason: "probe says no".into(), report: Value::Null }),
            "probe_typed" => done("typed done"),
            "probe_crash" => panic!("boom"),
            "probe_args" => {
                if call.args.contains_key("save") {
                    context.save_checkpoint(&call.args["save"]);
                    self.gate.pass();
                    return Ok(StepOutcome::Done(context.checkpoint().cloned().unwrap_or_default()));
                }
                if call.args.contains_key("seconds") {
                    self.gate.pass();
                }
                done(call.args.get("text").and_then(Value::as_str).unwrap_or_default())
            }
            _ => run_until_cancelled(context),
        }
    }
    fn plan(&self, call: &StepCall) -> Result<Value, StepError> {
        match call.step.step.as_str() {
            "probe_typed" => Ok(json!({ "would": call.args, "to": call.node["uuid"] })),
            _ => Err(StepError::Declined { reason: "no plan of it".into() }),
        }
    }
}

fn run_until_cancelled(context: &StepContext) -> Result<StepOutcome, StepError> {
    let disk = |bytes_done| DiskProgress {
        device: "/dev/loop-test".into(),
        serial: Some("SER1".into()),
        phase: Phase::Erasing,
        method: Some("overwrite-zeroes".into()),
        bytes_done,
        bytes_total: 1 << 30,
        rate: 1,
        eta: None,
        stalled_since: None,
    };
    let mut done = 0;
    while !context.is_cancelled() {
        done += 1;
        context.report(Progress { disks: vec![disk(done)], ..Progress::default() });
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(StepError::Cancelled { report: json!({ "bytes_done": done }) })
}

/// A second manager, without steps: its version counts all the same.
struct Generic;

impl HardwareManager for Generic {
    fn name(&self) -> &str {
        "generic_hardware_manager"
    }
    fn version(&self) -> &str {
        "1.2"
    }
    fn evaluate(&self, _: &Inventory) -> Support {
        Support::Generic
    }
    fn inventory(&self, _: &StepContext) -> Result<InventoryPatch, StepError> {
        Err(StepError::Failed { reason: "sysfs is gone".into(), report: Value::Null })
    }
    fn steps(&self, _: StepKind, _: &Inventory) -> Vec<Step> {
        Vec::new()
    }
    fn run(&self, call: &StepCall, _: &StepContext) -> Result<StepOutcome, StepError> {
        Err(StepError::Unknown { manager: self.name().into(), step: call.step.step.clone() })
    }
}

/// An agent of this machine with the probe in it, without a login service.
pub fn agent(probe: &Arc<Probe>) -> Arc<Executor> {
    agent_with_login(probe, Box::new(NoLogin), LogRing::default())
}

/// An agent of this machine with the probe in it.
pub fn agent_with_login(probe: &Arc<Probe>, login: Box<dyn LoginService>, logs: LogRing) -> Arc<Executor> {
    let discover = || Inventory {
        interfaces: vec![Interface { name: "eno1".into(), mac_address: MAC.into(), ..Interface::default() }],
        hostname: "test".into(),
        bmc_address: Some("0.0.0.0".into()),
        bmc_v6address: Some("::/0".into()),
        ..Inventory::default()
    };
    let signer = Signer::start(Path::new(env!("CARGO_BIN_EXE_anneal-agent"))).expect("a signer");
    let signer = Some(signer);
    Executor::new(State::new(
        signer,
        vec![Arc::new(Generic), probe.clone()],
        Box::new(discover),
        logs,
        login,
        false,
    ))
}
