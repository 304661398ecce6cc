//! A machine room in one process: nodes with power, a ramdisk that boots, an agent that runs commands. Time is
//! tokio's paused clock, so hours pass in milliseconds and every wait is a condition.
#![allow(dead_code)]

use agent_protocol::command::{CommandError, CommandStatus, Status};
use agent_protocol::step::{AdvertisedSteps, Step};
use async_trait::async_trait;
use conductor::decision::{Action, ActionError, Outcome};
use conductor::{Conductor, Executor, Notary, Settings, SigningKey};
use model::abilities::{Inspect, Rescue};
use model::agent::AgentState;
use model::request::{Policy, RESCUE_HASH, VerbRequest, apply_verb};
use model::run::PersistentBoot;
use model::{
    Abilities, Contact, Inventory, Node, PlannedStep, PowerState, ProvisionState, RequestedStep, RunKind,
    StepKind, Timestamp, Verb,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::memory::MemoryStore;
use store::{Clock, HeartbeatRecord, Store, StoreError, TokenGrant};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The one NIC of the node.
pub const NIC: &str = "52:54:00:00:00:01";

pub struct SimClock(Instant);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000_000 + i64::try_from(self.0.elapsed().as_micros()).unwrap())
    }
}

/// What goes wrong, consumed one by one when a command is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The step ends FAILED with this text.
    StepFails(&'static str),
    /// The node loses power two seconds into the step and stays off.
    PowerCut,
    /// The node resets two seconds into the step.
    Reset,
    /// The agent's process restarts two seconds into the step, in the same boot.
    AgentRestart,
    /// The command arrives, its answer does not.
    LostAnswer,
    /// The agent answers with a success whose report says that a disk failed.
    LyingReport,
    /// Hardware managers changed: the step is refused.
    VersionMismatch,
    /// The step never ends, while its agent goes on sending heartbeats.
    Hang,
    /// The conductor is killed while an out-of-band step runs, before its outcome is stored.
    Kill,
    /// Nothing.
    None,
}

#[derive(Default)]
struct Machine {
    on: bool,
    boots: u32,
    process: u32,
    token: Option<String>,
    commands: Vec<(String, CommandStatus)>,
    unplugged: bool,
}

pub struct World {
    pub store: Arc<MemoryStore>,
    pub clock: Arc<SimClock>,
    machine: Mutex<Machine>,
    /// Steps that were really started, in order.
    pub ran: Mutex<Vec<String>>,
    /// Actions in order, for tests that look at what was (not) done.
    pub actions: Mutex<Vec<String>>,
    /// How long an action takes, at least.
    pub action_time: Mutex<Duration>,
    /// Actions that were still being done when nobody held the lease of the node any more.
    pub unleased: Mutex<Vec<String>>,
    /// What the BMC was told to boot from every time.
    pub boots_from: Mutex<Option<String>>,
    pub faults: Mutex<VecDeque<Fault>>,
    /// The agent's clean steps.
    pub steps: Mutex<Vec<Step>>,
    /// The agent's deploy and service steps.
    pub other_steps: Mutex<BTreeMap<StepKind, Vec<Step>>>,
    pub abilities: Mutex<Abilities>,
    /// What the ramdisk sends beside the inventory.
    pub plugin_data: Mutex<Value>,
    /// Parameters of `finalize_rescue`: the hash.
    pub rescued_with: Mutex<Option<Value>>,
    /// How many of the next actions panic.
    pub panics: Mutex<u32>,
    /// Whether reading the abilities of the driver panics: every look at the node does that.
    pub loading_panics: AtomicBool,
    /// Power cannot be changed.
    pub bmc_stuck: Mutex<bool>,
    /// Killed by [`Fault::Kill`].
    running: Mutex<Option<tokio::task::AbortHandle>>,
    slow_until: Mutex<Option<Instant>>,
    pub step_time: Duration,
    pub node: Uuid,
}

pub fn step(name: &str, priority: i64, idempotent: bool) -> Step {
    serde_json::from_value(json!({
        "step": name, "priority": priority, "interface": "deploy", "reboot_requested": false,
        "abortable": true, "idempotent": idempotent,
    }))
    .unwrap()
}

