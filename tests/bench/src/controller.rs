//! The controllers that are measured.

use crate::operator::Operator;
use anyhow::{Context, Result};
use contract::ironic::Ironic;
use contract::peers::{IRONIC, Peers};
use contract::process::{Daemon, free_port, wait_until};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;

const START: Duration = Duration::from_secs(30);
const DRIVER: &str = "fake-hardware";

/// Read after `tests/contract/peers/ironic.conf`: none of the limits that Ironic sets for the sake of a real
/// machine room stands in the way of a hundred nodes.
const IRONIC_SETTINGS: &str = "\
[conductor]
max_concurrent_clean = 500
workers_pool_size = 300
[agent]
require_tls = False
";

/// A running controller.
pub struct Controller {
    /// Its name and version.
    pub name: String,
    /// Its operator.
    pub operator: Operator,
    /// Where its API listens.
    pub address: SocketAddr,
    process: Process,
}

enum Process {
    Anneal(Daemon),
    Ironic(Ironic),
}

impl Controller {
    /// Starts the `anneal-controller` at `program` with an empty database in `dir`, and its own settings but
    /// for `require_tls`, without which no agent may serve plain HTTP.
    ///
    /// # Errors
    /// When it does not serve within half a minute.
    pub fn anneal(runtime: &Runtime, program: &Path, dir: &Path, tls: bool) -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let config = dir.join("controller.toml");
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = [\"{address}\"]\nauth_strategy = \"noauth\"\n[agent]\nrequests_per_s = 0\nlookup_without_nonce = true\nrequire_tls = {tls}\n",
            dir.join("state")
        );
        std::fs::write(&config, text)?;
        let operator = Operator::new(&format!("http://{address}"))?;
        let mut process =
            Daemon::start(Command::new(program).arg("--config").arg(&config), &dir.join("controller.log"))?;
        wait_until("anneal-controller serves", START, || {
            process.ensure_running()?;
            Ok(runtime.block_on(operator.has_driver(DRIVER)))
        })
        .with_context(|| program.display().to_string())?;
        Ok(Self { name: "anneal".to_owned(), operator, address, process: Process::Anneal(process) })
    }

    /// Starts the real Ironic, installed below `peers` if it is not yet, with an empty database in `dir`.
    ///
    /// # Errors
    /// When it cannot be installed, or does not serve within two minutes.
    pub fn ironic(runtime: &Runtime, peers: &Path, dir: &Path) -> Result<Self> {
        let peers = Peers::install(peers, &[IRONIC])?;
        let ironic = Ironic::start(&peers, dir, IRONIC_SETTINGS, |endpoint| {
            Operator::new(endpoint).is_ok_and(|operator| runtime.block_on(operator.has_driver(DRIVER)))
        })?;
        let operator = Operator::new(&ironic.endpoint)?;
        let address = ironic.endpoint.trim_start_matches("http://").parse().context("Ironic's address")?;
        Ok(Self { name: IRONIC.1.join(" "), operator, address, process: Process::Ironic(ironic) })
    }

    /// Group of its processes.
    pub fn group(&self) -> u32 {
        match &self.process {
            Process::Anneal(process) => process.id(),
            Process::Ironic(ironic) => ironic.process().id(),
        }
    }
}
