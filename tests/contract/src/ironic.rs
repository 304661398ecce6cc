//! A real Ironic: API and conductor in one process, on loopback.

use crate::peers::Peers;
use crate::process::{Daemon, check, free_port, wait_until};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// It takes a few seconds to start; a loaded machine takes longer.
const START: Duration = Duration::from_secs(120);

/// A running Ironic.
pub struct Ironic {
    /// URL of its API.
    pub endpoint: String,
    process: Daemon,
}

impl Ironic {
    /// Starts one in `dir` with an empty database and waits until `serves_drivers` says of its URL that a conductor
    /// serves what is needed. `settings` are read after `peers/ironic.conf` and win; in both `@DIR@` stands for the
    /// directory of its state and `@PORT@` for the port of its API.
    ///
    /// # Errors
    /// When it cannot be started, or does not serve the driver within two minutes.
    pub fn start(
        peers: &Peers,
        dir: &Path,
        settings: &str,
        mut serves_drivers: impl FnMut(&str) -> bool,
    ) -> Result<Self> {
        let port = free_port()?;
        let home = dir.join("ironic");
        std::fs::create_dir_all(home.join("state/certificates"))?;
        let filled = |text: &str| {
            text.replace("@DIR@", &home.display().to_string()).replace("@PORT@", &port.to_string())
        };
        let files = [
            (home.join("ironic.conf"), filled(include_str!("../peers/ironic.conf"))),
            (home.join("settings.conf"), filled(settings)),
        ];
        let mut schema = Command::new(peers.program("ironic", "ironic-dbsync"));
        let mut command = Command::new(peers.program("ironic", "ironic"));
        for (path, text) in &files {
            std::fs::write(path, text).with_context(|| format!("{}", path.display()))?;
            schema.arg("--config-file").arg(path);
            command.arg("--config-file").arg(path);
        }
        check(schema.arg("create_schema"))?;
        let mut process = Daemon::start(&command, &dir.join("ironic.log"))?;
        let endpoint = format!("http://127.0.0.1:{port}");
        wait_until("Ironic serves its drivers", START, || {
            process.ensure_running()?;
            Ok(serves_drivers(&endpoint))
        })
        .context("Ironic")?;
        Ok(Self { endpoint, process })
    }

    /// Its process.
    pub fn process(&self) -> &Daemon {
        &self.process
    }
}
