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
    clear_in(tree, &StepContext::new())
}

fn clear_in(tree: &Tree, context: &StepContext) -> Result<StepOutcome, StepError> {
    let manager = tree.manager();
    let offered = manager.steps(StepKind::Clean, &Default::default());
    let step = offered.into_iter().find(|step| step.step == CLEAR_TPM).expect("offered");
    assert_eq!(step.priority.as_i64(), Some(0));
    let (node, inventory) = (Value::Null, Default::default());
    let call = StepCall { kind: StepKind::Clean, step, args: Map::new(), node, inventory };
    manager.run(&call, context)
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

/// A TPM whose user has set both passwords, in a machine whose firmware says this of clearing.
fn owned(operations: &str) -> (SoftwareTpm, Tree) {
    let tpm = SoftwareTpm::new();
    set_password(&tpm, ENDORSEMENT);
    set_password(&tpm, LOCKOUT);
    let tree = machine(&tpm);
    fs::create_dir_all(tree.sys().join(PRESENCE)).unwrap();
    fs::write(tree.sys().join(PRESENCE).join("request"), "").unwrap();
    fs::write(tree.sys().join(PRESENCE).join("tcg_operations"), operations).unwrap();
    (tpm, tree)
}

/// The physical presence interface.
const PRESENCE: &str = "class/tpm/tpm0/ppi";

fn asked(tree: &Tree) -> String {
    fs::read_to_string(tree.sys().join(PRESENCE).join("request")).unwrap()
}

#[test]
fn a_tpm_with_a_lockout_password_is_cleared_by_the_firmware_at_a_reboot() {
    let (tpm, tree) = owned("4 4: User not required\n5 4: User not required\n6 0: Not implemented\n");
    let Err(StepError::NeedsReboot { reason, checkpoint }) = clear(&tree) else { panic!("no reboot") };
    assert!(reason.contains("lockout password") && reason.contains("asked to clear it"), "{reason}");
    assert_eq!((checkpoint.clone(), asked(&tree).as_str()), (json!({"asked": "5"}), "5"));
    assert!(!has_keys(&tpm));

    // It did not, and is not asked again.
    fs::write(tree.sys().join(PRESENCE).join("request"), "").unwrap();
    fs::write(tree.sys().join(PRESENCE).join("response"), "5 4294967280: User Abort\n").unwrap();
    let after = StepContext::new().resuming(Some(checkpoint.clone()));
    let error = clear_in(&tree, &after).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StepError::Failed { .. }) && text.contains("5 4294967280: User Abort"), "{text}");
    assert!(text.contains("setup of the firmware") && asked(&tree).is_empty(), "{text}");

    // It did.
    let cleared = SoftwareTpm::new();
    let done = clear_in(&machine(&cleared), &after).expect("cleared");
    assert_eq!(done, StepOutcome::Done(json!({"cleared": "TPM2_Clear"})));
}

#[test]
fn a_firmware_that_wants_a_key_pressed_or_refuses_gets_no_reboot() {
    let failed = |tree: &Tree| match clear(tree) {
        Err(StepError::Failed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let (_tpm, tree) = owned("5 3: User required\n");
    let reason = failed(&tree);
    assert!(reason.contains("wants a key pressed") && asked(&tree) == "5", "{reason}");
    for says in [
        "5 2: Blocked for OS by system firmware\n",
        "5 1: System firmware only\n",
        "14 4: User not required\n",
        "",
    ] {
        let (_tpm, tree) = owned(says);
        let reason = failed(&tree);
        assert!(reason.contains("setup of the firmware") && asked(&tree).is_empty(), "{reason}");
    }
    let (_tpm, tree) = owned("5 4: User not required\n");
    fs::remove_file(tree.sys().join(PRESENCE).join("request")).unwrap();
    let reason = failed(&tree);
    assert!(reason.contains("ppi/request") && reason.contains("setup of the firmware"), "{reason}");
}

#[test]
fn without_a_tpm_the_step_is_not_offered() {
    let offered = Tree::new("dell-sysman").manager().steps(StepKind::Clean, &Default::default());
    assert!(offered.iter().all(|step| step.step != CLEAR_TPM));
}
