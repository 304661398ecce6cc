//! Hardware managers of vendors, as real processes, against the part of the agent that hosts them. Whatever one of
//! them does, the agent's own steps and those of its neighbours go on.
//!
//! Needs root and busybox.

use crate::common;
use crate::vendor;

use agent_protocol::command::Status;
use agent_protocol::inventory::{Disk, Inventory, ManagerReport, SystemVendor};
use agentd::registry::Ending;
use agentd::steps::StepTable;
use common::Probe;
use hwm_generic::GenericHardwareManager;
use hwm_host::{Externals, Limits, read, step_names};
use hwm_sdk::protocol::{EraseParams, GRACE};
use hwm_sdk::{HardwareManager, StepContext, StepKind};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vendor::Vendors;

/// Long, for a busy machine.
const LONG: Duration = Duration::from_secs(30);
/// Short, so that a manager that hangs does not hang the tests.
const SHORT: Duration = Duration::from_secs(5);
const LIMITS: Limits = Limits {
    hello: LONG,
    detect: LONG,
    init: LONG,
    inventory: LONG,
    steps: LONG,
    erase_capabilities: LONG,
    grace: SHORT,
    restarts: 2,
    backoff: Duration::from_millis(10),
};

/// Those where a manager hangs in this phase.
fn hanging_in(phase: &str) -> Limits {
    let mut limits = LIMITS;
    match phase {
        "hello" => limits.hello = SHORT,
        "detect" => limits.detect = SHORT,
        "init" => limits.init = SHORT,
        "inventory" => limits.inventory = SHORT,
        "steps" => limits.steps = SHORT,
        _ => {}
    }
    limits
}

/// An agent's managers: the generic one, a probe, and those of a directory.
struct Rig {
    externals: Externals,
    managers: Vec<Arc<dyn HardwareManager>>,
    inventory: Arc<Inventory>,
    _fetched: tempfile::TempDir,
}

impl Rig {
    fn new(vendors: &Vendors) -> Self {
        Self::with(vendors, Inventory::default(), LIMITS)
    }

    fn with(vendors: &Vendors, mut inventory: Inventory, limits: Limits) -> Self {
        let generic = GenericHardwareManager::new(block::Filter::Only(Vec::new()));
        let mut managers: Vec<Arc<dyn HardwareManager>> = vec![Arc::new(generic), Arc::new(Probe::default())];
        let fetched = tempfile::tempdir().expect("a directory");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(fetched.path(), mode).expect("permissions");
        let externals = Externals::new(read(vendors.path()), &step_names(&managers), fetched.path(), limits);
        managers.extend(externals.managers());
        externals.complete(&mut inventory);
        Self { externals, managers, inventory: Arc::new(inventory), _fetched: fetched }
    }

    fn table(&self) -> StepTable {
        StepTable::collect(&self.managers, &self.inventory, StepKind::Clean)
    }

    fn run(&self, step: &str) -> Ending {
        self.run_with(step, &StepContext::new())
    }

    fn run_with(&self, step: &str, context: &StepContext) -> Ending {
        self.table().execute(&json!({ "step": step }), &json!({}), None, context)
    }

    fn report(&self, name: &str) -> ManagerReport {
        let mut again = (*self.inventory).clone();
        self.externals.complete(&mut again);
        let all = again.anneal.expect("there are external managers").hardware_managers;
        all.into_iter().find(|report| report.name == name).expect("its report")
    }

    /// Neither the agent's own steps nor those of the good neighbour are any worse.
    fn assert_unharmed(&self, why: &str) {
        for step in ["probe_quick", "good_step"] {
            let ending = self.run(step);
            assert_eq!(ending.status, Status::Succeeded, "{why}: {step}: {ending:?}");
        }
        let erase = self.run("erase_devices");
        assert_eq!(erase.status, Status::Succeeded, "{why}: {erase:?}");
        let note = &erase.result.expect("a result")["clean_result"]["note"];
        assert!(
            note.as_str().is_some_and(|note| note.contains("no disk")),
            "{why}: not the generic manager's"
        );
    }
}

fn failure(ending: &Ending) -> &str {
    assert_eq!(ending.status, Status::Failed, "{ending:?}");
    &ending.error.as_ref().expect("an error").details
}