impl World {
    pub async fn new() -> Arc<Self> {
        let clock = Arc::new(SimClock(Instant::now()));
        let store = Arc::new(MemoryStore::new());
        let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", clock.now());
        node.provision_state = ProvisionState::Manageable;
        let node = store.create_node(node, Vec::new()).await.unwrap().uuid;
        Arc::new(Self {
            store,
            clock,
            machine: Mutex::default(),
            ran: Mutex::default(),
            actions: Mutex::default(),
            action_time: Mutex::new(Duration::from_millis(30)),
            unleased: Mutex::default(),
            boots_from: Mutex::default(),
            faults: Mutex::default(),
            steps: Mutex::new(vec![
                step("erase_devices", 10, true),
                step("erase_devices_metadata", 99, true),
            ]),
            other_steps: Mutex::default(),
            abilities: Mutex::new(Abilities {
                agent: true,
                inspect: Inspect::Agent,
                rescue: Rescue::Agent,
                steps: BTreeMap::new(),
            }),
            plugin_data: Mutex::default(),
            rescued_with: Mutex::default(),
            panics: Mutex::default(),
            loading_panics: AtomicBool::default(),
            bmc_stuck: Mutex::default(),
            running: Mutex::default(),
            slow_until: Mutex::default(),
            step_time: Duration::from_secs(30),
            node,
        })
    }

