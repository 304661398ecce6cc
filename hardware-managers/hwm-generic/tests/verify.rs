//! The verify steps on a machine that is a directory.

use agent_protocol::inventory::{Cpu, Inventory, Memory};
use block::{Filter, Roots};
use hwm_generic::GenericHardwareManager;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

const GIB: u64 = 1 << 30;

/// sysfs, procfs and `/dev` of a machine with a BIOS, an NVMe disk and two SCSI disks of one model.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.put("proc/self/mountinfo", "");
        for (name, value) in [("version", "2.10.3"), ("vendor", "Anneal Works"), ("date", "03/15/2023")] {
            machine.put(&format!("sys/class/dmi/id/bios_{name}"), value);
        }
        machine.disk("nvme/nvme0", "nvme0n1", "259:0", 100);
        machine.put("sys/devices/nvme/nvme0/model", "FAST 100          ");
        machine.put("sys/devices/nvme/nvme0/firmware_rev", "GDC5602Q");
        for (name, dev, rev) in [("sda", "8:0", "A1"), ("sdb", "8:16", "A2")] {
            machine.disk(&format!("host0/{name}"), name, dev, 20);
            machine.put(&format!("sys/devices/host0/{name}/model"), "SLOW 20");
            machine.put(&format!("sys/devices/host0/{name}/rev"), rev);
        }
        machine
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{content}\n")).unwrap();
    }

    fn disk(&self, device: &str, name: &str, dev: &str, gib: u64) {
        let dir = format!("sys/devices/{device}/block/{name}");
        let size = (gib * GIB / 512).to_string();
        for (attribute, value) in [
            ("dev", dev),
            ("size", &size),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "512"),
        ] {
            self.put(&format!("{dir}/{attribute}"), value);
        }
        let at = |path: &str| self.0.path().join(path);
        symlink(at(&format!("sys/devices/{device}")), at(&dir).join("device")).unwrap();
        fs::create_dir_all(at("sys/block")).unwrap();
        symlink(at(&dir), at("sys/block").join(name)).unwrap();
    }

    fn run(
        &self,
        kind: StepKind,
        step: &str,
        args: Value,
        properties: Value,
    ) -> Result<StepOutcome, StepError> {
        let at = |name| self.0.path().join(name);
        let roots = Roots { sys: at("sys"), proc: at("proc"), dev: at("dev") };
        let manager = GenericHardwareManager::with_roots(roots, Filter::All);
        let inventory = Inventory {
            cpu: Cpu { count: 8, architecture: "x86_64".into(), ..Cpu::default() },
            memory: Memory { total: 16 << 30, physical_mb: Some(16384) },
            ..Inventory::default()
        };
        let offered = manager.steps(kind, &inventory).into_iter().find(|offered| offered.step == step);
        let call = StepCall {
            kind,
            step: offered.expect("offered"),
            args: args.as_object().cloned().unwrap_or_default(),
            node: json!({ "properties": properties }),
            inventory: Arc::new(inventory),
        };
        manager.run(&call, &StepContext::new())
    }
}

fn failure(result: Result<StepOutcome, StepError>) -> (String, Value) {
    match result {
        Err(StepError::Failed { reason, report }) => (reason, report),
        other => panic!("{other:?} is not a failure"),
    }
}

#[test]
fn properties_are_verified_against_the_hardware_of_this_moment() {
    let machine = Machine::new();
    let properties = json!({"cpus": 8, "cpu_arch": "x86_64", "memory_mb": 16384, "local_gb": 19});
    for kind in [StepKind::Clean, StepKind::Service] {
        // Twice: it may be started again.
        for _ in 0..2 {
            let result = machine.run(kind, "verify_properties", Value::Null, properties.clone());
            let Ok(StepOutcome::Done(report)) = result else { panic!("{result:?}") };
            assert_eq!(report["compared"].as_array().map(Vec::len), Some(4));
        }
    }
    let wrong = json!({"cpus": 4, "cpu_arch": "x86_64", "memory_mb": 32768, "local_gb": 500});
    let (reason, report) = failure(machine.run(StepKind::Clean, "verify_properties", Value::Null, wrong));
    let dev = machine.0.path().join("dev");
    let disks = ["nvme0n1 of 100", "sda of 20", "sdb of 20"].map(|disk| dev.join(disk).display().to_string());
    assert_eq!(
        reason,
        format!(
            "the node differs from node.properties: cpus: expected 4, found 8; memory_mb: expected 32768, found \
             16384 fitted; local_gb: expected 500, found {}",
            disks.join(", ")
        )
    );
    assert_eq!(report["compared"][1]["agrees"], true);
}

#[test]
fn firmware_is_verified_as_sysfs_reports_it() {
    let machine = Machine::new();
    let good = json!({"bios_version": ">=2.9", "bios_vendor": "Anneal Works", "bios_date": "03/15/2023",
                      "disk:FAST 100": "GDC5602Q", "disk:SLOW 20": ">=A1"});
    let by_argument = json!({ "baseline": good });
    for (args, properties) in
        [(by_argument, json!({})), (Value::Null, json!({ "firmware_baseline": good.clone() }))]
    {
        let result = machine.run(StepKind::Service, "verify_firmware", args, properties);
        let Ok(StepOutcome::Done(report)) = result else { panic!("{result:?}") };
        assert_eq!(report["compared"].as_array().map(Vec::len), Some(6));
    }
    let bad = json!({"baseline": {"bios_version": "2.11", "disk:SLOW 20": "A2", "disk:GONE": "1"}});
    let (reason, _) = failure(machine.run(StepKind::Clean, "verify_firmware", bad, Value::Null));
    let sda = machine.0.path().join("dev/sda");
    assert_eq!(
        reason,
        format!(
            "the node differs from the firmware baseline: bios_version: expected 2.11, found 2.10.3; disk:GONE: expected \
             1, found no such component; disk:SLOW 20 ({}): expected A2, found A1",
            sda.display()
        )
    );
}

#[test]
fn without_anything_to_verify_the_steps_fail() {
    let machine = Machine::new();
    for (step, named) in
        [("verify_firmware", "no firmware baseline"), ("verify_properties", "nothing to verify")]
    {
        let error =
            machine.run(StepKind::Clean, step, Value::Null, json!({})).expect_err("refused").to_string();
        assert!(error.contains(named), "{error}");
    }
    // A machine that cannot be looked at is not a machine without disks.
    fs::remove_file(machine.0.path().join("proc/self/mountinfo")).unwrap();
    let (reason, _) =
        failure(machine.run(StepKind::Clean, "verify_properties", Value::Null, json!({"cpus": 8})));
    assert!(reason.contains("nothing was verified"), "{reason}");
}
