//! Disks in use, and arrays and groups that come back: on loop devices that each test makes for itself. Needs root,
//! losetup, mkswap, e2fsprogs and lvm2.

use crate::common::{Loop, pattern, run};
use crate::step::{call, done, failed, manager};
use agent_protocol::record::Outcome;
use hwm_sdk::{HardwareManager, StepContext};
use serde_json::json;

#[test]
fn in_the_ramdisk_swap_and_mounts_are_planned_taken_down_and_then_the_disks_are_erased() {
    let before = pattern(8 << 20);
    let [swap, outer, inner] = [32, 16, 16].map(|mib: usize| Loop::new(&vec![0; mib << 20]));
    let read_only = Loop::with(&before, &["--read-only"]);
    run("mkswap", &[swap.node()]);
    run("swapon", &[swap.node()]);
    let point = tempfile::tempdir().unwrap();
    let within = point.path().join("within");
    for (disk, at) in [(&outer, point.path()), (&inner, &within)] {
        run("mkfs.ext4", &["-q", "-F", disk.node()]);
        std::fs::create_dir_all(at).unwrap();
        run("mount", &[disk.node(), at.to_str().unwrap()]);
        std::fs::create_dir_all(&within).unwrap();
    }
    let used = |disk: &Loop| {
        let text = ["/proc/self/mountinfo", "/proc/swaps"].map(|path| std::fs::read_to_string(path).unwrap());
        text.concat().split_whitespace().any(|word| word == disk.node())
    };
    let disks = [&swap, &outer, &inner];

    // One disk that must not be written: all stay as they are.
    let refusing = manager(&[&swap, &outer, &inner, &read_only]).in_the_ramdisk();
    let (reason, _) = failed(refusing.run(&call(&refusing, "erase_devices", json!({})), &StepContext::new()));
    assert!(reason.contains("read-only") && !reason.contains("mounted"), "{reason}");
    assert!(disks.iter().all(|disk| used(disk)), "nothing was taken down");

    let manager = manager(&disks).in_the_ramdisk();
    let call = call(&manager, "erase_devices", json!({}));
    let plan = manager.plan(&call).unwrap();
    let name = |disk: &Loop| disk.node().trim_start_matches("/dev/").to_owned();
    let mount =
        |disk: &Loop, at: &std::path::Path| format!("take down: mount of {} at {}", name(disk), at.display());
    let expected =
        [format!("take down: swap {}", name(&swap)), mount(&inner, &within), mount(&outer, point.path())];
    assert_eq!(plan["take_down"], json!(expected));
    assert!(disks.iter().all(|disk| used(disk)), "a plan takes nothing down");

    let report = done(manager.run(&call, &StepContext::new()));
    assert!(report.disks.iter().all(|record| record.outcome == Outcome::Erased));
    for disk in disks {
        assert!(!used(disk) && disk.outside().iter().all(|&byte| byte == 0), "{}", disk.node());
    }
}

#[test]
fn what_cannot_be_taken_down_stops_the_step_before_any_disk_is_written() {
    let before = pattern(8 << 20);
    let (other, mounted) = (Loop::new(&before), Loop::new(&vec![0; 16 << 20]));
    run("mkfs.ext4", &["-q", "-F", mounted.node()]);
    let point = tempfile::tempdir().unwrap();
    let at = point.path().to_str().unwrap();
    run("mount", &[mounted.node(), at]);
    run("mount", &["-t", "tmpfs", "none", at]);
    let manager = manager(&[&other, &mounted]).in_the_ramdisk();
    let (reason, report) =
        failed(manager.run(&call(&manager, "erase_devices", json!({})), &StepContext::new()));
    run("umount", &[at]);
    run("umount", &[at]);
    assert!(reason.contains("cannot take down the mount of") && reason.contains("mounted over"), "{reason}");
    assert!(report.disks.iter().all(|record| record.outcome == Outcome::Skipped));
    assert!(other.outside() == before);
}

/// What LVM itself says of the groups on these disks.
fn groups(disks: &[&Loop]) -> String {
    let devices: Vec<&str> = disks.iter().map(|disk| disk.node()).collect();
    let config = format!(
        "devices{{use_devicesfile=0 scan_lvs=0 filter=[{}\"r|.*|\"]}}",
        devices.iter().map(|device| format!("\"a|^{device}$|\",")).collect::<String>()
    );
    let lvm = |words: &[&str]| {
        let out = std::process::Command::new("lvm")
            .args(words)
            .args(["--config", &config])
            .env("LVM_SUPPRESS_FD_WARNINGS", "1")
            .output()
            .unwrap();
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
    };
    let check = lvm(&["vgck"]);
    format!(
        "{check}{}",
        lvm(&[
            "pvs",
            "--noheadings",
            "-o",
            "vg_name,vg_uuid,vg_seqno,vg_missing_pv_count,pv_name,pv_uuid,pv_size"
        ])
    )
}

