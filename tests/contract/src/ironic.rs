//! A real Ironic: API and conductor in one process, on loopback.

use crate::World;
use crate::network::Network;
use crate::process::{Daemon, check, free_port, wait_until};
use crate::tool::Tool;
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

/// It takes a few seconds to start; a loaded machine takes longer.
const START: Duration = Duration::from_secs(120);

/// A running Ironic.
pub struct Ironic {
    /// URL of its API.
    pub endpoint: String,
    /// What its nodes boot.
    pub network: Network,
    _process: Daemon,
}

impl Ironic {
    /// Starts one with an empty database and waits until its conductor serves `fake-hardware`.
    pub fn start(world: &World) -> Result<Self> {
        let port = free_port()?;
        let dir = world.dir.join("ironic");
        std::fs::create_dir_all(dir.join("state/certificates"))?;
        let config = include_str!("../peers/ironic.conf")
            .replace("@DIR@", &dir.display().to_string())
            .replace("@PORT@", &port.to_string());
        let path = dir.join("ironic.conf");
        std::fs::write(&path, config)?;
        let mut schema = Command::new(world.peers.program("ironic", "ironic-dbsync"));
        check(schema.arg("--config-file").arg(&path).arg("create_schema"))?;
        let mut command = Command::new(world.peers.program("ironic", "ironic"));
        command.arg("--config-file").arg(&path);
        let mut process = Daemon::start(&command, &world.dir.join("ironic.log"))?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let tool = Tool::anneal(world, &endpoint);
        wait_until("Ironic serves fake-hardware", START, || {
            process.ensure_running()?;
            let drivers = tool.json(&["driver", "list"]).unwrap_or_default();
            Ok(drivers.as_array().is_some_and(|list| list.iter().any(|one| one["name"] == "fake-hardware")))
        })
        .context("Ironic")?;
        let network = Network::Ironic { api: endpoint.clone() };
        Ok(Self { endpoint, network, _process: process })
    }
}
