//! A node: what the controller keeps of one server.

use crate::basis::Basis;
use crate::boot_proof::TpmRecord;
use crate::disks::KnownDisks;
use crate::health::Health;
use crate::power::{PowerState, PowerTarget};
use crate::provision::ProvisionState;
use crate::run::Run;
use crate::step::StepKind;
use crate::time::Timestamp;
use root_device::DiskIdentity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A node. Every write names the `version` it was read at and makes it one larger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its id.
    pub uuid: Uuid,
    /// Name, unique among nodes.
    #[serde(default)]
    pub name: Option<String>,
    /// Count of writes; guards against lost updates. Never on the wire.
    #[serde(default)]
    pub version: u64,
    /// Driver: `redfish`, `ipmi`, `fake-hardware`.
    pub driver: String,
    /// How to reach the BMC. Values of secret keys are masked by the API.
    #[serde(default)]
    pub driver_info: Map<String, Value>,
    /// What hardware it is.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// What is to run on it.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// Id of that, for schedulers; unique.
    #[serde(default)]
    pub instance_uuid: Option<Uuid>,
    /// Free for clients.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Scheduling class.
    #[serde(default)]
    pub resource_class: Option<String>,
    /// Interface overrides: `deploy_interface` → `direct`.
    #[serde(default)]
    pub interfaces: BTreeMap<String, String>,
    /// Fields kept for clients without meaning here: `description`, `owner`, `lessee`, `conductor_group` …
    #[serde(default)]
    pub other: Map<String, Value>,

    /// Its provision state.
    pub provision_state: ProvisionState,
    /// Its target provision state; `None` in stable states.
    #[serde(default)]
    pub target_provision_state: Option<ProvisionState>,
    /// When the provision state changed last.
    #[serde(default)]
    pub provision_updated_at: Option<Timestamp>,
    /// Power as last read.
    #[serde(default)]
    pub power_state: Option<PowerState>,
    /// When it was last reset, or about to be: the firmware that starts then may use up a boot device set for one boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<Timestamp>,
    /// A boot medium of ours may be in a virtual drive of its BMC: stored before it is inserted, until it is out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub medium_inserted: bool,
    /// Its TPM, once it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Box<TpmRecord>>,
    /// Health of the hardware as last reported by the BMC; `None` where it reports none.
    #[serde(default)]
    pub health: Option<Health>,
    /// Power as asked for by a user, until reached.
    #[serde(default)]
    pub target_power_state: Option<PowerTarget>,
    /// The text of the last failure.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Out of service.
    #[serde(default)]
    pub maintenance: bool,
    /// Why.
    #[serde(default)]
    pub maintenance_reason: Option<String>,
    /// What put it into maintenance: `clean failure`, `power failure`.
    #[serde(default)]
    pub fault: Option<String>,
    /// Per-node switch of automated cleaning; `None` = as configured.
    #[serde(default)]
    pub automated_clean: Option<bool>,
    /// Not to enter service again.
    #[serde(default)]
    pub retired: bool,
    /// Why.
    #[serde(default)]
    pub retired_reason: Option<String>,
    /// May not be deleted or rebuilt.
    #[serde(default)]
    pub protected: bool,
    /// Why.
    #[serde(default)]
    pub protected_reason: Option<String>,
    /// Current clean step, or the one that failed.
    #[serde(default)]
    pub clean_step: Option<Value>,
    /// Current deploy step, or the one that failed.
    #[serde(default)]
    pub deploy_step: Option<Value>,
    /// Current service step, or the one that failed.
    #[serde(default)]
    pub service_step: Option<Value>,
    /// Traits that a scheduler may ask for.
    #[serde(default)]
    pub traits: BTreeSet<String>,
    /// When the last inspection began.
    #[serde(default)]
    pub inspection_started_at: Option<Timestamp>,
    /// When it succeeded.
    #[serde(default)]
    pub inspection_finished_at: Option<Timestamp>,
    /// Keys of `driver_internal_info` that are part of the protocol, except those that are made from the contact.
    #[serde(default)]
    pub driver_internal_info: Map<String, Value>,
    /// Its disks when it was looked at last.
    #[serde(default, skip_serializing_if = "KnownDisks::is_empty")]
    pub disks: KnownDisks,
    /// The disk with its operating system; `None` when it has none, or its agent did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk: Option<DiskIdentity>,
    /// When its last deployment or adoption ended, as a success or not: an erase before says nothing of its disks any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<Timestamp>,
    /// Why it is AVAILABLE; `None` in every other state, and where an earlier version of the controller made it available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,

    /// The run under way.
    #[serde(default)]
    pub run: Option<Run>,
    /// What the controller waits for, with a deadline.
    #[serde(default)]
    pub wait: Option<Wait>,
    /// When the conductor looks at the node again without another cause; `None` = never.
    #[serde(default)]
    pub next_wake_at: Option<Timestamp>,

    /// When it was enrolled.
    pub created_at: Timestamp,
    /// When it was changed last.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
}