fn records(report: &ManagerReport) -> String {
    report.records.iter().map(|record| record.what.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_good_manager_is_as_one_of_the_agents_own() {
    let vendors = Vendors::new();
    vendors.add("good", "");
    let rig = Rig::new(&vendors);
    let advertised = rig.table().advertised();
    let step = &advertised["clean_steps"]["good"][0];
    assert_eq!((&step["step"], &step["priority"]), (&json!("good_step"), &json!(7)), "{advertised}");
    let report = rig.report("good");
    assert_eq!((report.state.as_str(), report.records.len()), ("ready", 0), "{report:?}");
    assert_eq!(report.patch["extra"]["enclosure"], 7);
    let version = advertised["hardware_manager_version"]["good"].as_str().expect("a version");
    assert!(version.starts_with("1.0@") && version.len() == 4 + 12 && version == report.version, "{version}");
    assert_eq!(rig.run("good_step").result.expect("a result")["clean_result"]["by"], "good");
    rig.assert_unharmed("a good one");
}

/// What a hostile manager may do instead of an answer, and a word of what is said of it.
const BEHAVIOURS: [(&str, &str, &str); 6] = [
    ("hangs", "while :; do busybox sleep 9; done", "within"),
    ("exits", "exit 3", "exited with status 3"),
    ("dies", "busybox kill -9 $$; busybox cat /dev/zero > /nowhere; exit 9", "exited with status"),
    ("sends garbage", "echo '{{{' >&3; busybox sleep 9", "not JSON"),
    ("sends a line without end", "busybox cat /dev/zero >&3", "more than 1048576 bytes"),
    (
        "floods",
        "f='{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"level\":\"info\",\"text\":\"x\"}}'
         while :; do echo \"$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\n$f\" >&3; done",
        "floods its socket",
    ),
];

#[test]
fn whatever_a_manager_does_in_whatever_phase_only_its_own_steps_suffer() {
    let phases = ["hello", "detect", "init", "inventory", "steps", "run"];
    let all = phases.into_iter().flat_map(|phase| BEHAVIOURS.map(|behaviour| (phase, behaviour)));
    let all: Vec<_> = all.collect();
    // All at once would only be waited for one after the other.
    for some in all.chunks(12) {
        std::thread::scope(|scope| {
            for (phase, (behaviour, script, reported)) in some {
                scope.spawn(move || one_hostile_manager(phase, behaviour, script, reported));
            }
        });
    }
}

fn one_hostile_manager(phase: &str, behaviour: &str, script: &str, reported: &str) {
    let why = format!("one that {behaviour} in {phase}");
    let vendors = Vendors::new();
    vendors.add("good", "");
    vendors.add("bad", &format!("on_{phase}() {{ echo about to go wrong; {script}; }}"));
    let limits = if behaviour == "hangs" { hanging_in(phase) } else { LIMITS };
    let rig = Rig::with(&vendors, Inventory::default(), limits);
    rig.assert_unharmed(&why);
    if phase == "run" {
        // The agent cannot know that a step hangs: the controller cancels it.
        let context = StepContext::new();
        context.cancel();
        let ending = rig.run_with("bad_step", &context);
        let said = failure(&ending);
        assert!(said.contains(reported) && said.contains("bad@"), "{why}: {said}");
        let log = &ending.result.as_ref().expect("a report")["clean_result"]["log"];
        let log = log.as_str().expect("a log");
        // The last of what it said; a flood of log lines leaves nothing else.
        assert!(log.contains("about to go wrong") || behaviour == "floods", "{why}: {log:.200}");
        assert!(log.len() < 32 << 10, "{why}: {} bytes", log.len());
    } else {
        let reported =
            if phase == "hello" && behaviour == "hangs" { "hello was not answered" } else { reported };
        let report = rig.report("bad");
        assert!(records(&report).contains(reported), "{why}: {report:?}");
        assert_eq!(report.state, "failed", "{why}");
        assert_eq!(rig.run("bad_step").status, Status::Failed, "{why}");
    }
    rig.assert_unharmed(&why);
}

#[test]
fn a_manager_that_crashes_is_started_again_so_often_and_no_more() {
    let vendors = Vendors::new();
    vendors.add("good", "");
    vendors.add("bad", "on_run() { notify checkpoint '{\"id\":'$id',\"data\":{\"at\":1}}'; exit 1; }");
    let rig = Rig::new(&vendors);
    for _ in 0..3 {
        assert!(failure(&rig.run("bad_step")).contains("exited with status 1"));
    }
    let last = rig.run("bad_step");
    assert!(failure(&last).contains("it has failed 3 times"), "{last:?}");
    assert_eq!(rig.report("bad").state, "failed");
    // Cleaning must see that it is no more, and not go on without it.
    assert_eq!(rig.table().advertised()["clean_steps"]["bad"][0]["step"], "bad_step");
    rig.assert_unharmed("one that is given up");
}

#[test]
fn an_interrupted_step_gets_back_what_it_saved() {
    let vendors = Vendors::new();
    vendors.add(
        "good",
        "on_run() {
            case $line in
                *checkpoint*) answer '{\"result\":{\"again\":true}}' ;;
                *) notify checkpoint '{\"id\":'$id',\"data\":{\"at\":1}}'; exit 1 ;;
            esac
         }",
    );
    let rig = Rig::new(&vendors);
    failure(&rig.run("good_step"));
    assert_eq!(rig.run("good_step").result.expect("a result")["clean_result"]["again"], true);
}

