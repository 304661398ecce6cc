//! The real `anneal-agent` with hardware managers of vendors, a good one and hostile ones, over its API.
//!
//! Needs root and busybox.

use crate::controller;
use crate::remote;
use crate::vendor;

use controller::{Controller, Script};
use remote::Remote;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vendor::Vendors;

/// Killed when dropped.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn memory_kib(agent: &Agent) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.0.id())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Until the bomb has gone off, or the flood has come in.
async fn until_harmful(agent: &Agent, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !(if name == "bomb" { confined_processes() >= 15 } else { read_bytes(agent) > 256 << 20 }) {
        assert!(Instant::now() < deadline, "{name} does no harm");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Bytes that the agent has read from anywhere.
fn read_bytes(agent: &Agent) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{}/io", agent.0.id())).expect("its io");
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("rchar").parse().expect("a number")
}

/// Processes of shells that run as the users of the sandbox, those of other tests among them.
fn confined_processes() -> usize {
    let user = |path: std::path::PathBuf| -> Option<u32> {
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:\t"))?;
        line.split('\t').next()?.parse().ok()
    };
    let all = std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| user(entry.ok()?.path()));
    all.filter(|user| *user >= 1_700_000_000).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_managers_harm_nothing_but_their_own_steps() {
    let vendors = Vendors::new();
    vendors.add("good", "");
    vendors.add_as(
        "bomb",
        "bomb",
        // Its children stay, so that they can be counted at leisure; a child that may not fork dies.
        "on_run() { (while :; do busybox sleep 600 & done) & while :; do :; done; }",
        &json!({"pids": 20}),
    );
    vendors.add("flood", "on_run() { busybox yes; }");
    vendors.add(
        "burglar",
        "on_run() { echo no > /dev/vda; busybox mknod /scratch/sda b 8 0; busybox mount -t tmpfs none /scratch;
                    busybox nc -w 1 127.0.0.1 22; refuse -32003 'nothing to be had'; }",
    );
    vendors.add("late", "on_detect() { busybox sleep 60; }");
    vendors.add("generic_hardware_manager", "");
    let mut controller = Controller::start(Script { offer: true, ..Script::default() }).await;
    let arguments = [
        format!("--api-url={}", controller.url),
        format!("--pin={}", controller.pin),
        "--listen=127.0.0.1:0".to_owned(),
        format!("--external={}", vendors.path().display()),
    ];
    let agent =
        Command::new(env!("CARGO_BIN_EXE_anneal-agent")).args(arguments).stderr(Stdio::null()).spawn();
    let agent = Agent(agent.expect("started"));
    let remote = Remote::of(&controller.heartbeat().await);
    let before = memory_kib(&agent);

    let params = json!({ "node": {}, "ports": [] });
    let ask = json!({ "name": "clean.get_clean_steps", "params": params });
    let (_, steps) = remote.post(&ask, true).await;
    let steps = &steps["command_result"];
    let versions = &steps["hardware_manager_version"];
    for name in ["good", "bomb", "flood", "burglar"] {
        assert!(versions[name].as_str().is_some_and(|version| version.starts_with("1.0@")), "{versions}");
        assert_eq!(steps["clean_steps"][name][0]["step"], format!("{name}_step"));
    }
    assert_eq!(versions["late"], Value::Null, "it never got ready");
    assert!(versions["generic_hardware_manager"].as_str().is_some_and(|version| !version.contains('@')));

    let run = |step: &str, id: &str| {
        json!({
            "name": "clean.execute_clean_step", "anneal_command_id": id,
            "params": { "step": { "step": step }, "node": {}, "ports": [], "clean_version": versions },
        })
    };
    for name in ["bomb", "flood"] {
        let begun = remote.post(&run(&format!("{name}_step"), name), false).await;
        assert_eq!(begun.1["command_status"], "RUNNING", "{begun:?}");
        until_harmful(&agent, name).await;
        let cancel = json!({ "name": "anneal.cancel", "params": { "command_id": name } });
        remote.post(&cancel, true).await;
        let (_, ended) = remote.get(name, true).await;
        assert_eq!(ended["command_status"], "FAILED");
        let reported = ended["command_error"]["details"].as_str().expect("details");
        assert!(reported.contains("did not stop within 10 s"), "{reported}");
        let length = ended.to_string().len();
        assert!(length < 64 << 10, "{length} bytes of result");
    }
    let (_, burglary) = remote.post(&run("burglar_step", "burglar"), true).await;
    assert_eq!(burglary["command_error"]["details"], "nothing to be had");
    let log = burglary["command_result"]["clean_result"]["log"].as_str().expect("its log");
    for refused in ["/dev/vda: Read-only file system", "mknod: ", "mount: ", "Network is unreachable"] {
        assert!(log.contains(refused), "{refused:?} is not in: {log}");
    }
    for (step, expected) in [("good_step", json!({"by": "good"})), ("erase_devices", Value::Null)] {
        let (_, ended) = remote.post(&run(step, step), true).await;
        assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
        let result = &ended["command_result"]["clean_result"];
        assert!(*result == expected || result["note"].is_string(), "{ended}");
    }
    let (_, hardware) = remote.post(&json!({ "name": "poll.get_hardware_info", "params": {} }), true).await;
    let managers = hardware["command_result"]["anneal"]["hardware_managers"].as_array().expect("managers");
    let late = managers.iter().find(|manager| manager["name"] == "late").expect("its report");
    assert_eq!(late["state"], "failed");
    assert_eq!(late["records"][0]["what"], "detect was not answered within 6 s");
    let grown = memory_kib(&agent) - before;
    assert!(grown < 16 << 10, "the agent has grown by {grown} KiB");
}
