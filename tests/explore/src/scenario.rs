//! What is explored: a run of two or three steps, how often it may be disturbed, and in which units time passes.

use agent_protocol::step::{AdvertisedSteps, Step};
use conductor::Settings;
use model::abilities::{Inspect, Rescue};
use model::request::VerbRequest;
use model::{Abilities, CatalogueStep, ProvisionState, RequestedStep, RunKind, StepKind, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time passes in these. Every limit below is a whole number of them.
pub const TICK: Duration = Duration::from_secs(10);
/// Ticks without a heartbeat after which an agent counts as silent.
pub const SILENCE: u64 = 2;
/// Ticks that a step may take.
pub const STEP_LIMIT: u64 = 4;
/// Ticks that a hello may take.
pub const HELLO_LIMIT: u64 = 3;
/// Ticks for which a ramdisk is kept running on a node that is not deployed.
pub const IDLE_LIMIT: u64 = 2;
/// Ticks that a ramdisk may take to boot, and for which a controller that is away stays away: longer than
/// [`SILENCE`], so that it comes back to nodes it has not heard.
pub const BOOT_LIMIT: u64 = 3;

/// One step of a plan.
#[derive(Debug, Clone, Copy)]
pub struct StepSpec {
    /// `interface.step`.
    pub label: &'static str,
    /// It says that it may run again.
    pub idempotent: bool,
    /// It may be stopped.
    pub abortable: bool,
    /// It asks for a reboot.
    pub reboot: bool,
    /// Which side runs it.
    pub by: By,
    /// It is started only while the ramdisk runs.
    pub ramdisk: bool,
}

/// The side that runs a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The agent.
    Agent,
    /// The controller, which has its outcome when it has done it.
    Controller,
    /// The BMC goes on with it after the controller has started it.
    Bmc,
    /// The engine: one of the reserved steps.
    Engine,
}

impl StepSpec {
    /// A step of the agent: idempotent, abortable, without a reboot.
    pub const fn agent(label: &'static str) -> Self {
        Self { label, idempotent: true, abortable: true, reboot: false, by: By::Agent, ramdisk: true }
    }

    /// An out-of-band step: idempotent, abortable, without reboot or ramdisk.
    pub const fn out_of_band(label: &'static str, by: By) -> Self {
        Self { label, idempotent: true, abortable: true, reboot: false, by, ramdisk: false }
    }

    /// It may run once.
    pub const fn once(self) -> Self {
        Self { idempotent: false, ..self }
    }

    /// It cannot be stopped.
    pub const fn to_its_end(self) -> Self {
        Self { abortable: false, ..self }
    }

    /// It asks for a reboot.
    pub const fn then_reboot(self) -> Self {
        Self { reboot: true, ..self }
    }

    /// It needs the ramdisk.
    pub const fn in_ramdisk(self) -> Self {
        Self { ramdisk: true, ..self }
    }

    fn parts(&self) -> (&'static str, &'static str) {
        self.label.split_once('.').unwrap_or(("deploy", self.label))
    }
}

/// What is explored.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Kind of the run.
    pub kind: RunKind,
    /// The steps in the order in which they have to run.
    pub steps: Vec<StepSpec>,
    /// Whether the deploy interface works through an agent.
    pub agent: bool,
    /// The agent is an ironic-python-agent: it reports neither boot nor process, and names commands itself.
    pub ipa: bool,
    /// The agent signs the reports of its erases, and the node's disks are known.
    pub signs: bool,
    /// The node is never powered off: it is reset instead. Agents are accepted without a nonce where no script was fetched.
    pub never_off: bool,
    /// The deployment awaits the hello of its instance.
    pub hello: bool,
    /// The ramdisk of the cleaning is kept running for a deployment, which the user may ask for.
    pub fast_track: bool,
    /// Disturbances on one path, the user's later requests among them.
    pub budget: u8,
    /// What the user may ask for once a run has ended.
    pub again: Vec<VerbRequest>,
    /// What an operator has set.
    pub settings: Settings,
}

impl Scenario {
    /// A run of `kind` with these steps, disturbed `budget` times; the user may ask for it again.
    pub fn new(name: &'static str, kind: RunKind, steps: &[StepSpec], budget: u8) -> Self {
        let mut scenario = Self {
            name,
            kind,
            steps: steps.to_vec(),
            agent: true,
            ipa: false,
            signs: false,
            never_off: false,
            hello: false,
            fast_track: false,
            budget,
            again: Vec::new(),
            settings: settings(),
        };
        scenario.again = vec![scenario.request()];
        if scenario.step_kind() == StepKind::Clean {
            scenario.again.push(VerbRequest::of(Verb::Manage));
        }
        scenario
    }

    /// Without an agent: everything is out-of-band.
    #[must_use]
    pub fn without_agent(mut self) -> Self {
        self.agent = false;
        self
    }

    /// With an ironic-python-agent.
    #[must_use]
    pub fn with_ipa(mut self) -> Self {
        self.ipa = true;
        self
    }

    /// Of a node that is never powered off.
    #[must_use]
    pub fn without_power_off(self) -> Self {
        Self { never_off: true, ..self }
    }

    /// With a deployment that awaits the hello of its instance.
    #[must_use]
    pub fn with_hello(self) -> Self {
        Self { hello: true, ..self }
    }

