//! anneal-controller on loopback, with its database in the scenario's directory.

use crate::World;
use crate::network::Network;
use crate::process::{Daemon, free_port, wait_until};
use crate::tool::Tool;
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_secs(30);

/// Looks often, so that scenarios are short. Nothing boots from the files that the boot service names: agents run in
/// their cage, and are told what a kernel would be told.
const SETTINGS: &str = "\
state_dir = '@DIR@/state'
[api]
listen = ['127.0.0.1:@API@']
[boot]
enabled = true
address = '127.0.0.1'
http_port = @BOOT@
tftp = false
kernel = '@DIR@/vmlinuz'
initramfs = '@DIR@/initramfs'
[conductor]
agent_poll_s = 1
retry_pause_s = 1
";

/// A running controller.
pub struct Controller {
    /// URL of its API.
    pub endpoint: String,
    /// What its nodes boot.
    pub network: Network,
    _process: Daemon,
}

impl Controller {
    /// Starts one with an empty database and waits until it answers.
    pub fn start(world: &World) -> Result<Self> {
        Self::with(world, "", "")
    }

    /// The same with more settings, in TOML: before the first table, and of the table `[conductor]`.
    pub fn with(world: &World, first: &str, conductor: &str) -> Result<Self> {
        let (port, boot) = (free_port()?, free_port()?);
        for file in ["vmlinuz", "initramfs"] {
            std::fs::write(world.dir.join(file), "")?;
        }
        let settings = SETTINGS
            .replace("@DIR@", &world.dir.display().to_string())
            .replace("@API@", &port.to_string())
            .replace("@BOOT@", &boot.to_string());
        let path = world.dir.join("controller.toml");
        std::fs::write(&path, format!("{first}{settings}{conductor}"))?;
        let mut command = Command::new(world.bin_dir.join("anneal-controller"));
        command.arg("--config").arg(&path);
        let mut process = Daemon::start(&command, &world.dir.join("controller.log"))?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let tool = Tool::anneal(world, &endpoint);
        wait_until("anneal-controller answers", START, || {
            process.ensure_running()?;
            Ok(tool.json(&["driver", "list"]).is_ok())
        })
        .context("anneal-controller")?;
        let network = Network::Anneal { boot: format!("http://127.0.0.1:{boot}") };
        Ok(Self { endpoint, network, _process: process })
    }
}
