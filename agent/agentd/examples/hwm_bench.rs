//! `cargo xtask bench hwm`: what an external hardware manager costs its host.
//!
//! Start: the same program, from the start of its process to its answer to `hello`, once confined and once by a plain
//! fork and exec, in turn; the medians of both. Memory: what the host grows by, with managers that are ready.

#[path = "../tests/vendor/mod.rs"]
mod vendor;

use agent_protocol::inventory::Inventory;
use hwm_host::{Externals, Limits, read};
use sandbox::{Grants, Program};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vendor::Vendors;

const PAIRS: usize = 300;
const MANAGERS: u64 = 20;
/// The goals of issue 5.
const GOAL_MS: f64 = 10.0;
const GOAL_KIB: u64 = 1024;
const HELLO: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"protocol_versions\":[1],\"agent_version\":\"0\"}}\n";

fn main() {
    let vendors = Vendors::new();
    (0..MANAGERS).for_each(|number| vendors.add(&format!("bench{number}"), ""));
    start(&vendors.path().join("bench0/root"));
    memory(vendors.path());
}

fn start(root: &Path) {
    let (mut confined, mut plain, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let one = start_confined(root);
        let other = start_plain(root);
        confined.push(one.as_secs_f64());
        plain.push(other.as_secs_f64());
        differences.push(one.as_secs_f64() - other.as_secs_f64());
    }
    println!("start to hello, median of {PAIRS} pairs:");
    println!(
        "  confined            {:8.3} ms (95 %: {:.3} ms)",
        at(&mut confined, 50),
        at(&mut confined, 95)
    );
    println!("  plain fork and exec {:8.3} ms (95 %: {:.3} ms)", at(&mut plain, 50), at(&mut plain, 95));
    let cost = at(&mut differences, 50);
    println!("  difference          {cost:8.3} ms (95 %: {:.3} ms)", at(&mut differences, 95));
    assert!(cost < GOAL_MS, "the goal is under {GOAL_MS} ms");
}

/// A percentile of seconds, in milliseconds.
fn at(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() - 1) * percent / 100] * 1000.0
}

fn start_confined(root: &Path) -> Duration {
    let program = Program {
        name: "bench".into(),
        root: root.into(),
        argv: vec!["/bin/sh".into(), "/manager".into()],
        environment: Vec::new(),
    };
    let begun = Instant::now();
    let (mut confined, _) = sandbox::start(&program, &Grants::default()).expect("started");
    hello(&confined.socket);
    let taken = begun.elapsed();
    confined.kill();
    taken
}

fn start_plain(root: &Path) -> Duration {
    let begun = Instant::now();
    let (socket, theirs) = UnixStream::pair().expect("a socket pair");
    let script = format!("exec 3<&0; . {}", root.join("manager").display());
    let mut child = Command::new(root.join("bin/sh"))
        .args(["-c", &script])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    hello(&socket);
    let taken = begun.elapsed();
    child.kill().expect("killed");
    child.wait().expect("reaped");
    taken
}

fn hello(mut socket: &UnixStream) {
    socket.write_all(HELLO).expect("asked");
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).expect("answered");
    assert!(line.contains("protocol_version"), "{line}");
}

fn memory(directory: &Path) {
    // Once beforehand: what the first manager costs is not each one's.
    let ready = |count: usize| {
        let sources = read(directory).into_iter().take(count).collect();
        let externals = Externals::new(sources, &BTreeSet::new(), &std::env::temp_dir(), Limits::default());
        let mut inventory = Inventory::default();
        externals.complete(&mut inventory);
        let reports = inventory.anneal.expect("managers").hardware_managers;
        assert!(reports.iter().all(|manager| manager.state == "ready"), "{reports:?}");
        externals
    };
    let first = ready(1);
    let before = resident_kib();
    let all = ready(usize::try_from(MANAGERS).expect("small"));
    let grown = resident_kib().saturating_sub(before);
    println!("memory of the host (anonymous, resident) with {MANAGERS} managers that are ready:");
    println!("  each                {:8} KiB", grown / MANAGERS);
    assert!(grown / MANAGERS < GOAL_KIB, "the goal is under {GOAL_KIB} KiB");
    drop((first, all));
}

/// `RssAnon` of proc(5).
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
