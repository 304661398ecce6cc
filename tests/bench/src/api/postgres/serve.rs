//! Controllers on a database of PostgreSQL.

use super::super::http::{Client, request};
use anyhow::{Result, ensure};
use contract::process::{Daemon, free_port};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(10);

/// A running controller.
pub struct Controller {
    /// Where its API listens.
    pub address: SocketAddr,
    process: Daemon,
}

impl Controller {
    /// Starts `program` as the controller `name`, with its state in `dir`, on this database; without one, on SQLite.
    pub fn start(program: &Path, dir: &Path, name: &str, database: Option<&str>) -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let config = dir.join(format!("{name}.toml"));
        let database = database.map(|url| format!("[database]\nurl = {url:?}\n")).unwrap_or_default();
        // One key for all: what one has encrypted, the others read.
        let text = format!(
            "host = {name:?}\nstate_dir = {:?}\ndatabase_key_file = {:?}\n{database}[api]\nlisten = [\"{address}\"]\n\
             auth_strategy = \"noauth\"\n[agent]\nrequests_per_s = 0\nlookup_without_nonce = true\n",
            dir.join(name),
            dir.join("database.key"),
        );
        std::fs::write(&config, text)?;
        let mut process = Daemon::start(
            Command::new(program).arg("--config").arg(&config),
            &dir.join(format!("{name}.log")),
        )?;
        let ask = request("GET", "/v1/nodes?limit=1", None);
        let begun = Instant::now();
        while Client::connect(address).and_then(|mut client| Ok(client.send(&ask)?.0)).ok() != Some(200) {
            process.ensure_running()?;
            ensure!(begun.elapsed() < START, "{name} does not serve; see {}", dir.display());
            std::thread::sleep(LOOK);
        }
        Ok(Self { address, process })
    }

    /// Where it is, and its process.
    pub fn to(&self) -> (SocketAddr, u32) {
        (self.address, self.process.id())
    }
}
