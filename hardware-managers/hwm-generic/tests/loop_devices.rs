//! The steps on real block devices: loop devices that each test makes for itself. Needs root, losetup and sgdisk.

use crate::common::{Loop, SmallRoom, lvm_label, pattern, run, survivors};
use crate::step::{call, done, failed, manager, report};
use agent_protocol::inventory::Inventory;
use agent_protocol::progress::Phase;
use agent_protocol::record::{DiskRecord, EraseReport, Outcome};
use block::Filter;
use hwm_generic::GenericHardwareManager;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Value, json};

fn perform(disks: &[&Loop], step: &str, info: Value) -> (Result<StepOutcome, StepError>, StepContext) {
    let (manager, context) = (manager(disks), StepContext::new());
    let call = call(&manager, step, info);
    (manager.run(&call, &context), context)
}

/// The record of a disk.
fn of(report: &EraseReport, disk: &Loop) -> DiskRecord {
    report.disks.iter().find(|record| record.device == disk.node()).unwrap().clone()
}

/// A disk with the label of a physical volume, and data behind it.
fn labelled() -> Loop {
    let mut content = vec![0; 16 << 20];
    content[512..1024].copy_from_slice(&lvm_label());
    content[8 << 20..(8 << 20) + 512].fill(7);
    Loop::new(&content)
}

#[test]
fn all_disks_are_erased_at_once_and_each_has_its_record() {
    let before = [pattern(24 << 20), pattern(8 << 20), pattern((4 << 20) + 512)];
    let disks: Vec<Loop> = before.iter().map(|content| Loop::new(content)).collect();
    let disks: Vec<&Loop> = disks.iter().collect();
    let (result, context) = perform(&disks, "erase_devices", json!({"disk_erasure_concurrency": 2}));
    let report = done(result);
    assert_eq!(report.disks.len(), 3);
    for (disk, before) in disks.iter().zip(&before) {
        let record = of(&report, disk);
        assert_eq!((record.outcome, &record.reason), (Outcome::Erased, &None));
        assert_eq!(record.bytes_erased, before.len() as u64);
        assert!(record.verification.as_ref().unwrap().passed);
        assert!(record.finished_at > record.started_at);
        let after = disk.outside();
        assert_eq!(survivors(before, &after), 0);
        assert!(after.iter().all(|&byte| byte == 0));
    }
    let progress = context.progress();
    assert!(progress.disks.len() == 3 && progress.disks.iter().all(|disk| disk.phase == Phase::Done));
}

#[test]
fn metadata_is_erased_and_said_so() {
    let disk = labelled();
    let listed = manager(&[&disk]).disks().unwrap().remove(0);
    assert_eq!(listed.anneal["signatures"][0]["type"], "LVM2_member");
    let record = done(perform(&[&disk], "erase_devices_metadata", json!({})).0).disks.remove(0);
    assert_eq!(record.outcome, Outcome::MetadataErased);
    assert_eq!(record.method.as_deref(), Some("erase-metadata"));
    assert_eq!(record.verification.unwrap().kind, "signatures");
    assert_eq!(disk.outside()[8 << 20..(8 << 20) + 512], [7; 512]);
    assert_eq!(manager(&[&disk]).disks().unwrap()[0].anneal["signatures"], json!([]));
}

#[test]
fn one_refused_disk_stops_the_step_before_any_other_is_written() {
    for step in ["erase_devices", "erase_devices_metadata"] {
        let before = pattern(8 << 20);
        let writable = Loop::new(&before);
        let read_only = Loop::with(&before, &["--read-only"]);
        let (result, _) = perform(&[&writable, &read_only], step, json!({}));
        let (reason, report) = failed(result);
        assert!(reason.starts_with("nothing was written to any disk: "), "{reason}");
        assert!(reason.contains(read_only.node()) && reason.contains("it is read-only"), "{reason}");
        assert!(!reason.contains(&format!("{} ", writable.node())), "{reason}");
        assert!(
            report.disks.iter().all(|record| record.outcome == Outcome::Skipped && record.reason.is_some())
        );
        assert!(writable.outside() == before && read_only.outside() == before);
    }
}

#[test]
fn a_mounted_disk_stops_the_step_before_any_other_is_written() {
    let before = pattern(8 << 20);
    let other = Loop::new(&before);
    let mounted = Loop::new(&vec![0; 16 << 20]);
    run("mkfs.ext4", &["-q", "-F", mounted.node()]);
    let point = tempfile::tempdir().unwrap();
    run("mount", &[mounted.node(), point.path().to_str().unwrap()]);
    let (result, _) = perform(&[&other, &mounted], "erase_devices", json!({}));
    run("umount", &[point.path().to_str().unwrap()]);
    let (reason, _) = failed(result);
    assert!(reason.contains("is mounted at") && reason.contains(mounted.node()), "{reason}");
    assert!(other.outside() == before);
}