    /// Put the node into a state, as if it had come there.
    pub async fn put(&self, state: ProvisionState, change: impl Fn(&mut Node)) {
        loop {
            let mut node = self.store.node(self.node).await.unwrap();
            node.enter(state, None, self.clock.now());
            change(&mut node);
            match self.store.update_node(node, Vec::new(), None).await {
                Ok(_) => return,
                Err(StoreError::Stale(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A driver without an agent, with these out-of-band steps: `interface.step`, priority, whatever else.
    pub fn only_out_of_band(&self, kind: StepKind, steps: &[Value]) {
        let mut abilities = self.abilities.lock().unwrap();
        (abilities.agent, abilities.inspect, abilities.rescue) = (false, Inspect::Bmc, Rescue::Fake);
        drop(abilities);
        self.out_of_band(kind, steps);
    }

    /// These out-of-band steps beside the agent's.
    pub fn out_of_band(&self, kind: StepKind, steps: &[Value]) {
        let steps = steps.iter().map(|step| {
            let mut step = step.clone();
            step["in_band"] = json!(false);
            step.as_object_mut().unwrap().entry("requires_ramdisk").or_insert(json!(false));
            serde_json::from_value(step).unwrap()
        });
        self.abilities.lock().unwrap().steps.insert(kind, steps.collect());
    }

    /// What happened, without ids and times.
    pub async fn texts(&self) -> Vec<String> {
        self.store.history(self.node).await.unwrap().into_iter().map(|event| event.text).collect()
    }

    /// `a -> b` of every transition and the momentary states, in order.
    pub async fn path(&self) -> Vec<String> {
        let texts = self.texts().await.into_iter();
        let momentary = |text: &str| text.chars().all(|letter| letter.is_ascii_uppercase());
        texts
            .filter(|text| text.contains(" -> ") || momentary(text))
            .map(|text| text.split(": ").next().unwrap_or_default().to_owned())
            .collect()
    }

    pub fn conductor(
        self: &Arc<Self>,
        settings: Settings,
    ) -> (CancellationToken, tokio::task::JoinHandle<()>) {
        self.conductor_at(self.clock.clone(), settings)
    }

    /// A conductor that reads the time from another clock.
    pub fn conductor_at(
        self: &Arc<Self>,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> (CancellationToken, tokio::task::JoinHandle<()>) {
        let executor: Arc<dyn Executor> = Arc::new(Fingers(self.clone()));
        let notary = Notary::new(SigningKey::generate().unwrap().0, "sim");
        let store = self.store.clone();
        let conductor = Conductor::new(store, executor, clock, settings, "sim".into(), notary);
        let stop = CancellationToken::new();
        let task = tokio::spawn(conductor.run(stop.clone()));
        *self.running.lock().unwrap() = Some(task.abort_handle());
        (stop, task)
    }

    pub async fn verb(&self, verb: Verb, steps: Option<Vec<RequestedStep>>) {
        let kind = if verb == Verb::Service { StepKind::Service } else { StepKind::Clean };
        let mut request = VerbRequest::of(verb);
        if let Some(steps) = steps {
            request = request.with_steps(kind, steps);
        }
        self.ask(request).await;
    }

    pub async fn ask(&self, request: VerbRequest) {
        loop {
            let node = self.store.node(self.node).await.unwrap();
            let policy = Policy { automated_clean: true };
            let (node, events) = apply_verb(&node, request.clone(), policy, self.clock.now()).unwrap();
            match self.store.update_node(node, events, None).await {
                Ok(_) => return,
                Err(StoreError::Stale(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Wait until the node satisfies `wanted`; panics after a simulated day.
    pub async fn until(&self, what: &str, wanted: impl Fn(&Node) -> bool) -> Node {
        for _ in 0..864_000 {
            let node = self.store.node(self.node).await.unwrap();
            if wanted(&node) {
                return node;
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("never {what}: {:#?}", self.store.node(self.node).await.unwrap());
    }

    pub async fn until_state(&self, state: ProvisionState) -> Node {
        self.until(state.as_str(), |node| node.provision_state == state).await
    }

    pub fn is_on(&self) -> bool {
        self.machine.lock().unwrap().on
    }

    /// The node can no longer boot its ramdisk.
    pub fn unplug_network(&self) {
        self.machine.lock().unwrap().unplugged = true;
    }

    fn switch(self: &Arc<Self>, on: bool) {
        let mut machine = self.machine.lock().unwrap();
        if machine.on == on {
            return;
        }
        machine.on = on;
        machine.boots += 1;
        machine.commands.clear();
        machine.token = None;
        if on && !machine.unplugged {
            let (world, boot) = (self.clone(), machine.boots);
            tokio::spawn(async move { world.ramdisk(boot).await });
        }
    }

    /// One boot of the ramdisk: 25 s to the lookup, then heartbeats until the boot is over.
    async fn ramdisk(self: Arc<Self>, boot: u32) {
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
            state: Some(state),
        };
        // A token that is no longer out is refused; the agent then stays silent.
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

    fn status(id: &str, status: Status, result: Value, error: Option<&str>) -> CommandStatus {
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

    fn send(self: &Arc<Self>, id: &str, run: RunKind, step: &PlannedStep, contact: &Contact) -> Outcome {
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

fn unreachable_agent() -> Outcome {
    Outcome::Failed(ActionError {
        text: "the agent could not be reached".into(),
        retryable: true,
        unreachable: true,
    })
}

impl World {
    /// A step of an interface: takes `step_time`; with the argument `slowly` it goes on outside meanwhile.
    async fn run_step(&self, step: &PlannedStep, polling: bool) -> Outcome {
        if polling {
            let over = self.slow_until.lock().unwrap().is_some_and(|until| until <= Instant::now());
            return if over { Outcome::StepDone(json!("done")) } else { Outcome::StepRunning("half".into()) };
        }
        self.ran.lock().unwrap().push(step.step.step.clone());
        let fault = self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
        if step.given.contains_key("slowly") {
            *self.slow_until.lock().unwrap() = Some(Instant::now() + self.step_time);
            return Outcome::StepRunning("begun".into());
        }
        sleep(self.step_time).await;
        match fault {
            Fault::StepFails(text) => {
                Outcome::Failed(ActionError { text: text.into(), retryable: false, unreachable: false })
            }
            Fault::Kill => {
                if let Some(conductor) = self.running.lock().unwrap().take() {
                    conductor.abort();
                }
                sleep(Duration::from_secs(3600)).await;
                Outcome::StepDone(Value::Null)
            }
            _ => Outcome::StepDone(json!({"by": "the interface"})),
        }
    }
}

struct Fingers(Arc<World>);

#[async_trait]
impl Executor for Fingers {
    fn abilities(&self, _node: &Node) -> Result<Arc<Abilities>, String> {
        assert!(!self.0.loading_panics.load(Ordering::Relaxed), "a defect of the driver");
        Ok(Arc::new(self.0.abilities.lock().unwrap().clone()))
    }

    async fn act(&self, node: &Node, contact: &Contact, action: &Action) -> Outcome {
        let world = &self.0;
        let name = format!("{action:?}");
        let name = name.split([' ', '{', '(']).next().unwrap_or_default().to_owned();
        world.actions.lock().unwrap().push(name.clone());
        let panics = {
            let mut left = world.panics.lock().unwrap();
            let panics = *left > 0;
            *left = left.saturating_sub(1);
            panics
        };
        assert!(!panics, "a defect of the driver");
        // Every action takes time, so that it can be interrupted.
        let time = *world.action_time.lock().unwrap();
        sleep(time).await;
        if world.store.lease_holder(node.uuid, world.clock.now()).await.unwrap().is_none() {
            world.unleased.lock().unwrap().push(name);
        }
        let power = || if world.is_on() { PowerState::On } else { PowerState::Off };
        match action {
            Action::VerifyBmc | Action::ReadPower => Outcome::Power(power()),
            Action::ReadState => Outcome::State(power(), None),
            Action::SetPower(_) if *world.bmc_stuck.lock().unwrap() => Outcome::Failed(ActionError {
                text: "the BMC is stuck".into(),
                retryable: true,
                unreachable: false,
            }),
            Action::SetPower(target) => {
                world.switch(target.resulting_state() == PowerState::On);
                Outcome::Power(power())
            }
            Action::ReadBootDevice => {
                let persistent = |device: &String| PersistentBoot { device: device.clone(), mode: None };
                Outcome::BootDevice(world.boots_from.lock().unwrap().as_ref().map(persistent))
            }
            // As BMCs do: one setting for once and for ever.
            Action::SetBootDevice => {
                *world.boots_from.lock().unwrap() = None;
                Outcome::Done
            }
            Action::RestoreBootDevice(before) => {
                *world.boots_from.lock().unwrap() = Some(before.device.clone());
                Outcome::Done
            }
            Action::InspectBmc => Outcome::Inventory(world.inventory("redfish")),
            Action::RunStep { step, polling, .. } => world.run_step(step, *polling).await,
            Action::AskSteps(kind) => {
                let reachable = {
                    let machine = world.machine.lock().unwrap();
                    machine.on && machine.token.is_some() && machine.token == contact.token
                };
                if !reachable {
                    return unreachable_agent();
                }
                let advertised = |steps: Vec<Step>| AdvertisedSteps {
                    clean_steps: BTreeMap::from([("GenericHardwareManager".into(), steps)]),
                    hardware_manager_version: BTreeMap::from([("generic".into(), "1".into())]),
                };
                let steps = match kind {
                    StepKind::Clean => world.steps.lock().unwrap().clone(),
                    other => world.other_steps.lock().unwrap().get(other).cloned().unwrap_or_default(),
                };
                Outcome::Steps(BTreeMap::from([(*kind, advertised(steps))]))
            }
            Action::SendStep { command_id, run, step } => {
                if *run == RunKind::Rescue {
                    *world.rescued_with.lock().unwrap() = node.instance_info.get(RESCUE_HASH).cloned();
                }
                world.send(command_id, *run, step, contact)
            }
            Action::AskCommand { command_id } => {
                let machine = world.machine.lock().unwrap();
                if !machine.on || machine.token.is_none() || machine.token != contact.token {
                    return unreachable_agent();
                }
                match machine.commands.iter().find(|(id, _)| id == command_id) {
                    Some((_, status)) => Outcome::Command(status.clone()),
                    None => Outcome::NoSuchCommand,
                }
            }
            Action::CollectLogs(_) if world.machine.lock().unwrap().on => Outcome::Done,
            Action::CollectLogs(_) => Outcome::Failed(ActionError {
                text: "the agent could not be reached to tell its logs".into(),
                retryable: true,
                unreachable: true,
            }),
            Action::CancelCommand { command_id } => {
                let mut machine = world.machine.lock().unwrap();
                match machine.commands.iter_mut().find(|(id, _)| id == command_id) {
                    Some((id, status)) => {
                        *status = World::status(id, Status::Failed, Value::Null, Some("cancelled"));
                        status.command_error.iter_mut().for_each(|error| error.kind = "Cancelled".into());
                        Outcome::Command(status.clone())
                    }
                    None => Outcome::NoSuchCommand,
                }
            }
        }
    }
}
