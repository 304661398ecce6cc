//! The controller under test: started with a fault point, killed by it or by us, and started again without.

use crate::database::{Database, OwnDatabase};
use anyhow::{Context, Result, ensure};
use bench::operator::Api;
use contract::process::{Daemon, free_port};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const START: Duration = Duration::from_secs(30);
/// Between two looks at what is awaited; everything is on this machine.
pub const LOOK: Duration = Duration::from_millis(4);
/// For anything that is awaited.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Quick, and nothing happens but what a story asks for.
const SETTINGS: &str = "\
[agent]
heartbeat_timeout_s = 5
lookup_without_nonce = true
[conductor]
agent_poll_s = 1
retry_pause_s = 1
power_sync_s = 0
agent_silence_s = 60
boot_timeout_s = 60
";

/// What a run starts.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The controller, built with debug assertions: only then it has fault points.
    pub program: &'a Path,
    /// Where it stores.
    pub database: &'a Database,
}

/// A commit to die at: `ANNEAL_FAULT` of `fault.rs` of both stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Before the commit is made, else after.
    pub before: bool,
    /// Leases and contact with agents are counted too.
    pub any: bool,
    /// Number of the commit, from 1.
    pub number: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = if self.before { "before" } else { "after" };
        write!(f, "{moment}{}:{}", if self.any { "-any" } else { "" }, self.number)
    }
}

/// A controller with a database of its own.
pub struct Controller {
    /// Where its API listens, also after a restart.
    pub address: SocketAddr,
    /// Its API.
    pub api: Api,
    /// How often it has died.
    pub deaths: usize,
    program: PathBuf,
    dir: PathBuf,
    starts: usize,
    process: Option<Daemon>,
    /// Outlives the process.
    _database: OwnDatabase,
}

impl Controller {
    /// Starts one with an empty database, and its state in `dir`.
    ///
    /// # Errors
    /// When it does not serve within half a minute.
    pub async fn start(setup: Setup<'_>, dir: &Path, fault: Option<Fault>) -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let state = dir.join("state");
        let database = setup.database.own();
        let text = format!(
            "state_dir = {state:?}\n[api]\nlisten = [\"{address}\"]\nauth_strategy = \"noauth\"\n{SETTINGS}{}",
            database.settings()
        );
        std::fs::write(dir.join("controller.toml"), text)?;
        let (program, dir) = (setup.program.to_owned(), dir.to_owned());
        let api = Api::new(&format!("http://{address}"), "latest", LIMIT)?;
        let mut new =
            Self { address, api, deaths: 0, program, dir, starts: 0, process: None, _database: database };
        new.launch(fault).await?;
        Ok(new)
    }

    async fn launch(&mut self, fault: Option<Fault>) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(self.dir.join("controller.toml"));
        match fault {
            Some(fault) => command.env("ANNEAL_FAULT", fault.to_string()),
            None => command.env_remove("ANNEAL_FAULT"),
        };
        self.starts += 1;
        let log = self.dir.join(format!("controller-{}.log", self.starts));
        let mut process = Daemon::start(&command, &log)?;
        let begun = Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            process.ensure_running().with_context(|| format!("see {}", log.display()))?;
            ensure!(begun.elapsed() < START, "anneal-controller does not serve within {START:?}");
            tokio::time::sleep(LOOK).await;
        }
        self.process = Some(process);
        Ok(())
    }

    /// Starts it again if its fault point has killed it.
    ///
    /// # Errors
    /// When it ended in any other way, or died again.
    pub async fn revive(&mut self) -> Result<()> {
        let ended = self.process.as_mut().and_then(|process| process.ensure_running().err());
        let Some(ended) = ended else { return Ok(()) };
        let status = ended.to_string();
        ensure!(status.contains("signal: 9"), "anneal-controller was not killed but {status}");
        ensure!(self.deaths == 0, "anneal-controller was killed twice: {status}");
        self.again().await
    }

    /// `kill -9`, and a start without fault.
    ///
    /// # Errors
    /// When it does not serve again.
    pub async fn kill(&mut self) -> Result<()> {
        self.again().await
    }

    async fn again(&mut self) -> Result<()> {
        self.deaths += 1;
        // Killed when dropped, and waited for: its lock on the database is free then.
        drop(self.process.take());
        self.launch(None).await
    }
}
