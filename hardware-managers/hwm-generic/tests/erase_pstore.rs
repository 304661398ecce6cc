//! Removing records of crashes, in a machine that is a directory.

use crate::tree::Tree;
use hwm_generic::{ERASE_PSTORE, EfiVariableWriter, GenericHardwareManager};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;

/// A log of a kernel, in a variable as the kernel names it, and one that is not a record.
const RECORD: &str = "dump-type0-1-1-1700000000-C-cfc8fc79-be2e-4ddc-97f0-9f98bfe298a0";
const OTHER: &str = "Boot0001-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// A machine with records in both places.
fn machine() -> Tree {
    let tree = Tree::new("dell-sysman");
    for (directory, files) in [("fs/pstore", &["dmesg-erst-7"][..]), (VARIABLES, &[RECORD, OTHER])] {
        let directory = tree.sys().join(directory);
        fs::create_dir_all(&directory).unwrap();
        files.iter().for_each(|file| fs::write(directory.join(file), "secret").unwrap());
    }
    tree
}

const VARIABLES: &str = "firmware/efi/efivars";

fn left(tree: &Tree) -> Vec<PathBuf> {
    let of = |directory: &str| fs::read_dir(tree.sys().join(directory)).unwrap();
    let mut left: Vec<PathBuf> = ["fs/pstore", VARIABLES]
        .into_iter()
        .flat_map(of)
        .map(|file| file.unwrap().file_name().into())
        .collect();
    left.sort();
    left
}

fn erase(manager: &GenericHardwareManager) -> Result<StepOutcome, StepError> {
    let offered = manager.steps(StepKind::Clean, &Default::default());
    let step = offered.into_iter().find(|step| step.step == ERASE_PSTORE).expect("offered");
    assert_eq!(step.priority.as_i64(), Some(0));
    let (node, inventory) = (Value::Null, Default::default());
    let call = StepCall { kind: StepKind::Clean, step, args: Map::new(), node, inventory };
    manager.run(&call, &StepContext::new())
}

const WRITABLE: EfiVariableWriter = |work| {
    work();
    Ok(())
};

#[test]
fn records_are_removed_and_nothing_else() {
    let tree = machine();
    let manager = tree.manager().writing_variables(WRITABLE);
    let removed = json!({"removed": {"pstore": 1, "firmware_variables": 1}});
    assert_eq!(erase(&manager).unwrap(), StepOutcome::Done(removed));
    assert_eq!(left(&tree), [PathBuf::from(OTHER)]);
    let removed = json!({"removed": {"pstore": 0, "firmware_variables": 0}});
    assert_eq!(erase(&manager).unwrap(), StepOutcome::Done(removed));
}

#[test]
fn a_record_that_stays_fails_the_step_and_is_named() {
    let tree = machine();
    let refused =
        tree.manager().writing_variables(|_| Err("the firmware's variables cannot be written: EROFS".into()));
    let error = erase(&refused).unwrap_err().to_string();
    assert!(error.contains(RECORD) && error.contains("cannot be written: EROFS"), "{error}");
    assert_eq!(left(&tree), [OTHER, RECORD].map(PathBuf::from), "what can be removed is");

    // What cannot be unlinked.
    for number in 0..5 {
        fs::create_dir(tree.sys().join(format!("fs/pstore/stubborn-{number}"))).unwrap();
    }
    let error = erase(&tree.manager().writing_variables(WRITABLE)).unwrap_err().to_string();
    assert!(error.contains("stubborn-0, stubborn-1, stubborn-2 and 2 more ("), "{error}");
    let silent: EfiVariableWriter = |_| Ok(());
    fs::write(tree.sys().join(VARIABLES).join(RECORD), "again").unwrap();
    (0..5)
        .for_each(|number| fs::remove_dir(tree.sys().join(format!("fs/pstore/stubborn-{number}"))).unwrap());
    let error = erase(&tree.manager().writing_variables(silent)).unwrap_err().to_string();
    assert!(error.contains("they came back"), "{error}");
}

#[test]
fn the_step_is_offered_where_records_can_be_and_the_machine_is_the_agents() {
    let offers = |manager: GenericHardwareManager| {
        let steps = manager.steps(StepKind::Clean, &Default::default());
        steps.iter().any(|step| step.step == ERASE_PSTORE)
    };
    let tree = machine();
    assert!(offers(tree.manager().writing_variables(WRITABLE)));
    assert!(!offers(tree.manager()), "another system's records");
    assert!(!offers(Tree::new("think-lmi").manager().writing_variables(WRITABLE)), "no place for them");
}