#[test]
fn a_volume_group_is_there_again_after_automated_cleaning_and_not_after_manual() {
    let run_steps = |target: &str, whole: bool| {
        let disks =
            [Loop::new(&pattern(32 << 20)), Loop::new(&pattern(32 << 20)), Loop::new(&pattern(4 << 20))];
        let refs: Vec<&Loop> = disks.iter().collect();
        let nodes = &refs[..2].iter().map(|disk| disk.node()).collect::<Vec<_>>();
        let config = ["--config", "devices{use_devicesfile=0}", "-qq", "-y"];
        run("vgcreate", &[&config[..], &["old"], nodes].concat());
        let before = groups(&refs);
        assert!(before.contains("old") && !before.to_lowercase().contains("fail"), "{before}");
        let manager = manager(if whole { &refs } else { &refs[1..] });
        let mut records = Vec::new();
        for (index, step) in ["erase_devices_metadata", "erase_devices"].into_iter().enumerate() {
            let steps = json!([{"interface": "deploy", "step": "erase_devices_metadata"},
                               {"interface": "deploy", "step": "erase_devices"}]);
            let info = json!({"clean_steps": steps, "clean_step_index": index});
            let mut call = call(&manager, step, info);
            call.node["target_provision_state"] = target.into();
            records = done(manager.run(&call, &StepContext::new())).disks;
            let written = index == 1 && target == "available" && whole;
            assert_eq!(records.iter().any(|record| !record.rebuilt.is_empty()), written);
        }
        // Outside of what the records name there is nothing but zeroes.
        for disk in if whole { &refs[..] } else { &refs[1..] } {
            let record = records.iter().find(|record| record.device == disk.node()).unwrap();
            assert_eq!(record.outcome, Outcome::Erased);
            let mut content = disk.outside();
            for region in &record.rebuilt {
                let (from, length) = (usize::try_from(region.offset), usize::try_from(region.bytes));
                content[from.unwrap()..][..length.unwrap()].fill(0);
            }
            assert!(content.iter().all(|&byte| byte == 0), "{}", disk.node());
        }
        (before, groups(&refs), records)
    };
    let (before, after, records) = run_steps("available", true);
    assert_eq!(before, after);
    assert!(
        records[0]
            .rebuilt
            .iter()
            .all(|region| (region.kind.as_str(), region.name.as_str()) == ("lvm", "old"))
    );
    let total: u64 = records.iter().flat_map(|record| &record.rebuilt).map(|region| region.bytes).sum();
    assert!(total < 16 << 10, "{total} bytes were written back");
    let (_, after, _) = run_steps("manageable", true);
    assert!(!after.contains("old"), "{after}");
    // A group of which one disk was not to be erased.
    run_steps("available", false);
}

#[test]
fn a_volume_group_of_an_earlier_run_is_not_written_back() {
    let disks = [Loop::new(&pattern(32 << 20)), Loop::new(&pattern(32 << 20))];
    let refs: Vec<&Loop> = disks.iter().collect();
    let nodes: Vec<&str> = disks.iter().map(Loop::node).collect();
    let config = ["--config", "devices{use_devicesfile=0}", "-qq", "-y"];
    run("vgcreate", &[&config[..], &["earlier"], &nodes].concat());
    let manager = manager(&refs);
    let step = |index: usize, step: &str| {
        let steps = json!([{"interface": "deploy", "step": "erase_devices_metadata"},
                           {"interface": "deploy", "step": "erase_devices"}]);
        let info = json!({"clean_steps": steps, "clean_step_index": index});
        let mut call = call(&manager, step, info);
        call.node["target_provision_state"] = "available".into();
        done(manager.run(&call, &StepContext::new())).disks
    };
    // A run that ended after its first step; then one from the beginning, which finds no group any more.
    step(0, "erase_devices_metadata");
    step(0, "erase_devices_metadata");
    let records = step(1, "erase_devices");
    assert!(records.iter().all(|record| record.outcome == Outcome::Erased && record.rebuilt.is_empty()));
    assert!(disks.iter().all(|disk| disk.outside().iter().all(|&byte| byte == 0)));
}
