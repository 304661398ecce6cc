//! The manager over the fake tool: real processes, a controller that is a file.

use crate::rig::Rig;
use hwm_raidtool::{RaidTool, Tool};
use hwm_sdk::protocol::{Artifact, Claim, Level};
use hwm_sdk::{HardwareManager, Host, StepContext, StepError, StepOutcome, Support};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Remembers percents and checkpoints, and cancels at a percent.
#[derive(Debug, Default)]
struct Listener {
    percents: Mutex<Vec<u8>>,
    checkpoint: Mutex<Option<Value>>,
}

impl Host for Listener {
    fn progress(&self, progress: &agent_protocol::progress::Progress) {
        self.percents.lock().unwrap().extend(progress.percent);
    }
    fn log(&self, _: Level, _: &str) {}
    fn checkpoint(&self, data: &Value) {
        *self.checkpoint.lock().unwrap() = Some(data.clone());
    }
    fn read_device(&self, _: &Claim, _: u64, _: u32) -> Result<Vec<u8>, StepError> {
        unreachable!("it reads no device")
    }
    fn fetch(&self, _: &str) -> Result<Artifact, StepError> {
        unreachable!("it fetches nothing")
    }
}

fn target() -> Value {
    json!({"target_raid_config": {"logical_disks": [
        {"raid_level": "1", "size_gb": 50, "is_root_volume": true, "disk_type": "ssd", "volume_name": "system"},
        {"raid_level": "0", "size_gb": "MAX", "disk_type": "hdd"},
    ]}})
}

fn made(name: &str, id: &str, level: &str, size: u64, drives: &[&str], root: bool) -> Value {
    let device = if id == "0" { "/dev/sda" } else { "/dev/sdb" };
    json!({"volume_name": name, "controller": "0", "id": id, "raid_level": level, "size_gb": size, "physical_disks": drives,
           "is_root_volume": root, "root_device_hint": {"name": device}})
}

fn both() -> StepOutcome {
    let system = made("system", "0", "1", 50, &["252:0", "252:1"], true);
    StepOutcome::Done(json!({"logical_disks": [system, made("volume1", "1", "0", 4000, &["252:4"], false)]}))
}

const ADD_SYSTEM: &str = "/c0 add vd type=raid1 size=50GB names=system drives=252:0,252:1";
const ADD_DATA: &str = "/c0 add vd type=raid0 size=all names=volume1 drives=252:4";

#[test]
fn topology_settings_and_firmware_are_reported() {
    let rig = Rig::new();
    rig.run("create_configuration", json!({"create_nonroot_volumes": false}), target(), &StepContext::new())
        .unwrap();
    let patch = serde_json::to_value(rig.manager().inventory(&StepContext::new()).unwrap()).unwrap();
    let drive = |slot: u64, state: &str| {
        json!({"id": format!("252:{slot}"), "controller": "0", "size_bytes": 100_u64 << 30, "state": state, "media": "ssd",
               "model": "PM1643", "serial": format!("D{slot}")})
    };
    let spinning = json!({"id": "252:4", "controller": "0", "size_bytes": 4000_u64 << 30, "state": "ready", "media": "hdd",
                          "model": "PM1643"});
    assert_eq!(
        patch,
        json!({
            "firmware": [{"component": "raid:0", "current_version": "5.200.02"}],
            "bios_settings": [
                {"name": "c0.patrol_read", "value": "auto", "attribute_type": "Enumeration", "allowable_values": ["auto", "off"]},
                {"name": "c0.rebuild_rate", "value": "30", "attribute_type": "String"},
            ],
            "raid": {
                "controllers": [{"id": "0", "model": "ACME 9560", "firmware_version": "5.200.02", "pci_address": "0000:31:00.0"}],
                "physical_disks": [drive(0, "online"), drive(1, "online"), drive(2, "ready"), drive(3, "failed"), spinning],
                "logical_disks": [{"id": "0", "controller": "0", "raid_level": "1", "size_bytes": 50_u64 << 30,
                                   "physical_disks": ["252:0", "252:1"], "state": "optimal", "device": "/dev/sda"}],
            },
        })
    );
}

#[test]
fn volumes_are_made_with_progress_kept_when_asked_again_and_removed() {
    let rig = Rig::new();
    let listener = Arc::new(Listener::default());
    let context = StepContext::with_host(listener.clone(), None);
    assert_eq!(rig.run("create_configuration", json!({}), target(), &context).unwrap(), both());
    let wanted = [ADD_SYSTEM, "/c0/v0 start init full", ADD_DATA, "/c0/v1 start init full"];
    assert_eq!(rig.commands(), wanted);
    let percents = listener.percents.lock().unwrap().clone();
    assert!(percents.is_sorted() && percents.contains(&25) && percents.last() == Some(&100), "{percents:?}");

    for args in [json!({}), json!({"delete_existing": true})] {
        assert_eq!(rig.run("create_configuration", args, target(), &StepContext::new()).unwrap(), both());
        assert!(rig.commands().is_empty(), "what is there was touched");
    }
    let deleted = |count: u64| StepOutcome::Done(json!({ "deleted": count }));
    for count in [2, 0] {
        assert_eq!(
            rig.run("delete_configuration", json!({}), json!({}), &StepContext::new()).unwrap(),
            deleted(count)
        );
    }
    assert_eq!(rig.commands(), ["/c0/v0 del force", "/c0/v1 del force"]);
}

