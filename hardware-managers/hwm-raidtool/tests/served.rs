//! The same manager as a program of its own, as an agent starts it.

use crate::rig::Rig;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

#[test]
fn the_program_speaks_the_protocol_with_progress_and_ends_when_asked() {
    let rig = Rig::new();
    let (ours, theirs) = UnixStream::pair().unwrap();
    // A shell puts the socket onto file descriptor 3.
    let mut program = Command::new("sh")
        .args(["-c", r#"exec "$0" "$1" 3<&0 </dev/null"#, env!("CARGO_BIN_EXE_hwm-raidtool")])
        .arg(rig.tool())
        .env("ANNEAL_HWM_FD", "3")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(ours.try_clone().unwrap()).lines();
    let mut id = 0;
    let mut ask = |method: &str, params: Value| {
        id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (&ours).write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut notifications = Vec::new();
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["id"] == id {
                return (line, notifications);
            }
            notifications.push(line);
        }
    };
    let (hello, _) = ask("hello", json!({"protocol_versions": [1], "agent_version": "0"}));
    assert_eq!(
        (&hello["result"]["name"], &hello["result"]["protocol_version"]),
        (&json!("raid_tool"), &json!(1))
    );
    let inventory = serde_json::to_value(agent_protocol::inventory::Inventory::default()).unwrap();
    let (detected, _) = ask("detect", json!({ "inventory": inventory }));
    assert_eq!(detected["result"]["support"], "mainline");
    assert_eq!(detected["result"]["claims"], json!([{"kind": "pci", "match": {"class": "0x0104*"}}]));
    assert_eq!(ask("init", json!({})).0["result"], json!({}));
    let (patch, _) = ask("inventory", json!({}));
    assert_eq!(patch["result"]["patch"]["raid"]["physical_disks"].as_array().map(Vec::len), Some(5));
    let (steps, _) = ask("steps", json!({"kind": "clean"}));
    assert_eq!(steps["result"]["steps"][0]["step"], "create_configuration");

    let node = json!({"target_raid_config": {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}});
    let run =
        |step: &str| json!({"kind": "clean", "interface": "raid", "step": step, "args": {}, "node": node});
    let (answer, notifications) = ask("run", run("create_configuration"));
    assert_eq!(answer["result"]["result"]["logical_disks"][0]["raid_level"], "1", "{answer}");
    let percents: Vec<u64> = notifications
        .iter()
        .filter(|line| line["method"] == "progress")
        .filter_map(|line| line["params"]["percent"].as_u64())
        .collect();
    assert!(percents.is_sorted() && percents.contains(&50) && percents.last() == Some(&100), "{percents:?}");
    assert!(notifications.iter().any(|line| line["method"] == "log"));
    let (deleted, _) = ask("run", run("delete_configuration"));
    assert_eq!(deleted["result"]["result"], json!({"deleted": 1}));

    assert_eq!(ask("shutdown", json!({})).0["result"], json!({}));
    assert!(program.wait().unwrap().success());
}