#[test]
fn a_disk_that_another_process_holds_stops_the_step_before_any_other_is_written() {
    use std::os::unix::fs::OpenOptionsExt;
    let before = pattern(8 << 20);
    let (other, held) = (Loop::new(&before), Loop::new(&before));
    let mut exclusive = std::fs::OpenOptions::new();
    let holder = exclusive.read(true).custom_flags(0o200 /* O_EXCL */).open(&held.path).unwrap();
    let (result, _) = perform(&[&other, &held], "erase_devices", json!({}));
    drop(holder);
    let (reason, _) = failed(result);
    assert!(reason.contains("something else uses it") && reason.contains(held.node()), "{reason}");
    assert!(other.outside() == before && held.outside() == before);
}

#[test]
fn a_read_only_disk_is_skipped_where_the_node_says_so() {
    let before = pattern(4 << 20);
    let (writable, read_only) = (Loop::new(&before), Loop::with(&before, &["--read-only"]));
    let info = json!({"agent_erase_skip_read_only": true});
    let report = done(perform(&[&writable, &read_only], "erase_devices", info).0);
    let outcome = |disk| of(&report, disk).outcome;
    assert_eq!((outcome(&writable), outcome(&read_only)), (Outcome::Erased, Outcome::Skipped));
    assert!(writable.outside().iter().all(|&byte| byte == 0));
    assert!(read_only.outside() == before);
}

#[test]
fn a_disk_with_write_errors_fails_and_the_record_of_the_others_is_kept() {
    let room = SmallRoom::new();
    let (good, bad) = (Loop::new(&pattern(8 << 20)), Loop::failing(&room, 8 << 20));
    let (result, _) = perform(&[&good, &bad], "erase_devices", json!({}));
    let (reason, report) = failed(result);
    assert!(reason.starts_with(bad.node()) && !reason.contains(&format!("{} ", good.node())), "{reason}");
    assert_eq!(of(&report, &good).outcome, Outcome::Erased);
    assert!(good.outside().iter().all(|&byte| byte == 0));
    let bad = of(&report, &bad);
    assert_eq!((bad.outcome, bad.method.as_deref()), (Outcome::Failed, Some("overwrite-zeroes")));
    let why = bad.reason.as_deref().unwrap();
    assert!(why.contains("write of 512 bytes at byte offset ") && why.contains("error"), "{why}");
    assert!(bad.bytes_erased > 0 && bad.bytes_erased < 8 << 20, "{bad:?}");
    assert_eq!(bad.fallbacks[0].method, "zero-out");
}

/// A GPT with a VMFS partition, as a tool writes it.
fn vmfs() -> Loop {
    let disk = Loop::sparse(32 << 20, &[]);
    run("sgdisk", &["-n", "1:0:+8M", "-t", "1:aa31e02a-400f-11db-9590-000c2911d1b8", disk.node()]);
    disk
}

fn with_arguments(disks: &[&Loop], step: &str, node: Value, args: Value) -> Result<StepOutcome, StepError> {
    let manager = manager(disks);
    let mut call = call(&manager, step, json!({}));
    call.args = args.as_object().unwrap().clone();
    call.node = node;
    manager.run(&call, &StepContext::new())
}

#[test]
fn a_shared_disk_stops_every_step_before_any_other_is_written() {
    let before = pattern(4 << 20);
    for step in ["erase_devices", "erase_devices_metadata", "erase_devices_express"] {
        let (other, shared) = (Loop::new(&before), vmfs());
        let table = shared.outside();
        let (reason, _) = failed(perform(&[&other, &shared], step, json!({})).0);
        assert!(reason.contains("a VMFS partition") && reason.contains(shared.node()), "{reason}");
        assert!(other.outside() == before && shared.outside() == table, "{step}");
    }
    let (other, shared) = (Loop::new(&before), vmfs());
    let table = shared.outside();
    let left = with_arguments(&[&other, &shared], "erase_devices", Value::Null, json!({"leave": ["shared"]}));
    let left = of(&done(left), &shared);
    assert_eq!(left.outcome, Outcome::Skipped);
    assert!(left.reason.unwrap().contains("the policy leaves such disks alone"));
    assert!(shared.outside() == table && other.outside().iter().all(|&byte| byte == 0));
    let wiped = with_arguments(&[&shared], "erase_devices", Value::Null, json!({"despite": ["shared"]}));
    done(wiped);
    assert!(shared.outside().iter().all(|&byte| byte == 0));
}

