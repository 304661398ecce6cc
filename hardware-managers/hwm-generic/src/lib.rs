//! The hardware manager for every machine: it lists and erases the disks, compares the machine with its expected
//! properties and firmware, reports what the kernel knows of it, and changes BIOS settings where the kernel can
//! (`steps.rs` declares all steps).
//!
//! ```text
//!   run(erase_devices) ─▶ survey: list and probe every disk           nothing is written
//!                         block::plan: methods for each, leave, or refuse all    (pure)
//!                         block::reveal: hidden sectors given back, then survey and plan again
//!                         block::take_down: what uses the disks, in the ramdisk only
//!                         open every disk exclusively
//!                         erase_job: one thread a disk ─▶ block::erase     progress ─▶ StepContext
//!                         rebuild: arrays and groups of before, empty, after automated cleaning
//!                         report: one record a disk
//! ```
//!
//! All disks are judged before the first byte of any is written: one that must not be touched, for a reason
//! that leaves data on the node, stops the whole step while nothing is lost yet. Boot and virtual media are
//! listed as skipped and stop nothing.

mod bios;
mod bmc;
mod clear_tpm;
mod clock;
mod convert;
mod disk_progress;
mod disks;
mod efi;
mod erase_job;
mod erase_pstore;
mod exempt;
mod finding;
mod firmware;
mod image;
mod inventory;
mod job;
mod missing_firmware;
mod pace;
mod pci;
mod properties;
mod rebuild;
mod resume;
mod settings;
mod steps;
mod storage_controllers;
mod survey;
mod sysfs;
mod tpm;
mod version;

pub use disks::DisksError;
pub use erase_pstore::EfiVariableWriter;
pub use image::{MirrorTrust, source_of};
pub use pci::{PciDevice, devices as pci_devices};
pub use settings::Settings;
pub use steps::{
    APPLY_BIOS_SETTINGS, CLEAR_TPM, ERASE_DEVICES, ERASE_DEVICES_EXPRESS, ERASE_DEVICES_METADATA,
    ERASE_PSTORE, STEPS, VERIFY_FIRMWARE, VERIFY_PROPERTIES, WRITE_IMAGE,
};

use agent_protocol::inventory::Inventory;
use agent_protocol::record::EraseReport;
use agent_protocol::step::Step;
use block::{Filter, Plan, Probe, Roots};
use hwm_sdk::protocol::InventoryPatch;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support};
use job::Job;
use rebuild::{RebuildMode, RememberedVolumes, Volumes};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use storage_controllers::{Driverless, driverless};

/// Name in `hardware_manager_version`, the same as in ironic-python-agent.
pub const NAME: &str = "generic_hardware_manager";
/// Version; must grow when a step changes.
pub const VERSION: &str = "1.8";

/// Consequence in the error text when the disks cannot be listed.
const NOT_VERIFIED: &str = "nothing was verified";

/// The generic hardware manager.
#[derive(Debug, Clone)]
pub struct GenericHardwareManager {
    roots: Roots,
    filter: Filter,
    /// See [`GenericHardwareManager::in_the_ramdisk`].
    takes_down: bool,
    mirrors: MirrorTrust,
    /// Of a machine that runs only the agent.
    variables: Option<EfiVariableWriter>,
    /// Arrays and volume groups of the disks before the erase steps of this boot.
    remembered: Arc<RememberedVolumes>,
}

fn unknown(call: &StepCall) -> StepError {
    StepError::Unknown { manager: NAME.to_owned(), step: call.step.step.clone() }
}

impl GenericHardwareManager {
    /// For the disks that `filter` lets exist.
    pub fn new(filter: Filter) -> Self {
        Self::with_roots(Roots::default(), filter)
    }

    /// With sysfs, procfs and device nodes elsewhere.
    pub fn with_roots(roots: Roots, filter: Filter) -> Self {
        GenericHardwareManager {
            roots,
            filter,
            takes_down: false,
            mirrors: MirrorTrust::default(),
            variables: None,
            remembered: Arc::default(),
        }
    }

