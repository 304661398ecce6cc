//! A machine whose node boots an agent. The agent's steps go on until the test ends them.

use crate::controller::Controller;
use agent_protocol::progress::{DiskProgress, Phase, Progress};
use anyhow::Result;
use bench::agent::{Agent, step};
use bench::heart::Heart;
use contract::process::wait_until;
use room::erased;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_secs(60);
/// Before a lookup or a heartbeat that brought nothing is sent again.
const AGAIN: Duration = Duration::from_millis(100);
/// Bytes of its disk.
pub const DISK: u64 = 480 << 30;
/// Serial number of its disk.
pub const SERIAL: &str = "S64FNE0R";
/// Name of its disk.
pub const DEVICE: &str = "/dev/nvme0n1";

/// An agent that looks itself up and beats as long as this lives. Its lookups are refused
/// while the node does not boot.
pub struct Machine {
    agent: Arc<Agent>,
    _life: JoinSet<()>,
}

impl Machine {
    /// The machine with this MAC address, whose agent has these clean steps, in this order.
    pub fn start(controller: &Controller, mac: &str, steps: &[&str]) -> Self {
        let listed = steps.iter().enumerate().map(|(place, name)| step(name, 100 - place));
        let disk = json!(erased("erase_devices", DEVICE, SERIAL, DISK));
        let agent = Agent::of(mac.to_owned(), listed.collect()).reporting(json!({ "disks": [disk] })).held();
        let agent = Arc::new(agent);
        let mut life = JoinSet::new();
        life.spawn_on(live(agent.clone(), controller.address), controller.runtime.handle());
        Self { agent, _life: life }
    }

    /// Reports how many bytes of its disk are erased, at 2 GiB/s.
    ///
    /// # Errors
    /// When no step goes on in time.
    pub fn erases(&self, done: u64) -> Result<()> {
        let disk = DiskProgress {
            device: DEVICE.to_owned(),
            serial: Some(SERIAL.to_owned()),
            phase: Phase::Erasing,
            method: Some("overwrite-zeroes".to_owned()),
            bytes_done: done,
            bytes_total: DISK,
            rate: 2 << 30,
            eta: Some((DISK - done) >> 31),
            stalled_since: None,
        };
        let waiting = DiskProgress {
            device: "/dev/sda".to_owned(),
            serial: Some("WD-0042".to_owned()),
            phase: Phase::Pending,
            method: None,
            bytes_done: 0,
            bytes_total: 0,
            rate: 0,
            eta: None,
            stalled_since: None,
        };
        let progress = Progress { percent: None, text: None, disks: vec![disk, waiting] };
        wait_until("a step goes on", LIMIT, || Ok(self.agent.report(progress.clone())))
    }

    /// Ends the step that goes on.
    ///
    /// # Errors
    /// When none goes on in time.
    pub fn ends_step(&self) -> Result<()> {
        wait_until("a step goes on", LIMIT, || Ok(self.agent.release()))
    }
}

async fn live(agent: Arc<Agent>, controller: std::net::SocketAddr) {
    let mut serving = JoinSet::new();
    let mut heart = match Heart::new(agent, controller, false, &mut serving).await {
        Ok(heart) => heart,
        Err(error) => return eprintln!("agent: {error:#}"),
    };
    while heart.look_up().await.is_err() {
        tokio::time::sleep(AGAIN).await;
    }
    loop {
        let pause = if heart.beat().await.is_ok() { heart.regular } else { AGAIN };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = heart.agent.process.ended.notified() => {}
            () = heart.agent.process.progressed.notified() => {}
        }
    }
}

/// What a node of such a machine is enrolled with.
pub fn options(mac: &str) -> Vec<&str> {
    vec!["--mac", mac, "--interface", "deploy=direct"]
}

/// The finding of the last certificate of a node.
pub fn finding(certificates: &Value) -> &str {
    certificates
        .as_array()
        .and_then(|list| list.last())
        .and_then(|one| one["finding"].as_str())
        .unwrap_or("none")
}