/// The machine rebooted: the process that remembers is gone, the controller is not.
#[test]
fn a_checkpoint_of_a_manager_reaches_the_controller_and_survives_a_reboot() {
    let behaviour = "on_run() {
            case $line in
                *checkpoint*) answer '{\"result\":{\"again\":true}}' ;;
                *) notify checkpoint '{\"id\":'$id',\"data\":{\"at\":1}}'; exit 1 ;;
            esac
         }";
    let saved = {
        let vendors = Vendors::new();
        vendors.add("good", behaviour);
        let (rig, context) = (Rig::new(&vendors), StepContext::new());
        failure(&rig.run_with("good_step", &context));
        context.saved()
    };
    assert_eq!(saved, Some(json!({"at": 1})));
    let vendors = Vendors::new();
    vendors.add("good", behaviour);
    let rig = Rig::new(&vendors);
    let ended = rig.run_with("good_step", &StepContext::new().resuming(saved));
    assert_eq!(ended.result.expect("a result")["clean_result"]["again"], true);
}

#[test]
fn what_is_not_a_managers_to_take_is_not_taken() {
    let vendors = Vendors::new();
    vendors.add("good", "");
    vendors.add_as("good2", "good", "on_run() { answer '{\"result\":{\"by\":\"impostor\"}}'; }", &json!({}));
    vendors.add("liar", "on_hello() { answer '{\"protocol_version\":1,\"name\":\"good\",\"version\":\"1.0\",\"vendor\":\"\"}'; }");
    vendors.add("newer", "on_hello() { answer '{\"protocol_version\":2,\"name\":\"newer\",\"version\":\"1.0\",\"vendor\":\"\"}'; }");
    vendors.add(
        "taker",
        r#"on_steps() { answer '{"steps":[
            {"interface":"deploy","step":"erase_devices","priority":99},{"interface":"deploy","step":"erase_devices_metadata","priority":99},
            {"interface":"deploy","step":"verify_firmware","priority":1},{"interface":"power","step":"cycle","priority":1},
            {"interface":"vendor","step":"taker_step","priority":1}],
            "priorities":[{"interface":"deploy","step":"erase_devices","priority":0},{"interface":"deploy","step":"erase_devices_metadata","priority":0},
            {"interface":"vendor","step":"good_step","priority":55},{"interface":"deploy","step":"probe_quick","priority":9}]}' | busybox tr -d '\n' ; }
           answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}' "$id" "$1" | busybox tr -d '\n' >&3; echo >&3; }"#,
    );
    for name in ["generic_hardware_manager", "anneal_x"] {
        vendors.add(name, "");
    }
    let rig = Rig::new(&vendors);
    let advertised = rig.table().advertised();
    let names = |manager: &str| -> Vec<(String, u64)> {
        let list = advertised["clean_steps"][manager].as_array().cloned().unwrap_or_default();
        let of = |step: &Value| {
            (step["step"].as_str().unwrap_or_default().to_owned(), step["priority"].as_u64().unwrap_or(999))
        };
        list.iter().map(of).collect()
    };
    assert_eq!(names("taker"), [("taker_step".to_owned(), 1)], "{:?}", rig.report("taker"));
    // A priority of another's ordinary step is changed; a reserved one's is not, nor is what is off switched on.
    assert_eq!(names("good"), [("good_step".to_owned(), 55)]);
    assert!(names("generic_hardware_manager").contains(&("erase_devices".to_owned(), 10)), "{advertised}");
    assert!(names("generic_hardware_manager").contains(&("erase_devices_metadata".to_owned(), 99)));
    assert!(names("ProbeHardwareManager").contains(&("probe_quick".to_owned(), 0)));
    let said = records(&rig.report("taker"));
    for step in
        ["deploy.erase_devices\"", "deploy.erase_devices_metadata\"", "deploy.verify_firmware", "power.cycle"]
    {
        assert!(said.contains(step), "{step} is not in: {said}");
    }
    assert_eq!(rig.run("good_step").result.expect("a result")["clean_result"]["by"], "good");
    assert!(records(&rig.report("liar")).contains("its name is \"good\""));
    assert!(records(&rig.report("newer")).contains("protocol version 2"));
    let all = rig.inventory.anneal.clone().expect("external managers").hardware_managers;
    let of = |text: &str| all.iter().filter(|report| records(report).contains(text)).count();
    assert_eq!(of("there is another manager of its name"), 1, "{all:?}");
    assert_eq!(of("is reserved"), 2, "two reserved names: {all:?}");
    rig.assert_unharmed("those that take");
}

