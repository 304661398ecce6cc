//! A clean step of the generic manager on loop devices, called as the agent calls it.

use super::common::Loop;
use agent_protocol::inventory::Inventory;
use agent_protocol::record::EraseReport;
use block::Filter;
use hwm_generic::GenericHardwareManager;
use hwm_sdk::{HardwareManager, StepCall, StepError, StepKind, StepOutcome};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// The manager of these disks and no others.
pub fn manager(disks: &[&Loop]) -> GenericHardwareManager {
    GenericHardwareManager::new(Filter::Only(disks.iter().map(|disk| disk.path.clone()).collect()))
}

/// A copy of what sysfs says of a loop device, with the serial number that loop devices have not.
pub fn with_serial(path: &Path, serial: &str) -> (tempfile::TempDir, GenericHardwareManager) {
    let root = tempfile::tempdir().unwrap();
    let name = path.file_name().unwrap();
    let (from, to) = (Path::new("/sys/block").join(name), root.path().join("block").join(name));
    std::fs::create_dir_all(&to).unwrap();
    for folder in ["", "queue", "loop"] {
        std::fs::create_dir_all(to.join(folder)).unwrap();
        let files = std::fs::read_dir(from.join(folder)).unwrap().map(Result::unwrap);
        for file in files.filter(|file| file.file_type().unwrap().is_file()) {
            // Some may only be written.
            if let Ok(content) = std::fs::read(file.path()) {
                std::fs::write(to.join(folder).join(file.file_name()), content).unwrap();
            }
        }
    }
    std::fs::create_dir_all(to.join("device")).unwrap();
    std::fs::write(to.join("device/serial"), serial).unwrap();
    let roots = block::Roots { sys: root.path().into(), ..block::Roots::default() };
    let manager = GenericHardwareManager::with_roots(roots, Filter::Only(vec![path.into()]));
    (root, manager)
}

/// A clean step that it offers, for a node with this `driver_internal_info`.
pub fn call(manager: &GenericHardwareManager, step: &str, info: Value) -> StepCall {
    let steps = manager.steps(StepKind::Clean, &Inventory::default());
    let step = steps.into_iter().find(|offered| offered.step == step).unwrap();
    let node = json!({"uuid": "n", "driver_internal_info": info});
    StepCall { kind: StepKind::Clean, step, args: Map::new(), node, inventory: Arc::default() }
}

pub fn report(value: &Value) -> EraseReport {
    serde_json::from_value(value.clone()).unwrap()
}

/// The report of a step that succeeded.
pub fn done(result: Result<StepOutcome, StepError>) -> EraseReport {
    match result {
        Ok(StepOutcome::Done(value)) => report(&value),
        other => panic!("{other:?} is not a success"),
    }
}

/// Reason and report of a step that failed.
pub fn failed(result: Result<StepOutcome, StepError>) -> (String, EraseReport) {
    match result {
        Err(StepError::Failed { reason, report: value }) => (reason, report(&value)),
        other => panic!("{other:?} is not a failure"),
    }
}
