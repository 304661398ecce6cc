//! A storage controller without a driver, or without its firmware, stops every step that erases disks, with directories in the place of sysfs.

use crate::step::{call, done, failed};
use crate::tree::Tree;
use hwm_sdk::{HardwareManager, StepContext, StepError, StepOutcome};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const ADDRESS: &str = "0000:31:00.0";
const IDS: &str = "1000:10e2";

/// A server whose RAID controller has no driver. It has no disks that the kernel shows.
fn server_without_driver() -> Tree {
    let tree = Tree::new("server");
    fs::remove_file(tree.sys().join("bus/pci/devices").join(ADDRESS).join("driver")).unwrap();
    tree
}

/// Run an erase step on all disks of the machine, with these controllers ignored.
fn erase(tree: &Tree, step: &str, ignored: &Value) -> Result<StepOutcome, StepError> {
    let manager = tree.manager_of_all();
    let mut call = call(&manager, step, json!({}));
    call.node["properties"] = json!({"ignored_controllers": ignored});
    manager.run(&call, &StepContext::new())
}

#[test]
fn a_storage_controller_without_a_driver_fails_each_erase_step_and_its_plan() {
    let tree = server_without_driver();
    for step in ["erase_devices", "erase_devices_express", "erase_devices_metadata"] {
        let (reason, report) = failed(erase(&tree, step, &Value::Null));
        assert!(reason.contains("nothing was written to any disk"), "{reason}");
        assert!(
            reason.contains(ADDRESS) && reason.contains(IDS) && reason.contains("RAID controller"),
            "{reason}"
        );
        assert!(reason.contains("properties.ignored_controllers"), "{reason}");
        assert_eq!(report.disks, []);
        let manager = tree.manager_of_all();
        let plan = manager.plan(&call(&manager, step, json!({}))).unwrap_err().to_string();
        assert!(plan.contains(ADDRESS), "{plan}");
        done(erase(&Tree::new("server"), step, &Value::Null));
    }
}

#[test]
fn an_ignored_controller_is_in_the_report_whatever_its_end() {
    let tree = server_without_driver();
    let entry = json!({"address": ADDRESS, "ids": IDS, "reason": "no cables"});
    let report = done(erase(&tree, "erase_devices", &json!([entry])));
    assert_eq!(json!(report.ignored_controllers), json!([entry]));
    let other = json!({"address": ADDRESS, "ids": "1000:0016", "reason": "no cables"});
    let (reason, _) = failed(erase(&tree, "erase_devices", &json!([other])));
    assert!(reason.contains(IDS), "{reason}");
    let error = erase(&tree, "erase_devices", &json!([{"address": ADDRESS}])).unwrap_err().to_string();
    assert!(error.contains("properties.ignored_controllers"), "{error}");
    let with_driver = done(erase(&Tree::new("server"), "erase_devices", &json!([entry])));
    assert_eq!(with_driver.ignored_controllers, []);
}

#[test]
fn a_storage_controller_without_its_firmware_fails_each_erase_step_and_is_in_the_inventory() {
    let tree = Tree::new("server");
    let asked = format!(
        "4,9,9,-;megaraid_sas {ADDRESS}: Direct firmware load for lsi/mr.fw failed with error -2\n \
         SUBSYSTEM=pci\n DEVICE=+pci:{ADDRESS}\n"
    );
    tree.write_kernel_log(&asked);
    for step in ["erase_devices", "erase_devices_express", "erase_devices_metadata"] {
        let (reason, report) = failed(erase(&tree, step, &Value::Null));
        for word in ["nothing was written to any disk", ADDRESS, IDS, "lacks its firmware", "lsi/mr.fw"] {
            assert!(reason.contains(word), "{word}: {reason}");
        }
        assert_eq!(report.disks, []);
    }
    let patch = tree.manager_of_all().inventory(&StepContext::new()).unwrap();
    let expected = json!([{"address": ADDRESS, "driver": "megaraid_sas", "firmware": ["lsi/mr.fw"]}]);
    assert_eq!(patch.extra["missing_firmware"], expected);
    fs::create_dir(tree.sys().join("bus/pci/devices").join(ADDRESS).join("host0")).unwrap();
    done(erase(&tree, "erase_devices", &Value::Null));
}

#[test]
fn a_controller_of_which_nothing_was_made_fails_each_erase_step_where_the_kernels_log_is_not_whole() {
    let tree = Tree::new("server");
    let fails = |why: &str| {
        for step in ["erase_devices", "erase_devices_express", "erase_devices_metadata"] {
            let (reason, report) = failed(erase(&tree, step, &Value::Null));
            for word in
                ["nothing was written to any disk", ADDRESS, "cannot know whether it lacks its firmware", why]
            {
                assert!(reason.contains(word), "{word}: {reason}");
            }
            assert_eq!(report.disks, []);
        }
    };
    done(erase(&tree, "erase_devices", &Value::Null));
    fs::write(tree.kernel_log(), "6,5000,9,-;eth0: link up\n").unwrap();
    fails("has lost its oldest messages");
    fs::remove_file(tree.kernel_log()).unwrap();
    fails("dev/kmsg cannot be read");
    // A host further below, as a SATA controller has: the log is not needed.
    let host = tree.sys().join("bus/pci/devices").join(ADDRESS).join("ata1/host0/scsi_host/host0");
    fs::create_dir_all(&host).unwrap();
    fs::create_dir_all(tree.sys().join("class/scsi_host")).unwrap();
    symlink(host, tree.sys().join("class/scsi_host/host0")).unwrap();
    done(erase(&tree, "erase_devices", &Value::Null));
}