#[test]
fn a_level_that_a_disk_cannot_reach_writes_nothing_unless_the_weaker_is_allowed_by_name() {
    let before = pattern(2 << 20);
    let disk = Loop::new(&before);
    let (reason, _) =
        failed(with_arguments(&[&disk], "erase_devices", Value::Null, json!({"level": "purge"})));
    assert!(
        reason.contains("no method of it reaches purge") && reason.contains("overwrite-zeroes"),
        "{reason}"
    );
    let node = json!({"driver_internal_info": {"agent_erase_level": "purge"}});
    failed(with_arguments(&[&disk], "erase_devices", node, json!({})));
    assert!(disk.outside() == before);
    let args = json!({"level": "purge", "allow": ["overwrite-zeroes"]});
    let report = done(with_arguments(&[&disk], "erase_devices", Value::Null, args));
    assert_eq!(report.disks[0].method.as_deref(), Some("overwrite-zeroes"));
}

#[test]
fn a_disk_of_the_skip_list_is_kept_and_said() {
    let before = pattern(2 << 20);
    let (kept, other) = (Loop::new(&before), Loop::new(&before));
    let node = json!({"properties": {"skip_block_devices": [{"name": kept.node()}]}});
    let result = with_arguments(&[&kept, &other], "erase_devices", node, json!({}));
    let record = of(&done(result), &kept);
    assert_eq!((record.outcome, record.exempt.as_deref()), (Outcome::Skipped, Some("kept")));
    assert!(record.reason.unwrap().contains(&format!("it matches name {}", kept.node())));
    assert!(kept.outside() == before && other.outside().iter().all(|&byte| byte == 0));
}