    /// For a machine that runs only the agent: swap, mounts and volumes that use a disk to be erased are taken down
    /// first. Everywhere else such a disk is refused and nothing is taken down.
    #[must_use]
    pub fn in_the_ramdisk(self) -> Self {
        GenericHardwareManager { takes_down: true, ..self }
    }

    /// With the mirrors of images that are trusted where a step does not say which are.
    #[must_use]
    pub fn trusting(self, mirrors: MirrorTrust) -> Self {
        GenericHardwareManager { mirrors, ..self }
    }

    /// For a machine that runs only the agent: crash records may be removed, also from the firmware's variables.
    #[must_use]
    pub fn writing_variables(self, with_writable: EfiVariableWriter) -> Self {
        GenericHardwareManager { variables: Some(with_writable), ..self }
    }

    /// Whether it may take down what uses the disks.
    pub fn takes_down(&self) -> bool {
        self.takes_down
    }

    /// The disks for the agent's inventory.
    ///
    /// # Errors
    /// When the disks cannot be listed. A disk that cannot be read is in the answer, with the error under
    /// `anneal.probe_error`.
    pub fn disks(&self) -> Result<Vec<agent_protocol::inventory::Disk>, DisksError> {
        disks::disks(&self.roots, &self.filter)
    }

    fn run_on_disks(
        &self,
        job: Job,
        call: &StepCall,
        context: &StepContext,
    ) -> Result<StepOutcome, StepError> {
        let (mut probes, mut plan, mut settings) = self.prepare(job, call, true)?;
        let ignored = self.driverless(&settings).ignored;
        if !plan.refuses() && erase_job::reveal(&self.roots, &probes, &plan)? {
            // The sizes have changed: survey again, and reveal only once.
            settings.request.policy.reveal = false;
            (probes, plan) = self.judged(job, &settings, true)?;
        }
        let (mode, first) = RebuildMode::of(call);
        if first {
            self.remembered.forget();
        }
        let volumes = Volumes { mode, remembered: &self.remembered };
        let outcome = erase_job::run(&self.roots, job, probes, plan, &settings, &volumes, context);
        convert::with_ignored(outcome, &ignored)
    }

    /// Probe all disks and plan for all of them. Nothing is written; with `rescue`, drives are freed of the password
    /// of an interrupted erase.
    fn prepare(
        &self,
        job: Job,
        call: &StepCall,
        rescue: bool,
    ) -> Result<(Vec<Probe>, Plan, Settings), StepError> {
        let declared = STEPS.iter().find(|declared| declared.step == call.step.step);
        let known: Vec<&str> =
            declared.into_iter().flat_map(|step| step.arguments).map(|known| known.name).collect();
        let mut settings =
            Settings::from_node(&call.node)?.with_arguments(&call.step.step, &known, &call.args)?;
        settings.request.policy.take_down = self.takes_down;
        let (probes, plan) = self.judged(job, &settings, rescue)?;
        Ok((probes, plan, settings))
    }

    /// All disks as they are now, and the plan for them.
    fn judged(&self, job: Job, settings: &Settings, rescue: bool) -> Result<(Vec<Probe>, Plan), StepError> {
        let mut lost = if self.filter == Filter::All { block::unattached(&self.roots) } else { Vec::new() };
        lost.extend(self.driverless(settings).unknown);
        if !lost.is_empty() {
            let reason = format!("nothing was written to any disk: {}", lost.join("; "));
            return Err(StepError::Failed { reason, report: convert::report(&EraseReport::default()) });
        }
        // An erase of metadata alone does not revert a locked drive, whose metadata it could not see.
        let none = BTreeMap::new();
        let psids = if job == Job::Metadata { &none } else { &settings.psids };
        let probes =
            survey::survey(&self.roots, &self.filter, rescue, psids).map_err(|error| StepError::Failed {
                reason: format!(
                    "the disks cannot be listed, so nothing was erased: {}",
                    block::fault::chain(&error)
                ),
                report: convert::report(&EraseReport::default()),
            })?;
        let plan = match job {
            Job::Erase => block::plan(&probes, &settings.request),
            Job::Express | Job::Metadata => block::plan_metadata(&probes, &settings.request.policy),
        };
        Ok((probes, plan))
    }

