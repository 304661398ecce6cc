//! The world: a store, a clock, one node with its machine, and what tests set and record.

use super::executor::SimExecutor;
use super::fault::Fault;
use agent_protocol::step::Step;
use conductor::{CertificateIssuer, Conductor, Executor, Settings, SigningKey};
use images::ImageStore;
use model::abilities::{Inspect, Rescue};
use model::{Abilities, Node, ProvisionState, RequestedStep, StepKind, Verb};
use room::{Agent, Power, SimClock};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::memory::MemoryStore;
use store::{Clock, Members, StoreError, prelude::*};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub struct World {
    pub store: Arc<MemoryStore>,
    pub clock: Arc<SimClock>,
    pub machine: Mutex<Power<Option<Arc<Agent>>>>,
    /// The node can no longer boot its ramdisk.
    pub unplugged: Mutex<bool>,
    /// Steps that were really started, in order.
    pub ran: Mutex<Vec<String>>,
    /// Actions in order, for tests that look at what was (not) done.
    pub actions: Mutex<Vec<String>>,
    /// How long an action takes, at least.
    pub action_time: Mutex<Duration>,
    /// The epoch of the lease of each action.
    pub epochs: Mutex<Vec<u64>>,
    /// The name of the conductor of each action.
    pub actors: Mutex<Vec<String>>,
    /// Actions that were still under way when the lease of the node had expired.
    pub unleased: Mutex<Vec<String>>,
    /// The BMC's persistent boot device.
    pub boots_from: Mutex<Option<String>>,
    /// A boot medium is in the BMC's virtual drive.
    pub medium: Mutex<bool>,
    pub faults: Mutex<VecDeque<Fault>>,
    /// The answer to the command that arrives now is lost.
    pub answer_is_lost: AtomicBool,
    /// The agent's steps.
    pub steps: Mutex<BTreeMap<StepKind, Vec<Step>>>,
    pub abilities: Mutex<Abilities>,
    /// What the ramdisk sends in addition to the inventory.
    pub plugin_data: Mutex<Value>,
    /// Parameters of each step command of a deployment, and of `install_bootloader`.
    pub sent: Mutex<Vec<Value>>,
    /// Parameters of `finalize_rescue`: the hash.
    pub rescued_with: Mutex<Option<Value>>,
    /// How many of the next actions panic.
    pub panics: Mutex<u32>,
    /// Whether reading the abilities of the driver panics: every look at the node does that.
    pub loading_panics: AtomicBool,
    /// Power cannot be changed.
    pub bmc_stuck: Mutex<bool>,
    /// Killed by [`Fault::Kill`].
    pub running: Mutex<Option<tokio::task::AbortHandle>>,
    pub slow_until: Mutex<Option<Instant>>,
    /// `bmc.request_timeout_s` of conductors, by name, where it is not the default.
    pub request_timeouts: Mutex<BTreeMap<String, u64>>,
    pub step_time: Duration,
    /// The images that the controller serves.
    pub images: Mutex<ImageStore>,
    pub node: Uuid,
}

/// What stops a conductor, and its task.
pub type Running = (CancellationToken, tokio::task::JoinHandle<()>);

/// A step as an agent advertises it.
pub fn step(name: &str, priority: i64, idempotent: bool) -> Step {
    serde_json::from_value(json!({
        "step": name, "priority": priority, "interface": "deploy", "reboot_requested": false,
        "abortable": true, "idempotent": idempotent,
    }))
    .unwrap()
}

