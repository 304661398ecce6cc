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

/// A hardware manager. Managers in the agent and managers behind [`crate::serve`] implement the same trait.
///
/// The provided methods stand for a manager without claims and quirks, without preparation, which adds nothing to the
/// inventory and erases no disk in its own way.
pub trait HardwareManager: Send + Sync {
    /// Name, unique in the agent: `generic_hardware_manager`.
    fn name(&self) -> &str;

    /// Version; a change while a node is being cleaned restarts automated cleaning.
    fn version(&self) -> &str;

    /// Vendor of the manager.
    fn vendor(&self) -> &str {
        "Anneal"
    }

    /// How well this manager supports the machine. Must be quick: no device is opened for long here.
    fn evaluate(&self, inventory: &Inventory) -> Support;

    /// Devices of this machine that this manager is responsible for. Quick, as [`HardwareManager::evaluate`].
    fn claims(&self, _inventory: &Inventory) -> Vec<Claim> {
        Vec::new()
    }

    /// Probes that the agent must leave out on this machine. Quick, as [`HardwareManager::evaluate`].
    fn quirks(&self, _inventory: &Inventory) -> Vec<Quirk> {
        Vec::new()
    }

    /// Prepare for a machine that this manager supports. Slow preparation belongs here; up to a minute.
    ///
    /// # Errors
    /// The agent does not offer the steps of a manager whose preparation failed.
    fn init(&self, _context: &StepContext) -> Result<(), StepError> {
        Ok(())
    }

    /// Details of the hardware that the agent itself cannot see.
    ///
    /// # Errors
    /// The agent reports the inventory without them.
    fn inventory(&self, _context: &StepContext) -> Result<InventoryPatch, StepError> {
        Ok(InventoryPatch::default())
    }

    /// The steps that this manager offers on this machine.
    fn steps(&self, kind: StepKind, inventory: &Inventory) -> Vec<Step>;

    /// Other priorities for steps of other managers.
    fn priorities(&self, _kind: StepKind, _inventory: &Inventory) -> Vec<Priority> {
        Vec::new()
    }

    /// Run one of the manager's steps to the end, blocking. Must be idempotent unless the step is declared otherwise.
    ///
    /// # Errors
    /// Why the step failed.
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError>;

    /// Return what one of the manager's steps would do to this machine, as JSON, without changing anything. The answer
    /// includes what [`HardwareManager::run`] would reject.
    ///
    /// # Errors
    /// [`StepError::Declined`] where the manager does not plan this step; for wrong arguments, the same error as
    /// [`HardwareManager::run`].
    fn plan(&self, call: &StepCall) -> Result<Value, StepError> {
        let reason =
            format!("hardware manager {} does not say what {:?} would do", self.name(), call.step.step);
        Err(StepError::Declined { reason })
    }

    /// Methods by which this manager can erase the disk. Decline every disk that it does not recognise with certainty.
    fn erase_capabilities(&self, _disk: &Disk) -> EraseCapabilities {
        EraseCapabilities::default()
    }

    /// Erase a disk with a method that [`HardwareManager::erase_capabilities`] returned, blocking. The caller reads the
    /// disk back.
    ///
    /// # Errors
    /// [`StepError::Declined`] when nothing was written and the generic manager is to erase the disk.
    fn erase(&self, erase: &EraseParams, _context: &StepContext) -> Result<ProviderRecord, StepError> {
        let reason = format!("hardware manager {} does not erase {}", self.name(), erase.disk.name);
        Err(StepError::Declined { reason })
    }
}
