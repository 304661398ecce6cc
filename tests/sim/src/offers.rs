//! Steps that machines offer: of their hardware managers (in-band) and of their interfaces (out-of-band).

use crate::rng::SimRng;
use agent_protocol::step::Step;
use model::StepKind;
use room::Kind;
use serde_json::{Value, json};
use std::ops::Range;

/// Interface and name of a step that some offer, with its priorities.
type Extra = (&'static str, &'static str, Vec<(StepKind, u32)>);

/// A step as it really is.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Interface.
    pub interface: &'static str,
    /// Name.
    pub name: String,
    /// Its lists, with its priority in each.
    pub priorities: Vec<(StepKind, u32)>,
    /// It may be started again after an interruption.
    pub idempotent: bool,
    /// It stops when it is cancelled.
    pub abortable: bool,
    /// The node must be rebooted after it.
    pub reboot: bool,
    /// It reports its progress.
    pub reports_progress: bool,
    /// How long it takes, in seconds.
    pub takes: Range<u64>,
    /// Out-of-band: it goes on outside and is asked for.
    pub outside: bool,
}

/// What the hardware managers of a machine offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Offers {
    /// Version of the manager.
    pub version: u32,
    /// Its steps.
    pub steps: Vec<Offer>,
}

const CLEAN: StepKind = StepKind::Clean;
const DEPLOY: StepKind = StepKind::Deploy;
const SERVICE: StepKind = StepKind::Service;

impl Offers {
    /// Erasing and deploying, and what else chance brings.
    pub fn drawn(rng: &SimRng, agent_kind: Option<Kind>) -> Self {
        let erase = Offer::new("deploy", "erase_devices", vec![(CLEAN, 10)], rng);
        let deploy = Offer::new("deploy", "deploy", vec![(DEPLOY, 100)], rng);
        let mut steps = vec![
            Offer { idempotent: true, reports_progress: rng.chance(0.2), reboot: false, ..erase },
            Offer { idempotent: rng.chance(0.5), reboot: false, ..deploy },
        ];
        let extras: [Extra; 6] = [
            ("deploy", "erase_devices_metadata", vec![(CLEAN, 99)]),
            ("deploy", "burnin", vec![(CLEAN, 0), (SERVICE, 0)]),
            ("raid", "create_configuration", vec![(CLEAN, 0), (DEPLOY, 0)]),
            ("bios", "apply_settings", vec![(CLEAN, 0), (DEPLOY, 0), (SERVICE, 0)]),
            ("firmware", "update", vec![(CLEAN, 20), (SERVICE, 0)]),
            ("management", "collect", vec![(DEPLOY, 50), (SERVICE, 0), (CLEAN, 5)]),
        ];
        for (interface, name, priorities) in extras {
            if rng.chance(0.6) {
                steps.push(Offer::new(interface, name, priorities, rng));
            }
        }
        if agent_kind == Some(Kind::Ipa) {
            // It has no word for it, so that nothing may be started again.
            steps.iter_mut().for_each(|step| step.idempotent = false);
        }
        Self { version: 1, steps }
    }

    /// Another version, with a step more or less.
    #[must_use]
    pub fn changed(&self, rng: &SimRng, agent_kind: Option<Kind>) -> Self {
        let version = self.version + 1;
        let mut steps = self.steps.clone();
        let name = "check_version".to_owned();
        match steps.iter().position(|step| step.name == name) {
            Some(at) => drop(steps.remove(at)),
            None if rng.chance(0.5) => {
                let step = Offer::new("management", &name, vec![(CLEAN, 30), (SERVICE, 0)], rng);
                steps.push(Offer { idempotent: step.idempotent && agent_kind != Some(Kind::Ipa), ..step });
            }
            None => {}
        }
        Self { version, steps }
    }

    /// The steps of a kind, as this agent advertises them.
    pub fn advertised(&self, kind: StepKind, agent_kind: Option<Kind>) -> Vec<Step> {
        let steps = self.steps.iter().filter_map(|offer| offer.wire(kind));
        let wire = steps.map(|mut step| {
            if agent_kind == Some(Kind::Ipa)
                && let Some(step) = step.as_object_mut()
            {
                step.remove("idempotent");
            }
            step
        });
        wire.filter_map(|step| serde_json::from_value(step).ok()).collect()
    }
}

impl Offer {
    fn new(interface: &'static str, name: &str, priorities: Vec<(StepKind, u32)>, rng: &SimRng) -> Self {
        Self {
            interface,
            name: name.to_owned(),
            priorities,
            idempotent: rng.chance(0.5),
            abortable: rng.chance(0.6),
            reboot: rng.chance(0.15),
            reports_progress: false,
            takes: match rng.number(0..4) {
                0 => 1..3,
                1 => 60..300,
                _ => 5..40,
            },
            outside: false,
        }
    }

    /// What the interfaces of a machine offer in addition to its agent, or without one.
    pub fn out_of_band(rng: &SimRng, agent_kind: Option<Kind>) -> Vec<Self> {
        let alone = agent_kind.is_none();
        let mut offers = Vec::new();
        if alone {
            let erase = Self::new("management", "erase_storage", vec![(CLEAN, 10)], rng);
            let deploy = Self::new("deploy", "deploy", vec![(DEPLOY, 100)], rng);
            offers.push(Self { outside: rng.chance(0.5), ..erase });
            offers.push(deploy);
        }
        let extras: [Extra; 4] = [
            ("management", "reset_bmc", vec![(CLEAN, 40)]),
            ("bios", "factory_reset", vec![(CLEAN, 0), (DEPLOY, 0), (SERVICE, 0)]),
            ("raid", "delete_configuration", vec![(CLEAN, 15), (DEPLOY, 0)]),
            ("firmware", "flash", vec![(CLEAN, 0), (DEPLOY, 70), (SERVICE, 0)]),
        ];
        for (interface, name, priorities) in extras {
            if rng.chance(0.5) {
                let offer = Self::new(interface, name, priorities, rng);
                offers.push(Self { outside: rng.chance(0.3), ..offer });
            }
        }
        // A call of a step ends within a minute.
        for offer in offers.iter_mut().filter(|offer| !offer.outside) {
            offer.takes.end = offer.takes.end.min(45);
            offer.takes.start = offer.takes.start.min(5);
        }
        offers
    }

    /// `deploy.erase_devices`.
    pub fn label(&self) -> String {
        format!("{}.{}", self.interface, self.name)
    }

    /// The step as the list of a kind advertises it, if it is in that list.
    pub fn wire(&self, kind: StepKind) -> Option<Value> {
        let (_, priority) = self.priorities.iter().find(|(of, _)| *of == kind)?;
        Some(json!({
            "interface": self.interface, "step": self.name, "priority": priority,
            "abortable": self.abortable, "idempotent": self.idempotent, "reboot_requested": self.reboot,
        }))
    }
}

/// The kind in the words of the hardware managers.
pub fn of_manager(kind: StepKind) -> hwm_sdk::StepKind {
    match kind {
        StepKind::Clean => hwm_sdk::StepKind::Clean,
        StepKind::Deploy => hwm_sdk::StepKind::Deploy,
        StepKind::Service => hwm_sdk::StepKind::Service,
    }
}