#[test]
fn a_plan_reports_what_would_be_done_and_writes_nothing() {
    let before = pattern(2 << 20);
    let (disk, shared) = (Loop::new(&before), vmfs());
    let table = shared.outside();
    let manager = manager(&[&disk, &shared]);
    let plan = manager.plan(&call(&manager, "erase_devices", json!({}))).unwrap();
    assert_eq!(plan["refuses"], true);
    let of =
        |node: &str| plan["disks"].as_array().unwrap().iter().find(|disk| disk["device"] == node).unwrap();
    // wording: wire name
    assert_eq!(of(shared.node())["fate"], "refuse");
    let methods = of(disk.node())["methods"].as_array().unwrap();
    assert_eq!(methods.last().unwrap()["method"], "overwrite-zeroes");
    assert!(methods.iter().all(|method| method["level"] == "clear" && method["abortable"] == true));
    assert!(plan["estimate_s"].as_u64().unwrap() > 0);
    assert!(disk.outside() == before && shared.outside() == table);
    for step in ["erase_devices_metadata", "erase_devices_express"] {
        let plan = manager.plan(&call(&manager, step, json!({}))).unwrap();
        assert!(
            plan["refuses"] == true && plan.to_string().contains(r#""method":"erase-metadata""#),
            "{plan}"
        );
    }
    let verify = call(&manager, "verify_properties", json!({}));
    assert!(matches!(manager.plan(&verify), Err(StepError::Unknown { .. })));
}

#[test]
fn express_removes_metadata_where_no_single_command_erases() {
    let disk = labelled();
    let record = done(perform(&[&disk], "erase_devices_express", json!({})).0).disks.remove(0);
    assert_eq!((record.outcome, record.method.as_deref()), (Outcome::MetadataErased, Some("erase-metadata")));
    assert_eq!(disk.outside()[8 << 20..(8 << 20) + 512], [7; 512], "the data stays, and the record says so");
}

#[test]
fn a_cancelled_step_says_so_with_its_report() {
    let disk = Loop::new(&pattern(4 << 20));
    let (manager, context) = (manager(&[&disk]), StepContext::new());
    context.cancel();
    match manager.run(&call(&manager, "erase_devices", json!({})), &context) {
        Err(StepError::Cancelled { report: value }) => {
            assert_eq!(report(&value).disks[0].outcome, Outcome::Skipped);
        }
        other => panic!("{other:?}"),
    }
    assert!(disk.outside() == pattern(4 << 20));
}

#[test]
fn no_disks_is_success_and_said_and_no_listing_is_not() {
    let (result, _) = perform(&[], "erase_devices", json!({}));
    let Ok(StepOutcome::Done(value)) = result else { panic!("{result:?}") };
    assert_eq!(value["disks"], json!([]));
    assert!(value["note"].as_str().unwrap().contains("no disk was found"));

    let missing = GenericHardwareManager::new(Filter::Only(vec!["/dev/an-block-missing".into()]));
    let context = StepContext::new();
    let (reason, _) = failed(missing.run(&call(&missing, "erase_devices", json!({})), &context));
    assert!(reason.contains("/dev/an-block-missing"), "{reason}");
    assert!(missing.disks().is_err());
}

#[test]
fn unknown_steps_and_arguments_change_nothing() {
    let before = pattern(1 << 20);
    let disk = Loop::new(&before);
    let manager = manager(&[&disk]);
    let mut wrong = call(&manager, "erase_devices", json!({}));
    wrong.args.insert("fast".into(), true.into());
    let error = manager.run(&wrong, &StepContext::new()).unwrap_err();
    assert!(matches!(&error, StepError::Argument { name, .. } if name == "fast"), "{error}");
    let mut wrong = call(&manager, "erase_devices", json!({}));
    wrong.step.step = "erase_everything".into();
    assert!(matches!(manager.run(&wrong, &StepContext::new()), Err(StepError::Unknown { .. })));
    let wrong = call(&manager, "erase_devices", json!({"disk_erasure_concurrency": "all"}));
    assert!(matches!(manager.run(&wrong, &StepContext::new()), Err(StepError::Argument { .. })));
    assert!(disk.outside() == before);
}

#[test]
fn the_steps_are_ironics() {
    let manager = manager(&[]);
    assert_eq!((manager.name(), manager.version()), ("generic_hardware_manager", "1.8"));
    let names = |kind| -> Vec<(String, u64)> {
        let steps = manager.steps(kind, &Inventory::default());
        steps.into_iter().map(|step| (step.step, step.priority.as_u64().unwrap())).collect()
    };
    let verify = [("verify_properties".to_owned(), 0), ("verify_firmware".to_owned(), 0)];
    let erase = [("erase_devices", 10), ("erase_devices_metadata", 99), ("erase_devices_express", 0)];
    let erase = erase.map(|(step, priority)| (step.to_owned(), priority));
    assert_eq!(names(StepKind::Clean), [&erase[..], &verify[..]].concat());
    assert_eq!(
        names(StepKind::Deploy),
        [("erase_devices_metadata".to_owned(), 0), ("write_image".to_owned(), 0)]
    );
    assert_eq!(names(StepKind::Service), verify);
    let steps = serde_json::to_value(manager.steps(StepKind::Clean, &Inventory::default())).unwrap();
    let mut first = steps[0].clone();
    let arguments: Vec<String> = first["argsinfo"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        arguments,
        [
            "allow",
            "deadline_s",
            "despite",
            "leave",
            "level",
            "passes",
            "pattern",
            "remove_hidden",
            "time_budget_s"
        ]
    );
    assert!(first["argsinfo"].as_object().unwrap().values().all(|argument| argument["required"] == false));
    first["argsinfo"] = json!({});
    assert_eq!(
        first,
        // `idempotent` and `destructive` are Anneal's; Ironic keeps and ignores them.
        json!({"step": "erase_devices", "priority": 10, "interface": "deploy", "reboot_requested": false,
               "abortable": true, "argsinfo": {}, "idempotent": true, "destructive": "data"})
    );
    let destroys: Vec<(&str, &str)> = steps
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["step"].as_str().unwrap(), step["destructive"].as_str().unwrap()))
        .collect();
    let expected = [
        ("erase_devices", "data"),
        ("erase_devices_metadata", "data"),
        ("erase_devices_express", "data"),
        ("verify_properties", "none"),
        ("verify_firmware", "none"),
    ];
    assert_eq!(destroys, expected);
    // Ironic asks agents only for clean steps of its interfaces deploy and raid.
    assert_eq!(steps[4]["interface"], "deploy");
    assert_eq!(steps[4]["argsinfo"]["baseline"]["required"], false);
}

#[test]
fn a_step_of_one_kind_is_not_run_as_another() {
    let before = pattern(1 << 20);
    let disk = Loop::new(&before);
    let manager = manager(&[&disk]);
    for (step, kind) in [
        ("erase_devices", StepKind::Deploy),
        ("erase_devices", StepKind::Service),
        ("erase_devices_metadata", StepKind::Service),
    ] {
        let wrong = StepCall { kind, ..call(&manager, step, json!({})) };
        assert!(matches!(manager.run(&wrong, &StepContext::new()), Err(StepError::Unknown { .. })));
    }
    assert!(disk.outside() == before);
}