#[test]
fn a_step_is_cancelled_or_killed_and_its_progress_is_seen() {
    let vendors = Vendors::new();
    let wait = "on_run() { notify progress '{\"id\":'$id',\"percent\":40,\"text\":\"busy\",\"disks\":[]}'; }";
    vendors.add("good", &format!("{wait}\non_cancel() {{ refuse -32002 cancelled; }}"));
    vendors.add("deaf", wait);
    let rig = Rig::new(&vendors);
    for (step, ends) in [("good_step", "cancelled"), ("deaf_step", "did not stop within")] {
        let context = StepContext::new();
        let ending = std::thread::scope(|scope| {
            let running = scope.spawn(|| rig.run_with(step, &context));
            let deadline = Instant::now() + GRACE;
            while context.progress().percent != Some(40) {
                assert!(Instant::now() < deadline && !running.is_finished(), "{step}: no progress");
                std::thread::yield_now();
            }
            context.cancel();
            running.join().expect("no panic")
        });
        assert!(failure(&ending).contains(ends), "{step}: {ending:?}");
    }
    assert_eq!(records(&rig.report("good")), "");
}

#[test]
fn a_result_that_is_not_as_declared_fails_the_step_and_quirks_are_for_their_machines() {
    let vendors = Vendors::new();
    vendors.add(
        "good",
        "on_steps() { answer '{\"steps\":[{\"interface\":\"vendor\",\"step\":\"good_step\",\"priority\":0,\"result_schema\":{\"type\":\"string\"}}]}'; }
         on_detect() { answer '{\"support\":\"mainline\",\"quirks\":[{\"suppress\":\"bmc\",\"match\":{\"manufacturer\":\"AC*\"},\"reason\":\"hangs\"},{\"suppress\":\"lldp\",\"match\":{\"manufacturer\":\"Other\"},\"reason\":\"no\"},{\"suppress\":\"bmc\",\"match\":{},\"reason\":\"everywhere\"}]}'; }",
    );
    let machine = SystemVendor { manufacturer: "ACME".into(), ..SystemVendor::default() };
    let rig = Rig::with(&vendors, Inventory { system_vendor: machine, ..Inventory::default() }, LIMITS);
    assert!(failure(&rig.run("good_step")).contains("result must be a string"));
    let suppressed = rig.inventory.anneal.clone().expect("external managers").suppressed;
    let said: Vec<_> = suppressed.iter().map(|one| (one.probe.as_str(), one.reason.as_str())).collect();
    assert_eq!(said, [("bmc", "hangs")]);
}

