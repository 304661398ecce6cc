//! The trait that a hardware manager implements.

use crate::context::StepContext;
use crate::error::StepError;
use crate::protocol::{
    Claim, EraseCapabilities, EraseParams, InventoryPatch, Priority, ProviderRecord, Quirk,
};
use crate::step::{StepCall, StepKind, StepOutcome};
use crate::support::Support;
use agent_protocol::inventory::{Disk, Inventory};
use agent_protocol::step::Step;
use serde_json::Value;

/// A hardware manager. Those built into the agent and external ones, which run [`crate::serve`], implement this trait.
///
/// By default a manager claims no device, skips no probe, needs no preparation, adds nothing to the inventory, changes no
/// priority, plans no step and declines every erase.
pub trait HardwareManager: Send + Sync {
    /// Name, unique in the agent, for example `generic_hardware_manager`.
    fn name(&self) -> &str;

    /// Version. When it changes during a run, automated cleaning starts again, and any other run repeats its current step.
    fn version(&self) -> &str;

    /// Vendor of the manager.
    fn vendor(&self) -> &str {
        "Anneal"
    }

    /// How well this manager supports the machine. Must return within seconds.
    fn evaluate(&self, inventory: &Inventory) -> Support;

    /// Devices of this machine that this manager is responsible for. Quick, as [`HardwareManager::evaluate`].
    fn claims(&self, _inventory: &Inventory) -> Vec<Claim> {
        Vec::new()
    }

    /// Probes that the agent must leave out on this machine. Quick, as [`HardwareManager::evaluate`].
    fn quirks(&self, _inventory: &Inventory) -> Vec<Quirk> {
        Vec::new()
    }

    /// Prepare for a machine that this manager supports. This may take up to a minute.
    ///
    /// # Errors
    /// Any error: the agent then does not offer the steps of this manager.
    fn init(&self, _context: &StepContext) -> Result<(), StepError> {
        Ok(())
    }

    /// Details of the hardware that the agent itself cannot see.
    ///
    /// # Errors
    /// Any error: the agent then reports the inventory without these details.
    fn inventory(&self, _context: &StepContext) -> Result<InventoryPatch, StepError> {
        Ok(InventoryPatch::default())
    }

    /// The steps that this manager offers on this machine.
    fn steps(&self, kind: StepKind, inventory: &Inventory) -> Vec<Step>;

    /// Priorities that replace those that other managers declared for their steps.
    fn priorities(&self, _kind: StepKind, _inventory: &Inventory) -> Vec<Priority> {
        Vec::new()
    }

    /// Run one of the manager's steps to the end, blocking. Must be idempotent, unless the step declares `idempotent: false`.
    ///
    /// # Errors
    /// The reason for which the step failed.
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError>;

    /// Return what one of the manager's steps would do to this machine, as JSON, without changing anything. Disks that
    /// [`HardwareManager::run`] would refuse are part of the answer.
    ///
    /// # Errors
    /// [`StepError::Declined`] where the manager does not plan this step; for wrong arguments, the same error as
    /// [`HardwareManager::run`].
    fn plan(&self, call: &StepCall) -> Result<Value, StepError> {
        let reason = format!("hardware manager {} has no plan for step {:?}", self.name(), call.step.step);
        Err(StepError::Declined { reason })
    }

    /// Methods by which this manager can erase the disk. None for a disk that it does not recognise with certainty.
    fn erase_capabilities(&self, _disk: &Disk) -> EraseCapabilities {
        EraseCapabilities::default()
    }

    /// Erase a disk with a method that [`HardwareManager::erase_capabilities`] returned, blocking. The caller
    /// verifies the disk afterwards by reading it back.
    ///
    /// # Errors
    /// [`StepError::Declined`] only if nothing was written: the agent then erases with the generic manager. After any
    /// other error the erase of the disk has failed.
    fn erase(&self, erase: &EraseParams, _context: &StepContext) -> Result<ProviderRecord, StepError> {
        let reason = format!("hardware manager {} does not erase {}", self.name(), erase.disk.name);
        Err(StepError::Declined { reason })
    }
}
