//! An erase that is interrupted, by a reboot or by its deadline. Needs root and losetup.

use crate::common::{Loop, pattern};
use crate::step::{done, failed, report, with_serial};
use agent_protocol::record::Outcome;
use hwm_generic::{ERASE_DEVICES, GenericHardwareManager};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepOutcome};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn erase_devices(manager: &GenericHardwareManager) -> StepCall {
    crate::step::call(manager, ERASE_DEVICES, json!({}))
}

#[test]
fn an_erase_goes_on_after_a_reboot_where_the_disk_has_an_identity() {
    const PART: u64 = 64 << 20;
    let mut disk = Loop::new(&pattern(1 << 20).repeat(72));
    let erase = |disk: &Loop, serial: &str, context: &StepContext| {
        let (_root, manager) = with_serial(&disk.path, serial);
        done(manager.run(&erase_devices(&manager), context)).disks.remove(0)
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
    // Nothing reads it back in a second. Zeroing takes room in the backing file: no more than this.
    let disk = Loop::sparse(12 << 30, &[]);
    let begun = Instant::now();
    let manager = GenericHardwareManager::new(disk.filter());
    let mut call = erase_devices(&manager);
    call.args.insert("deadline_s".into(), json!(1));
    let (reason, report) = failed(manager.run(&call, &StepContext::new()));
    assert!(
        reason.contains("the deadline of the step passed, 1 s after its beginning (argument deadline_s)"),
        "{reason}"
    );
    assert_eq!(report.disks[0].outcome, Outcome::Failed);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// The child of the test below: erases `ERASE_DISK`, goes on from `checkpoint` in `ERASE_DESK` and keeps its own there, and
/// leaves its report as `report`.
#[test]
#[ignore = "started by killed_at_any_moment_nothing_claims_more_than_is_true"]
fn erase_until_killed() {
    let desk = PathBuf::from(std::env::var_os("ERASE_DESK").expect("ERASE_DESK"));
    let path = PathBuf::from(std::env::var_os("ERASE_DISK").expect("ERASE_DISK"));
    let (_root, manager) = with_serial(&path, "S1");
    let keep = |name: &str, value: &Value| {
        let written = desk.join(format!("{name}.new"));
        std::fs::write(&written, value.to_string()).unwrap();
        std::fs::rename(written, desk.join(name)).unwrap();
    };
    let context = StepContext::new().resuming(read(&desk, "checkpoint"));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = None;
            while !ended.load(Ordering::Acquire) {
                let saved = context.saved();
                if let Some(saved) = saved.as_ref().filter(|_| saved != last) {
                    keep("checkpoint", saved);
                }
                last = saved;
                std::thread::park_timeout(Duration::from_millis(1));
            }
        });
        let result = manager.run(&erase_devices(&manager), &context);
        ended.store(true, Ordering::Release);
        let Ok(StepOutcome::Done(value)) = result else { panic!("{result:?}") };
        keep("report", &value);
    });
}

fn read(desk: &Path, name: &str) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(desk.join(name)).ok()?).unwrap()
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|chunk| chunk == &[0; 4096][..chunk.len()])
}

/// A number below `end`, from the state of xorshift64.
fn below(state: &mut u64, end: u128) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    u64::try_from(u128::from(*state) % end).unwrap()
}

/// `ERASE_KILLS` and `ERASE_SEED` make it longer and another (`cargo xtask soak --part erase`).
#[test]
fn killed_at_any_moment_nothing_claims_more_than_is_true() {
    const SIZE: usize = 136 << 20;
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (kills, seed) = (number("ERASE_KILLS", 10), number("ERASE_SEED", 20_261_121));
    let (mut state, content) = (seed, pattern(1 << 20).repeat(SIZE >> 20));
    let mut disk = Loop::new(&content);
    let desk = tempfile::tempdir().unwrap();
    let start = |disk: &Loop| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", "interrupted::erase_until_killed"]).stdout(Stdio::null());
        child.env("ERASE_DESK", desk.path()).env("ERASE_DISK", disk.node()).spawn().unwrap()
    };
    let begun = Instant::now();
    assert!(start(&disk).wait().unwrap().success());
    let undisturbed = begun.elapsed();

    let (mut killed, mut resumed, mut rounds) = (0, 0, 0);
    while killed < kills {
        rounds += 1;
        disk.write(0, &content);
        for name in ["checkpoint", "report"] {
            let _ = std::fs::remove_file(desk.path().join(name));
        }
        let report = loop {
            let from =
                read(desk.path(), "checkpoint").map(|saved| saved["disks"][0]["offset"].as_u64().unwrap());
            let mut child = start(&disk);
            // Three of four are killed, some of them when it is too late.
            if below(&mut state, 4) > 0 {
                let moment = below(&mut state, undisturbed.as_micros() * 5 / 4);
                std::thread::sleep(Duration::from_micros(moment));
                child.kill().unwrap();
            }
            let status = child.wait().unwrap();
            let outside = disk.outside();
            if let Some(saved) = read(desk.path(), "checkpoint") {
                let offset = usize::try_from(saved["disks"][0]["offset"].as_u64().unwrap()).unwrap();
                assert!(
                    is_zero(&outside[..offset]),
                    "seed {seed}, kill {killed}: not all below {offset} is gone"
                );
            }
            if let Some(text) = read(desk.path(), "report") {
                assert!(is_zero(&outside), "seed {seed}, kill {killed}: reported as erased: {text}");
                break (from, report(&text).disks.remove(0));
            }
            assert_eq!(status.signal(), Some(9), "seed {seed}: it ended by itself without a report");
            killed += 1;
            if below(&mut state, 2) == 0 {
                disk.attach_again();
            }
        };
        let (from, record) = report;
        assert_eq!((record.outcome, record.resumed_from), (Outcome::Erased, from), "seed {seed}");
        let seen = record.verification.unwrap();
        assert!(seen.passed && seen.bytes_read == SIZE as u64 && seen.samples > 0, "{seen:?}");
        resumed += u64::from(from.is_some());
    }
    println!("{killed} kills in {rounds} erases, {resumed} of which went on from a checkpoint, seed {seed}");
}