#[test]
fn another_configuration_replaces_the_first_only_if_requested_and_possible() {
    let rig = Rig::new();
    rig.run("create_configuration", json!({}), target(), &StepContext::new()).unwrap();
    rig.commands();
    let apply = |level: &str, delete_existing: bool| {
        let disks = json!({"logical_disks": [{"raid_level": level, "size_gb": "MAX", "disk_type": "ssd"}]});
        let args = json!({"raid_config": disks, "delete_existing": delete_existing});
        rig.run("apply_configuration", args, json!({}), &StepContext::new())
    };
    // Three drives could be had, but only if what is there is deleted; four are not there at all.
    for (level, delete_existing, expected) in
        [("5", false, "needs 3 ssd drives that are ready"), ("6", true, "needs 4 ssd drives")]
    {
        let error = apply(level, delete_existing).unwrap_err();
        assert!(matches!(&error, StepError::Argument { name, .. } if name == "raid_config"), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(rig.commands().is_empty(), "something was touched");
    }
    let volume = made("volume0", "0", "5", 200, &["252:0", "252:1", "252:2"], false);
    assert_eq!(apply("5", true).unwrap(), StepOutcome::Done(json!({"logical_disks": [volume]})));
    assert_eq!(rig.commands()[..2], ["/c0/v0 del force", "/c0/v1 del force"]);
}

#[test]
fn a_step_that_is_stopped_leaves_no_half_volume_and_goes_on_where_it_was() {
    let rig = Rig::new();
    rig.run(
        "create_configuration",
        json!({}),
        json!({"target_raid_config": {"logical_disks": [
        {"raid_level": "0", "size_gb": "MAX", "disk_type": "hdd", "volume_name": "old"}]}}),
        &StepContext::new(),
    )
    .unwrap();
    rig.commands();
    let listener = Arc::new(Listener::default());
    let context = StepContext::with_host(listener.clone(), None);
    let stopper = context.clone();
    let watch = std::thread::spawn(move || {
        // The second volume is being initialised.
        while stopper.progress().percent.unwrap_or_default() < 60 {
            std::thread::yield_now();
        }
        stopper.cancel();
    });
    let args = json!({"delete_existing": true});
    let stopped = rig.run("create_configuration", args.clone(), target(), &context).unwrap_err();
    watch.join().unwrap();
    let StepError::Cancelled { report } = stopped else { panic!("{stopped}") };
    assert_eq!(report["logical_disks"], json!([made("system", "0", "1", 50, &["252:0", "252:1"], true)]));
    assert_eq!(rig.commands()[5..], ["/c0/v1 stop init", "/c0/v1 del force"]);

    // What was saved keeps it from deleting what it has made.
    let saved = listener.checkpoint.lock().unwrap().clone();
    let again = StepContext::with_host(listener.clone(), saved);
    assert_eq!(rig.run("create_configuration", args, target(), &again).unwrap(), both());
    assert_eq!(rig.commands(), [ADD_DATA, "/c0/v1 start init full"]);
}

#[test]
fn a_tool_that_fails_hangs_forgets_or_babbles_fails_the_step_in_its_words() {
    for (command, fault, expected) in [
        ("/c0 add vd type=raid0", json!("drive 252:4 is locked"), "drives=252:4: drive 252:4 is locked"),
        (
            "/c0 add vd type=raid0",
            json!({"forget": true}),
            "volume volume1 was made, and is not there as it was asked for",
        ),
        ("/c0/v1 start", json!({"print": "Segmentation fault"}), "its answer is no JSON"),
        ("/c0/v1 show init", json!({"print": "{}"}), "its answer has no Controllers"),
    ] {
        let rig = Rig::new();
        rig.fault(command, fault);
        match rig.run("create_configuration", json!({}), target(), &StepContext::new()) {
            Err(StepError::Failed { reason, report }) => {
                assert!(reason.contains(expected), "{reason}");
                assert_eq!(
                    report["logical_disks"].as_array().map(Vec::len),
                    Some(1),
                    "what was made is reported: {report}"
                );
            }
            other => panic!("{command}: {other:?}"),
        }
    }
    let rig = Rig::new();
    rig.fault("/call show all", json!({"hang": true}));
    let hung = RaidTool::new(Tool::new(rig.tool()).with_deadline(Duration::from_millis(500)));
    let error = hung.init(&StepContext::new()).unwrap_err().to_string();
    assert_eq!(error, "raidtool /call show all: it did not end within 0.5 s; killed");
    let gone = RaidTool::new(Tool::new("/nowhere/raidtool"));
    assert_eq!(gone.evaluate(&Default::default()), Support::None);
    assert_eq!(rig.manager().evaluate(&Default::default()), Support::Mainline);
}

#[test]
fn settings_of_controllers_are_judged_written_and_read_back() {
    let rig = Rig::new();
    let apply = |settings: Value| {
        rig.run("apply_controller_settings", json!({ "settings": settings }), json!({}), &StepContext::new())
    };
    let patrol = |value: &str| json!({"name": "c0.patrol_read", "value": value});
    let rate = json!({"name": "c0.rebuild_rate", "value": "30"});
    let outcome = apply(json!([patrol("off"), rate])).unwrap();
    assert_eq!(outcome, StepOutcome::Done(json!({"changed": ["c0.patrol_read"]})));
    assert_eq!(rig.commands(), ["/c0 set patrol_read=off"]);
    for (wrong, expected) in [
        (patrol("s3cret"), "nothing was written: c0.patrol_read must be one of: auto, off"),
        (json!({"name": "c9.x", "value": "1"}), "c9.x is no setting of any controller"),
    ] {
        let error =
            apply(json!([{"name": "c0.rebuild_rate", "value": "50"}, wrong])).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        assert!(rig.commands().is_empty());
    }
    rig.fault("/c0 set", json!({"forget": true}));
    let error = apply(json!([patrol("auto")])).unwrap_err().to_string();
    assert!(
        error.contains("c0.patrol_read was written without an error, and reads as something else"),
        "{error}"
    );
}