/// Why a node waits: stored, and shown to the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// One sentence: what is awaited.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// After this the conductor acts on the silence; `None` = it waits for a user.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
}

impl Node {
    /// Whether the controller never powers the node off (`disable_power_off`).
    pub fn never_powers_off(&self) -> bool {
        self.other.get("disable_power_off").and_then(Value::as_bool) == Some(true)
    }

    /// Its conductor group; "" for none.
    pub fn conductor_group(&self) -> &str {
        self.other.get("conductor_group").and_then(Value::as_str).unwrap_or_default()
    }

    /// A node as it is enrolled.
    pub fn enrolled(uuid: Uuid, driver: &str, now: Timestamp) -> Self {
        Self {
            uuid,
            name: None,
            version: 0,
            driver: driver.to_owned(),
            driver_info: Map::new(),
            properties: Map::new(),
            instance_info: Map::new(),
            instance_uuid: None,
            extra: Map::new(),
            resource_class: None,
            interfaces: BTreeMap::new(),
            other: Map::new(),
            provision_state: ProvisionState::Enroll,
            target_provision_state: None,
            provision_updated_at: None,
            power_state: None,
            reset_at: None,
            medium_inserted: false,
            tpm: None,
            health: None,
            target_power_state: None,
            last_error: None,
            maintenance: false,
            maintenance_reason: None,
            fault: None,
            automated_clean: None,
            retired: false,
            retired_reason: None,
            protected: false,
            protected_reason: None,
            clean_step: None,
            deploy_step: None,
            service_step: None,
            traits: BTreeSet::new(),
            inspection_started_at: None,
            inspection_finished_at: None,
            driver_internal_info: Map::new(),
            disks: KnownDisks::default(),
            root_disk: None,
            deployed_at: None,
            basis: None,
            run: None,
            wait: None,
            next_wake_at: None,
            created_at: now,
            updated_at: None,
        }
    }

    /// The field that shows the current step of a kind.
    pub fn step_mut(&mut self, kind: StepKind) -> &mut Option<Value> {
        match kind {
            StepKind::Clean => &mut self.clean_step,
            StepKind::Deploy => &mut self.deploy_step,
            StepKind::Service => &mut self.service_step,
        }
    }

    /// No step of this kind is current any more: neither shown nor in `driver_internal_info`.
    pub fn forget_steps(&mut self, kind: StepKind) {
        *self.step_mut(kind) = None;
        self.driver_internal_info.remove(kind.steps_field());
        self.driver_internal_info.remove(kind.index_field());
    }

    /// Whether a boot of the node now is one into the ramdisk: a run wants it there, or it is being rescued.
    pub fn boots_ramdisk(&self) -> bool {
        self.provision_state == ProvisionState::Rescue
            || self.run.as_ref().is_some_and(|run| run.is_active() && run.boots_ramdisk())
    }

    /// Move to `state`, setting the target that belongs to it unless `target` overrides it. AVAILABLE is entered with
    /// [`Node::make_available`] alone: here the state stays, and `last_error` states the defect.
    pub fn enter(&mut self, state: ProvisionState, target: Option<ProvisionState>, now: Timestamp) {
        if state == ProvisionState::Available {
            self.last_error =
                Some("internal: the node was about to become available without a basis".to_owned());
            return;
        }
        self.basis = None;
        if self.provision_state.is_deploying() && !state.is_deploying() {
            self.deployed_at = Some(now);
        }
        self.provision_state = state;
        self.target_provision_state =
            if state.is_stable() { None } else { target.or_else(|| state.target()) };
        self.provision_updated_at = Some(now);
    }

    /// Become AVAILABLE on this basis: the only way into that state.
    pub fn make_available(&mut self, basis: Basis, now: Timestamp) {
        self.basis = Some(basis);
        self.provision_state = ProvisionState::Available;
        self.target_provision_state = None;
        self.provision_updated_at = Some(now);
    }
}
