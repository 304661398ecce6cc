//! An erase that is interrupted, by a reboot or by its deadline. Needs root and losetup.

#[path = "../../../agent/block/tests/common/mod.rs"]
mod common;

use agent_protocol::inventory::Inventory;
use agent_protocol::record::{EraseReport, Outcome};
use block::Filter;
use common::{Loop, pattern};
use hwm_generic::{ERASE_DEVICES, GenericHardwareManager};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn call(manager: &GenericHardwareManager) -> StepCall {
    let steps = manager.steps(StepKind::Clean, &Inventory::default());
    let step = steps.into_iter().find(|offered| offered.step == ERASE_DEVICES).unwrap();
    StepCall {
        kind: StepKind::Clean,
        step,
        args: Map::new(),
        node: json!({"uuid": "n"}),
        inventory: Arc::default(),
    }
}

fn report(value: &Value) -> EraseReport {
    serde_json::from_value(value.clone()).unwrap()
}

/// A copy of what sysfs says of a loop device, with the serial number that loop devices have not.
fn with_serial(disk: &Loop, serial: &str) -> (tempfile::TempDir, GenericHardwareManager) {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (Path::new("/sys/block").join(disk.name()), root.path().join("block").join(disk.name()));
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
    let manager = GenericHardwareManager::with_roots(roots, Filter::Only(vec![disk.path.clone()]));
    (root, manager)
}

#[test]
fn an_erase_goes_on_after_a_reboot_where_the_disk_has_an_identity() {
    const PART: u64 = 64 << 20;
    let mut disk = Loop::new(&pattern(1 << 20).repeat(72));
    let erase = |disk: &Loop, serial: &str, context: &StepContext| {
        let (_root, manager) = with_serial(disk, serial);
        let result = manager.run(&call(&manager), context);
        let Ok(StepOutcome::Done(value)) = result else { panic!("{result:?}") };
        report(&value).disks.remove(0)
    };
    let first = StepContext::new();
    let record = erase(&disk, "S1", &first);
    assert_eq!((record.serial.as_deref(), record.resumed_from), (Some("S1"), None));
    let mut saved = first.saved().expect("a checkpoint");
    assert_eq!(saved["disks"][0]["offset"], 72 << 20, "the last one is for the read-back");
    // The state of a power cut after the first part.
    saved["disks"][0]["offset"] = json!(PART);
    for (serial, resumed_from) in [("S1", Some(PART)), ("S2", None)] {
        disk.write(PART, &pattern(8 << 20));
        disk.attach_again();
        let record = erase(&disk, serial, &StepContext::new().resuming(Some(saved.clone())));
        assert_eq!((record.outcome, record.resumed_from), (Outcome::Erased, resumed_from), "{serial}");
        assert_eq!(record.bytes_erased, 72 << 20);
        assert_eq!(record.verification.unwrap().bytes_read, 72 << 20);
        assert!(disk.outside().iter().all(|&byte| byte == 0));
    }
}

#[test]
fn a_step_ends_at_its_deadline_and_says_so() {
    // Reading it back takes minutes.
    let disk = Loop::sparse(1 << 40, &[]);
    let begun = Instant::now();
    let manager = GenericHardwareManager::new(disk.filter());
    let mut call = call(&manager);
    call.args.insert("deadline_s".into(), json!(1));
    let Err(StepError::Failed { reason, report: value }) = manager.run(&call, &StepContext::new()) else {
        panic!("it did not fail")
    };
    let report = report(&value);
    assert!(
        reason.contains("the deadline of the step passed, 1 s after its beginning (argument deadline_s)"),
        "{reason}"
    );
    assert_eq!(report.disks[0].outcome, Outcome::Failed);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