/// A step as a user asks for it: `interface.step`, and what else stands in the request.
pub fn asked(label: &str, more: Value) -> RequestedStep {
    let (interface, step) = label.split_once('.').unwrap();
    let mut whole = json!({"interface": interface, "step": step});
    whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

impl World {
    pub async fn new() -> Arc<Self> {
        Self::with(MemoryStore::new()).await
    }

    /// With this store.
    pub async fn with(store: MemoryStore) -> Arc<Self> {
        let clock = Arc::new(SimClock::start());
        let store = Arc::new(store);
        let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", clock.now());
        node.provision_state = ProvisionState::Manageable;
        let node = store.create_node(node, Vec::new()).await.unwrap().uuid;
        let clean = [step("erase_devices", 10, true), step("erase_devices_metadata", 99, true)];
        Arc::new(Self {
            store,
            clock,
            machine: Mutex::default(),
            unplugged: Mutex::default(),
            ran: Mutex::default(),
            actions: Mutex::default(),
            action_time: Mutex::new(Duration::from_millis(30)),
            epochs: Mutex::default(),
            actors: Mutex::default(),
            unleased: Mutex::default(),
            boots_from: Mutex::default(),
            medium: Mutex::default(),
            faults: Mutex::default(),
            answer_is_lost: AtomicBool::default(),
            steps: Mutex::new(BTreeMap::from([(StepKind::Clean, clean.to_vec())])),
            abilities: Mutex::new(Abilities {
                agent: true,
                inspect: Inspect::Agent,
                rescue: Rescue::Agent,
                steps: BTreeMap::new(),
            }),
            plugin_data: Mutex::default(),
            sent: Mutex::default(),
            rescued_with: Mutex::default(),
            panics: Mutex::default(),
            loading_panics: AtomicBool::default(),
            bmc_stuck: Mutex::default(),
            running: Mutex::default(),
            slow_until: Mutex::default(),
            request_timeouts: Mutex::default(),
            step_time: Duration::from_secs(30),
            images: Mutex::default(),
            node,
        })
    }

    /// Put the node into a state, without the way there.
    pub async fn put(&self, state: ProvisionState, change: impl Fn(&mut Node)) {
        loop {
            let mut node = self.store.node(self.node).await.unwrap();
            room::put(&mut node, state, self.clock.now());
            change(&mut node);
            match self.store.update_node(node, Vec::new(), None).await {
                Ok(_) => return,
                Err(StoreError::Stale(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The agent advertises these steps of this kind, and no others.
    pub fn advertise(&self, kind: StepKind, steps: Vec<Step>) {
        self.steps.lock().unwrap().insert(kind, steps);
    }

    /// What goes wrong, one after the other: each with one step.
    pub fn suffer(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().extend(faults);
    }

    pub fn next_fault(&self) -> Fault {
        self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None)
    }

    /// A driver without an agent, with these out-of-band steps: `interface.step`, priority, whatever else.
    pub fn only_out_of_band(&self, kind: StepKind, steps: &[Value]) {
        let mut abilities = self.abilities.lock().unwrap();
        (abilities.agent, abilities.inspect, abilities.rescue) = (false, Inspect::Bmc, Rescue::Fake);
        drop(abilities);
        self.out_of_band(kind, steps);
    }

    /// These out-of-band steps, in addition to the agent's.
    pub fn out_of_band(&self, kind: StepKind, steps: &[Value]) {
        let steps = steps.iter().map(|step| {
            let mut step = step.clone();
            step["in_band"] = json!(false);
            step.as_object_mut().unwrap().entry("requires_ramdisk").or_insert(json!(false));
            serde_json::from_value(step).unwrap()
        });
        self.abilities.lock().unwrap().steps.insert(kind, steps.collect());
    }

    pub fn conductor(self: &Arc<Self>, settings: Settings) -> Running {
        self.conductor_at(self.clock.clone(), settings)
    }

    /// A conductor with another name than `sim`.
    pub fn conductor_named(self: &Arc<Self>, name: &str, settings: Settings) -> Running {
        self.start(name, self.clock.clone(), settings)
    }

    /// A conductor that is asked to make the node available.
    pub async fn provide(self: &Arc<Self>, settings: Settings) -> Running {
        let conductor = self.conductor(settings);
        self.verb(Verb::Provide).await;
        conductor
    }

    /// Names of the steps that were really started, in order.
    pub fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    /// Names of the actions that were begun, in order.
    pub fn actions(&self) -> Vec<String> {
        self.actions.lock().unwrap().clone()
    }

    /// A conductor that reads the time from another clock.
    pub fn conductor_at(self: &Arc<Self>, clock: Arc<dyn Clock>, settings: Settings) -> Running {
        self.start("sim", clock, settings)
    }

    fn start(self: &Arc<Self>, name: &str, clock: Arc<dyn Clock>, settings: Settings) -> Running {
        let executor: Arc<dyn Executor> = Arc::new(SimExecutor::new(self, name));
        let issuer = CertificateIssuer::new(SigningKey::generate().unwrap().0, name);
        let store = self.store.clone();
        let conductor = Conductor::new(store, executor, clock, settings, Members::alone(name), issuer);
        let stop = CancellationToken::new();
        let task = tokio::spawn(conductor.run(stop.clone()));
        *self.running.lock().unwrap() = Some(task.abort_handle());
        (stop, task)
    }
}
