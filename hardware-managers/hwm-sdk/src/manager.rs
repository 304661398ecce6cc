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

/// A hardware manager. Those in the agent and those behind [`serve`] are the same.
///
/// What is not implemented is not there: no claims, nothing to get ready, nothing to add to the inventory, no disk that
/// it erases in its own way.
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

    /// Devices of this machine that it cares for. Quick, as [`HardwareManager::evaluate`].
    fn claims(&self, _inventory: &Inventory) -> Vec<Claim> {
        Vec::new()
    }

    /// What the agent must leave out on machines of some kinds. Quick, as [`HardwareManager::evaluate`].
    fn quirks(&self, _inventory: &Inventory) -> Vec<Quirk> {
        Vec::new()
    }

    /// Get ready for a machine that it supports. Slow things belong here; up to a minute.
    ///
    /// # Errors
    /// Its steps are not offered then.
    fn init(&self, _context: &StepContext) -> Result<(), StepError> {
        Ok(())
    }

    /// What it knows of the hardware that the agent cannot see.
    ///
    /// # Errors
    /// The inventory stays without it then.
    fn inventory(&self, _context: &StepContext) -> Result<InventoryPatch, StepError> {
        Ok(InventoryPatch::default())
    }

    /// The steps it offers on this machine.
    fn steps(&self, kind: StepKind, inventory: &Inventory) -> Vec<Step>;

    /// Other priorities for steps that it does not own.
    fn priorities(&self, _kind: StepKind, _inventory: &Inventory) -> Vec<Priority> {
        Vec::new()
    }

    /// Run one of its steps to the end, blocking. Must be idempotent unless its step says otherwise.
    ///
    /// # Errors
    /// Why the step failed.
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError>;

    /// What one of its steps would do to this machine, as JSON, changing nothing: what [`HardwareManager::run`] would
    /// refuse is in the answer.
    ///
    /// # Errors
    /// [`StepError::Declined`] where the manager does not plan this step; for wrong arguments, the same as [`HardwareManager::run`].
    fn plan(&self, call: &StepCall) -> Result<Value, StepError> {
        let reason =
            format!("hardware manager {} does not say what {:?} would do", self.name(), call.step.step);
        Err(StepError::Declined { reason })
    }

    /// How it can erase this disk. Decline every disk that is not known for certain.
    fn erase_capabilities(&self, _disk: &Disk) -> EraseCapabilities {
        EraseCapabilities::default()
    }

    /// Erase a disk with a method that [`HardwareManager::erase_capabilities`] returned, blocking. The caller reads the
    /// disk back.
    ///
    /// # Errors
    /// [`StepError::Declined`] when nothing was written and the generic manager shall do it.
    fn erase(&self, erase: &EraseParams, _context: &StepContext) -> Result<ProviderRecord, StepError> {
        let reason = format!("hardware manager {} does not erase {}", self.name(), erase.disk.name);
        Err(StepError::Declined { reason })
    }
}
