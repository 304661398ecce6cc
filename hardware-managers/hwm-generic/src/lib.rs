//! The hardware manager for every machine: it lists the disks and erases them, and compares the machine with what
//! it is to be, tells what the kernel knows of it, and changes BIOS settings where the kernel can (`steps.rs` declares
//! all steps).
//!
//! ```text
//!   run(erase_devices) ─▶ survey: list, probe, judge every disk       nothing is written
//!                         decide: erase / skip / stop    (pure)
//!                         open every disk exclusively
//!                         work: one thread a disk ─▶ block::erase     progress ─▶ StepContext
//!                         report: one record a disk
//! ```
//!
//! All disks are judged before the first byte of any is written: one that must not be touched, for a reason
//! that leaves data on the node, stops the whole step while nothing is lost yet. Boot and virtual media are
//! listed as skipped and stop nothing.

mod bios;
mod bmc;
mod convert;
mod decide;
mod disks;
mod efi;
mod finding;
mod firmware;
mod inventory;
mod pci;
mod properties;
mod settings;
mod steps;
mod survey;
mod sysfs;
mod tpm;
mod version;
mod work;

pub use decide::{Decision, Fate, decide};
pub use disks::DisksError;
pub use pci::{PciDevice, devices as pci_devices};
pub use settings::Settings;
pub use steps::{
    APPLY_BIOS_SETTINGS, ERASE_DEVICES, ERASE_DEVICES_METADATA, STEPS, VERIFY_FIRMWARE, VERIFY_PROPERTIES,
};
pub use survey::{Surveyed, Verdict};

use agent_protocol::inventory::Inventory;
use agent_protocol::record::EraseReport;
use agent_protocol::step::Step;
use block::{Filter, Roots};
use hwm_sdk::protocol::InventoryPatch;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support};
use serde_json::Value;

/// Name in `hardware_manager_version`, the same as in ironic-python-agent.
pub const NAME: &str = "generic_hardware_manager";
/// Version; must grow when a step changes.
pub const VERSION: &str = "1.2";

/// What follows when there is nothing to compare with.
const NOT_VERIFIED: &str = "nothing was verified";

/// The generic hardware manager.
#[derive(Debug, Clone)]
pub struct GenericHardwareManager {
    roots: Roots,
    filter: Filter,
}

/// What is to be done to the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Everything on them.
    Erase,
    /// Partition tables and signatures.
    Metadata,
}

impl GenericHardwareManager {
    /// For the disks that `filter` lets exist.
    pub fn new(filter: Filter) -> Self {
        Self::with_roots(Roots::default(), filter)
    }

    /// With sysfs, procfs and device nodes elsewhere.
    pub fn with_roots(roots: Roots, filter: Filter) -> Self {
        GenericHardwareManager { roots, filter }
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
        if let Some(name) = call.args.keys().next() {
            let problem = format!("step {:?} takes no arguments", call.step.step);
            return Err(StepError::Argument { name: name.clone(), problem });
        }
        let settings = Settings::from_node(&call.node)?;
        let lost = if self.filter == Filter::All { block::unattached(&self.roots) } else { Vec::new() };
        if !lost.is_empty() {
            let reason = format!("nothing was written to any disk: {}", lost.join("; "));
            return Err(StepError::Failed { reason, report: convert::report(&EraseReport::default()) });
        }
        let surveyed = survey::survey(&self.roots, &self.filter).map_err(|error| StepError::Failed {
            reason: format!(
                "the disks cannot be listed, so nothing was erased: {}",
                block::fault::chain(&error)
            ),
            report: convert::report(&EraseReport::default()),
        })?;
        let decision = decide(&surveyed, &settings);
        work::work(&self.roots, job, surveyed, &decision, settings, context)
    }

    // Both read a few files of sysfs: they end long before anybody can cancel them.

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
        let disks = self.listed("the inventory is not told")?;
        Ok(inventory::patch(&self.roots.sys, &disks))
    }

    fn steps(&self, kind: StepKind, _: &Inventory) -> Vec<Step> {
        let mut steps = hwm_sdk::advertise(STEPS, kind);
        if bios::drivers(&self.roots.sys).is_empty() {
            steps.retain(|step| step.step != APPLY_BIOS_SETTINGS);
        }
        steps
    }

    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        let declared = STEPS.iter().find(|declared| declared.step == call.step.step);
        match declared.filter(|declared| declared.step(call.kind).is_some()).map(|declared| declared.step) {
            Some(ERASE_DEVICES) => self.run_on_disks(Job::Erase, call, context),
            Some(ERASE_DEVICES_METADATA) => self.run_on_disks(Job::Metadata, call, context),
            Some(VERIFY_PROPERTIES) => self.verify_properties(call),
            Some(VERIFY_FIRMWARE) => self.verify_firmware(call),
            Some(APPLY_BIOS_SETTINGS) => bios::apply(&self.roots.sys, call, context),
            _ => Err(StepError::Unknown { manager: NAME.to_owned(), step: call.step.step.clone() }),
        }
    }
}