    /// With fast track: the cleaned node may be deployed, by steps of the same names.
    #[must_use]
    pub fn with_fast_track(mut self) -> Self {
        self.again.push(VerbRequest::of(Verb::Deploy));
        self.settings.fast_track = true;
        self.settings.fast_track_timeout_s = TICK.as_secs() * SILENCE;
        self.settings.fast_track_idle_s = TICK.as_secs() * IDLE_LIMIT;
        Self { fast_track: true, ..self }
    }

    /// With an agent that signs, and an administrator who may override a cleaning that failed.
    #[must_use]
    pub fn with_signatures(mut self) -> Self {
        let reason = Some("the disks are to be shredded".to_owned());
        self.again.push(VerbRequest { reason, ..VerbRequest::of(Verb::Override) });
        Self { signs: true, ..self }
    }

    /// Whether this step of the agent erases disks.
    pub fn erases(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| step.label.starts_with("deploy.erase_devices"))
    }

    /// Kind of its steps.
    pub fn step_kind(&self) -> StepKind {
        self.kind.steps().unwrap_or(StepKind::Clean)
    }

    /// The stable state in which the node begins, and whether its workload runs then.
    pub fn start(&self) -> (ProvisionState, bool) {
        match self.kind {
            RunKind::Deploy => (ProvisionState::Available, false),
            RunKind::Service => (ProvisionState::Active, true),
            _ => (ProvisionState::Manageable, false),
        }
    }

    /// The request that begins the run.
    pub fn request(&self) -> VerbRequest {
        let asked = |step: &StepSpec| {
            let (interface, step) = step.parts();
            RequestedStep {
                interface: interface.to_owned(),
                step: step.to_owned(),
                args: serde_json::Map::new(),
                priority: None,
            }
        };
        let steps = self.steps.iter().map(asked).collect();
        match self.kind {
            RunKind::ManualClean => VerbRequest::of(Verb::Clean).with_steps(StepKind::Clean, steps),
            RunKind::Service => VerbRequest::of(Verb::Service).with_steps(StepKind::Service, steps),
            RunKind::Deploy => VerbRequest::of(Verb::Deploy),
            _ => VerbRequest::of(Verb::Provide),
        }
    }

    /// Place in the plan of the step with this label.
    pub fn index(&self, label: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.label == label)
    }

    /// What the interfaces of the node's driver can do.
    pub fn abilities(&self) -> Abilities {
        let of_controller = |(index, step): (usize, &StepSpec)| {
            // The engine does what the deploy interface declares of these.
            let provider = match step.by {
                By::Engine if step.label == "deploy.deploy" => "ramdisk",
                By::Engine => "direct",
                _ => "",
            };
            let wire = json!({
                "provider": provider, "interface": step.parts().0, "step": step.parts().1, "priority": self.priority(index),
                "abortable": step.abortable, "reboot_requested": step.reboot, "idempotent": step.idempotent,
                "requires_ramdisk": step.ramdisk, "in_band": false,
            });
            serde_json::from_value::<CatalogueStep>(wire).ok()
        };
        let declared = |step: &StepSpec| step.by == By::Engine && self.kind == RunKind::Deploy;
        let ours = |step: &StepSpec| matches!(step.by, By::Controller | By::Bmc) || declared(step);
        let steps: Vec<_> =
            self.steps.iter().enumerate().filter(|(_, step)| ours(step)).filter_map(of_controller).collect();
        Abilities {
            agent: self.agent,
            inspect: Inspect::None,
            rescue: Rescue::None,
            steps: BTreeMap::from([(self.step_kind(), steps)]),
        }
    }

    /// The steps that an agent advertises whose hardware managers have this version.
    pub fn advertised(&self, version: u32) -> AdvertisedSteps {
        let of_agent = |(index, step): (usize, &StepSpec)| Step {
            step: step.parts().1.to_owned(),
            priority: self.priority(index).into(),
            interface: step.parts().0.to_owned(),
            reboot_requested: step.reboot,
            abortable: step.abortable,
            argsinfo: None,
            args: None,
            other: serde_json::Map::from_iter([("idempotent".to_owned(), Value::Bool(step.idempotent))]),
        };
        let theirs = self.steps.iter().enumerate().filter(|(_, step)| step.by == By::Agent);
        AdvertisedSteps {
            clean_steps: BTreeMap::from([("generic".to_owned(), theirs.map(of_agent).collect())]),
            hardware_manager_version: BTreeMap::from([("generic".to_owned(), version.to_string())]),
        }
    }

    /// Falls along the plan.
    fn priority(&self, index: usize) -> usize {
        10 * (self.steps.len() - index)
    }
}

/// Limits as whole ticks, and few of everything, so that what is explored has an end.
fn settings() -> Settings {
    let ticks = |count: u64| TICK.as_secs() * count;
    Settings {
        boot_timeout_s: ticks(BOOT_LIMIT),
        power_timeout_s: ticks(4),
        agent_silence_s: ticks(SILENCE),
        agent_poll_s: ticks(1),
        reset_pause_s: 0,
        retry_pause_s: ticks(1),
        step_timeout_s: ticks(STEP_LIMIT),
        step_stall_s: ticks(2),
        // More than there are disturbances on a path: an action may fail as often as they can make it.
        max_attempts: 4,
        max_interruptions: 1,
        max_replans: 1,
        // Without this, power syncs of resting nodes would make the search infinite.
        power_sync_s: 0,
        ..Settings::default()
    }
}
