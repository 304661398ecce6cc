//! BIOS settings, on machines that are directories.

use crate::tree::Tree;
use hwm_generic::APPLY_BIOS_SETTINGS;
use hwm_sdk::protocol::InventoryPatch;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const DELL: &str = "class/firmware-attributes/dell-wmi-sysman/attributes";

fn inventory(tree: &Tree) -> InventoryPatch {
    tree.manager().inventory(&StepContext::new()).unwrap()
}

fn apply(tree: &Tree, settings: Value) -> Result<StepOutcome, StepError> {
    let manager = tree.manager();
    let offered = manager.steps(StepKind::Clean, &Default::default());
    let step = offered.into_iter().find(|step| step.step == APPLY_BIOS_SETTINGS).expect("offered");
    let args = json!({ "settings": settings });
    let args = hwm_sdk::checked_arguments(Some(&args), step.argsinfo.as_ref())?;
    let call =
        StepCall { kind: StepKind::Clean, step, args, node: Value::Null, inventory: Default::default() };
    manager.run(&call, &StepContext::new())
}

fn value(tree: &Tree, name: &str) -> String {
    fs::read_to_string(tree.sys().join(DELL).join(name).join("current_value")).unwrap().trim().to_owned()
}

/// Puts another file in the place of a setting's value.
fn replace(tree: &Tree, name: &str, with: &str) {
    let file = tree.sys().join(DELL).join(name).join("current_value");
    fs::remove_file(&file).unwrap();
    symlink(with, file).unwrap();
}

