//! Clearing a TPM that a user has left: Debian's swtpm, in a machine that is a directory.

use crate::tree::Tree;
use hwm_generic::CLEAR_TPM;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Map, Value, json};
use software_tpm::SoftwareTpm;
use std::fs;
use std::os::unix::fs::symlink;

/// A machine with this TPM.
fn machine(tpm: &SoftwareTpm) -> Tree {
    let tree = Tree::new("dell-sysman");
    let dev = tree.sys().with_file_name("dev");
    fs::create_dir_all(&dev).unwrap();
    symlink(tpm.socket(), dev.join("tpmrm0")).unwrap();
    tree
}

fn clear(tree: &Tree) -> Result<StepOutcome, StepError> {
    let manager = tree.manager();
    let offered = manager.steps(StepKind::Clean, &Default::default());
    let step = offered.into_iter().find(|step| step.step == CLEAR_TPM).expect("offered");
    assert_eq!(step.priority.as_i64(), Some(0));
    let (node, inventory) = (Value::Null, Default::default());
    let call = StepCall { kind: StepKind::Clean, step, args: Map::new(), node, inventory };
    manager.run(&call, &StepContext::new())
}

/// `TPM2_HierarchyChangeAuth`: a user sets a password.
fn set_password(tpm: &SoftwareTpm, hierarchy: u8) {
    let mut command = vec![0x80, 0x02, 0, 0, 0, 33, 0, 0, 0x01, 0x29, 0x40, 0, 0, hierarchy];
    command.extend([0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0, 0, 4]);
    command.extend(b"mine");
    tpm.command(&command);
}

/// Of the endorsement hierarchy, of the lockout.
const ENDORSEMENT: u8 = 0x0b;
const LOCKOUT: u8 = 0x0a;

fn has_keys(tpm: &SoftwareTpm) -> bool {
    tpm::Prover::new(tpm::Tpm::new(tpm.connect()), &[0; 32]).is_ok()
}

#[test]
fn what_a_user_has_left_in_the_tpm_is_gone() {
    let tpm = SoftwareTpm::new();
    set_password(&tpm, ENDORSEMENT);
    assert!(!has_keys(&tpm));
    assert_eq!(clear(&machine(&tpm)).expect("cleared"), StepOutcome::Done(json!({"cleared": "TPM2_Clear"})));
    assert!(has_keys(&tpm));
}

#[test]
fn a_tpm_with_a_lockout_password_is_left_to_the_firmware_and_the_step_fails() {
    let tpm = SoftwareTpm::new();
    set_password(&tpm, ENDORSEMENT);
    set_password(&tpm, LOCKOUT);
    let tree = machine(&tpm);
    let reason = |tree: &Tree| clear(tree).expect_err("not cleared").to_string();
    let without = reason(&tree);
    assert!(without.contains("lockout password") && without.contains("setup of the firmware"), "{without}");
    let interface = tree.sys().join("class/tpm/tpm0/ppi");
    fs::create_dir_all(&interface).unwrap();
    fs::write(interface.join("request"), "").unwrap();
    let asked = reason(&tree);
    assert!(asked.contains("asked to clear it at the next boot"), "{asked}");
    assert_eq!(fs::read_to_string(interface.join("request")).unwrap(), "5");
    assert!(!has_keys(&tpm));
}

#[test]
fn without_a_tpm_the_step_is_not_offered() {
    let offered = Tree::new("dell-sysman").manager().steps(StepKind::Clean, &Default::default());
    assert!(offered.iter().all(|step| step.step != CLEAR_TPM));
}