    /// The storage controllers of the machine that have, or may have, no driver or no firmware for it; none where the agent was given its disks one by one.
    fn driverless(&self, settings: &Settings) -> Driverless {
        if self.filter != Filter::All {
            return Driverless::default();
        }
        let missing = missing_firmware::missing(&self.roots);
        driverless(&pci::devices(&self.roots.sys), &missing, &settings.ignored_controllers)
    }

    fn machine(&self) -> image::Machine<'_> {
        image::Machine {
            roots: &self.roots,
            filter: &self.filter,
            takes_down: self.takes_down,
            mirrors: &self.mirrors,
        }
    }

    // Both read a few files of sysfs, so they are too short to be cancelled.

    fn verify_properties(&self, call: &StepCall) -> Result<StepOutcome, StepError> {
        let findings = properties::compare(&call.node, &call.inventory, &self.listed(NOT_VERIFIED)?)?;
        finding::conclude("node.properties", &findings)
    }

    fn verify_firmware(&self, call: &StepCall) -> Result<StepOutcome, StepError> {
        let baseline = firmware::Baseline::of(call)?;
        let installed = firmware::installed(&self.roots.sys, &self.listed(NOT_VERIFIED)?);
        finding::conclude("the firmware baseline", &baseline.compare(&installed))
    }

    fn listed(&self, so: &str) -> Result<Vec<block::Disk>, StepError> {
        block::list(&self.roots, &self.filter).map_err(|error| StepError::Failed {
            reason: format!("the disks cannot be listed, so {so}: {}", block::fault::chain(&error)),
            report: Value::Null,
        })
    }
}

impl HardwareManager for GenericHardwareManager {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn evaluate(&self, _: &Inventory) -> Support {
        Support::Generic
    }

    fn inventory(&self, _: &StepContext) -> Result<InventoryPatch, StepError> {
        let disks = self.listed("no inventory is reported")?;
        Ok(inventory::patch(&self.roots, &disks))
    }

    fn steps(&self, kind: StepKind, _: &Inventory) -> Vec<Step> {
        let mut steps = hwm_sdk::advertise(STEPS, kind);
        if bios::drivers(&self.roots.sys).is_empty() {
            steps.retain(|step| step.step != APPLY_BIOS_SETTINGS);
        }
        if !clear_tpm::is_offered(&self.roots) {
            steps.retain(|step| step.step != CLEAR_TPM);
        }
        if self.variables.is_none() || !erase_pstore::is_offered(&self.roots.sys) {
            steps.retain(|step| step.step != ERASE_PSTORE);
        }
        steps
    }

    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        let declared = STEPS.iter().find(|declared| declared.step == call.step.step);
        let step =
            declared.filter(|declared| declared.step(call.kind).is_some()).ok_or_else(|| unknown(call))?;
        match (step.step, Job::of(step.step)) {
            (_, Some(job)) => self.run_on_disks(job, call, context),
            (VERIFY_PROPERTIES, None) => self.verify_properties(call),
            (VERIFY_FIRMWARE, None) => self.verify_firmware(call),
            (WRITE_IMAGE, None) => image::run(&self.machine(), call, context),
            (CLEAR_TPM, None) => clear_tpm::run(&self.roots, context),
            (ERASE_PSTORE, None) => match self.variables {
                Some(with_writable) => erase_pstore::run(&self.roots.sys, with_writable),
                None => Err(unknown(call)),
            },
            (APPLY_BIOS_SETTINGS, None) => bios::apply(&self.roots.sys, call, context),
            _ => Err(unknown(call)),
        }
    }

    /// What one of the erase steps would do, disk by disk, without writing to any: `refuses`, `estimate_s`, and for
    /// each disk what is to happen to it, why, and by which methods in which order.
    fn plan(&self, call: &StepCall) -> Result<Value, StepError> {
        let job = Job::of(&call.step.step).ok_or_else(|| unknown(call))?;
        let (probes, plan, settings) = self.prepare(job, call, false)?;
        Ok(convert::plan(job, &probes, &plan, &settings))
    }
}