#[test]
fn settings_are_reported_in_the_form_of_ironics_bios_api_without_passwords() {
    let reported = inventory(&Tree::new("dell-sysman"));
    assert_eq!(
        serde_json::to_value(&reported).unwrap(),
        json!({
            "bios_settings": [
                {"name": "AssetTag", "value": "", "attribute_type": "String", "min_length": 0, "max_length": 64},
                {"name": "AutoOnHr", "value": "0", "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 23},
                {"name": "BootMode", "value": "Uefi", "attribute_type": "Enumeration", "allowable_values": ["Uefi", "Bios"]},
                {"name": "CpuCore", "value": "CoresAll", "attribute_type": "Enumeration",
                 "allowable_values": ["CoresAll", "Cores1", "Cores2"]},
                {"name": "SecureBoot", "value": "Enabled", "attribute_type": "Enumeration",
                 "allowable_values": ["Disabled", "Enabled"], "read_only": true},
                {"name": "SysDefaultPassword", "value": null, "attribute_type": "Password"},
            ],
            "firmware": [{"component": "bios", "current_version": "2.10.3"},
                         {"component": "ec", "current_version": "1.9"}],
        })
    );
}

#[test]
fn settings_are_written_read_back_and_only_those_that_differ() {
    let tree = Tree::new("dell-sysman");
    let settings = json!([{"name": "BootMode", "value": "Bios"}, {"name": "AutoOnHr", "value": 7},
                          {"name": "AssetTag", "value": "rack 4"}, {"name": "SecureBoot", "value": "Enabled"}]);
    let report = |outcomes: [&str; 4]| {
        let names = ["BootMode", "AutoOnHr", "AssetTag", "SecureBoot"];
        let entry = |(name, outcome)| json!({"name": name, "outcome": outcome});
        json!({"settings": names.into_iter().zip(outcomes).map(entry).collect::<Vec<_>>()})
    };
    let changed = report(["changed", "changed", "changed", "unchanged"]);
    assert_eq!(apply(&tree, settings.clone()).unwrap(), StepOutcome::Done(changed));
    assert_eq!(["BootMode", "AutoOnHr", "AssetTag"].map(|name| value(&tree, name)), ["Bios", "7", "rack 4"]);

    // Again, as after an interruption: nothing is left to do, but the reboot that the first time asked for.
    let pending = tree.sys().join(DELL).join("pending_reboot");
    fs::remove_file(&pending).unwrap();
    fs::write(&pending, "1\n").unwrap();
    let unchanged = report(["unchanged"; 4]);
    assert_eq!(apply(&tree, settings).unwrap(), StepOutcome::RebootRequested(unchanged));

    // A firmware that reports the old value until it has booted.
    replace(&tree, "CpuCore", "/dev/null");
    let outcome = apply(&tree, json!([{"name": "CpuCore", "value": "Cores2"}])).unwrap();
    let waits = json!({"settings": [{"name": "CpuCore", "outcome": "pending"}]});
    assert_eq!(outcome, StepOutcome::RebootRequested(waits));
}

#[test]
fn every_error_is_named_before_anything_is_written_and_no_value_is_reported() {
    let tree = Tree::new("dell-sysman");
    let refused = |settings| match apply(&tree, settings) {
        Err(StepError::Argument { name, problem }) => (name, problem),
        other => panic!("{other:?}"),
    };
    let (name, problem) = refused(json!([
        {"name": "BootMode", "value": "Bios"},
        {"name": "CpuCore", "value": "s3cret"}, {"name": "AutoOnHr", "value": 24},
        {"name": "SecureBoot", "value": "Disabled"}, {"name": "SysDefaultPassword", "value": "s3cret"},
        {"name": "Gone", "value": true}, {"name": "AssetTag", "value": "x".repeat(65)},
        {"name": "BootMode", "value": "s3cret"},
    ]));
    assert_eq!(name, "settings");
    assert_eq!(
        problem,
        "nothing was written: CpuCore must be one of: CoresAll, Cores1, Cores2; AutoOnHr must be at most 23; \
         SecureBoot cannot be changed from here: the firmware offers it read-only; SysDefaultPassword is a \
         password, and passwords are not set from here; Gone is no setting of this machine's firmware; AssetTag must \
         have at most 64 characters; BootMode is named more than once"
    );
    assert_eq!(value(&tree, "BootMode"), "Uefi", "something was written");

    let tree = Tree::new("think-lmi");
    let locked = json!([{"name": "WakeOnLAN", "value": "Disable"}]);
    let error = apply(&tree, locked).unwrap_err().to_string();
    assert!(error.contains("WakeOnLAN is protected by the BIOS password Admin; remove it"), "{error}");
    // What is so already needs no password.
    assert!(apply(&tree, json!([{"name": "WakeOnLAN", "value": "Primary"}])).is_ok());
}

#[test]
fn a_firmware_that_refuses_or_forgets_a_value_fails_the_step_with_what_was_done() {
    // Both are files of the kernel: one takes no such text, the other keeps nothing.
    for (file, expected) in
        [("/proc/self/oom_score_adj", "refuses it"), ("/dev/null", "reads as something else")]
    {
        let tree = Tree::new("dell-sysman");
        replace(&tree, "CpuCore", file);
        let settings = json!([{"name": "BootMode", "value": "Bios"}, {"name": "CpuCore", "value": "Cores2"}]);
        match apply(&tree, settings) {
            Err(StepError::Failed { reason, report }) => {
                assert!(reason.contains("BIOS setting CpuCore") && reason.contains(expected), "{reason}");
                assert_eq!(report, json!({"settings": [{"name": "BootMode", "outcome": "changed"}]}));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn where_the_kernel_offers_no_settings_the_step_is_not_offered() {
    let tree = Tree::new("virtual-machine");
    for kind in StepKind::ALL {
        let steps = tree.manager().steps(kind, &Default::default());
        assert!(steps.iter().all(|step| step.step != APPLY_BIOS_SETTINGS), "{kind:?}");
    }
    assert_eq!(inventory(&tree).bios_settings, []);
}

#[test]
fn firmware_variables_report_secure_boot_and_the_boot_order() {
    let efi = &inventory(&Tree::new("server")).extra["efi"];
    let entry =
        |id: &str, description: &str, active| json!({"id": id, "description": description, "active": active});
    assert_eq!(
        *efi,
        json!({
            "secure_boot": true, "setup_mode": false, "boot_current": "0003", "boot_next": "000A",
            "boot_order": [entry("0003", "UEFI PXEv4 (MAC:525400123456)", true), entry("000A", "Größe ubuntu", false),
                           entry("0001", "Windows Boot Manager", true), entry("002F", "", false)],
        })
    );
    assert!(!inventory(&Tree::new("virtual-machine")).extra.contains_key("efi"));
}

#[test]
fn the_recorder_writes_the_trees_as_they_are() {
    for name in ["dell-sysman", "think-lmi", "server", "virtual-machine"] {
        let tree = Tree::new(name);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trees/record.sh");
        let output = Command::new("sh").arg(script).arg(tree.sys()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let wanted = sorted(&tree.recorded(name));
        // A password's value is what the recorder leaves out.
        let wanted: Vec<_> =
            wanted.into_iter().filter(|line| !line.contains("DefaultPassword/current")).collect();
        assert_eq!(sorted(&String::from_utf8(output.stdout).unwrap()), wanted, "{name}");
    }
}