#[test]
fn services_give_what_was_granted_and_claimed_and_nothing_else() {
    let vendors = Vendors::new();
    // Files stand in for disks: the host opens them by the name in the inventory.
    let disk = |name: &str, serial: &str| {
        let path = vendors.path().join(format!(".{name}"));
        std::fs::write(&path, format!("content of {name}")).expect("a disk");
        Disk { name: path.to_str().expect("UTF-8").into(), serial: Some(serial.into()), ..Disk::default() }
    };
    let disks = vec![disk("granted", "S1"), disk("unclaimed", "S1"), disk("foreign", "S2")];
    let artifacts = vendors.path().join(".artifacts");
    std::fs::create_dir(&artifacts).expect("artifacts");
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    std::fs::write(artifacts.join(digest), "abc").expect("an artifact");
    std::fs::write(artifacts.join("0".repeat(64)), "abc").expect("a wrong one");
    let read = |disk: &Disk| {
        format!(
            "ask read_device '{{\"claim\":{{\"kind\":\"block\",\"id\":\"{}\"}},\"offset\":8,\"length\":100}}'; notify log '{{\"level\":\"info\",\"text\":\"'\"$(echo \"$heard\" | busybox tr -d '\\\\\"')\"'\"}}'",
            disk.name
        )
    };
    let fetch = |digest: &str| format!("ask fetch '{{\"digest\":\"sha256:{digest}\"}}'; echo \"$heard\"");
    let script = format!(
        "on_detect() {{ answer '{{\"support\":\"mainline\",\"claims\":[{{\"kind\":\"block\",\"id\":\"{}\"}},{{\"kind\":\"block\",\"id\":\"{}\"}}]}}'; }}
         on_run() {{ {}; {}; {}; {}; busybox cat /fetched/{digest}; echo; {}; refuse -32003 done; }}",
        disks[0].name, disks[2].name, read(&disks[0]), read(&disks[1]), read(&disks[2]), fetch(digest), fetch(&"0".repeat(64)),
    );
    vendors.add_as(
        "good",
        "good",
        &script,
        &json!({"devices": [{"kind": "block", "match": {"serial": "S1"}}]}),
    );
    let rig = Rig::with(&vendors, Inventory { disks: disks.clone(), ..Inventory::default() }, LIMITS);
    let ending = rig.run("good_step");
    let result = ending.result.expect("a report");
    let log = result["clean_result"]["log"].as_str().expect("a log");
    // "of granted" in Base64.
    for expected in [
        "data:b2YgZ3JhbnRlZA==",
        "is not claimed by good",
        "is not granted to good",
        "\"size\":3",
        "\nabc\n",
        "its content has another digest",
    ] {
        assert!(log.contains(expected), "{expected:?} is not in: {log}");
    }
    assert_eq!(result["clean_result"]["report"], "kept");
}

#[test]
fn disks_that_it_does_not_care_for_are_left_to_the_generic_manager() {
    let vendors = Vendors::new();
    vendors.add_as(
        "good",
        "good",
        "on_detect() { answer '{\"support\":\"mainline\",\"claims\":[{\"kind\":\"block\",\"match\":{\"serial\":\"*\"}}]}'; }
         on_erase_capabilities() { answer '{\"methods\":[{\"method\":\"purge\",\"level\":\"purge\",\"expected\":\"zeroes\"}]}'; }
         on_erase() { answer '{\"record\":{\"method\":\"purge\",\"bytes_erased\":5}}'; }",
        &json!({"devices": [{"kind": "block", "match": {"serial": "S1"}}]}),
    );
    let rig = Rig::new(&vendors);
    let manager = rig.managers.last().expect("the external one");
    let disk =
        |serial: &str| Disk { name: "/dev/none".into(), serial: Some(serial.into()), ..Disk::default() };
    assert!(manager.erase_capabilities(&disk("S1")).methods.is_some_and(|methods| methods.len() == 1));
    assert!(manager.erase_capabilities(&disk("S2")).methods.is_none(), "it was not granted that one");
    let erase = |serial, method: &str| {
        manager.erase(&EraseParams { disk: disk(serial), method: method.into() }, &StepContext::new())
    };
    assert_eq!(erase("S1", "purge").expect("a record").bytes_erased, 5);
    for (serial, method) in [("S2", "purge"), ("S1", "other")] {
        let declined = erase(serial, method);
        assert!(matches!(declined, Err(hwm_sdk::StepError::Declined { .. })), "{declined:?}");
    }
}
