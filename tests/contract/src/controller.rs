//! anneal-controller on loopback, with its database in the scenario's directory.

use crate::World;
use crate::tool::Tool;
use anyhow::{Context, Result};
use contract::process::{Daemon, free_port, wait_until};
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_secs(30);

/// A running controller.
pub struct Controller {
    /// URL of its API.
    pub endpoint: String,
    _process: Daemon,
}

impl Controller {
    /// Starts one with an empty database and waits until it answers.
    pub fn start(world: &World) -> Result<Self> {
        let port = free_port()?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let state = world.dir.join("state");
        let path = world.dir.join("controller.toml");
        std::fs::write(&path, format!("state_dir = {state:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\n"))?;
        let mut command = Command::new(world.bin_dir.join("anneal-controller"));
        command.arg("--config").arg(&path);
        let mut process = Daemon::start(&command, &world.dir.join("controller.log"))?;
        let tool = Tool::anneal(world, &endpoint);
        wait_until("anneal-controller answers", START, || {
            process.ensure_running()?;
            Ok(tool.json(&["driver", "list"]).is_ok())
        })
        .context("anneal-controller")?;
        Ok(Self { endpoint, _process: process })
    }
}
