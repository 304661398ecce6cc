//! The controller that is attacked: all its ports open, with its default limits.

use anyhow::{Context, Result};
use bench::client::Route;
use bench::operator::{Api, Operator};
use contract::process::{Daemon, free_port};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// Known to every helper of this crate.
const VERSION: &str = "1.82";
/// Longest wait of an operator for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Operators work at different machines: one address has at most 128 connections (`[connections] operators_per_address`).
const DESK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OF_SILENT_BMCS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// A running controller; dropping it kills the process.
pub struct Controller {
    /// What enrols nodes and asks for verbs.
    pub operator: Operator,
    /// What asks for verbs of nodes whose BMCs are silent.
    pub of_silent_bmcs: Operator,
    /// The same API, asked directly.
    pub api: Api,
    /// The ports.
    pub ports: Ports,
    process: Daemon,
}

/// Where the controller listens.
#[derive(Clone)]
pub struct Ports {
    /// Operators, plain HTTP on loopback.
    pub operators: SocketAddr,
    /// Agents, TLS.
    pub agents: SocketAddr,
    /// Boot, plain HTTP.
    pub boot: SocketAddr,
    /// Of a client of the agents' port; one for all, since it remembers sessions.
    encrypted: Route,
}

/// What nodes boot.
pub struct BootFiles {
    /// The kernel.
    pub kernel: PathBuf,
    /// The initramfs.
    pub initramfs: PathBuf,
    /// Directory of the loaders of boot media.
    pub medium_loaders: Option<PathBuf>,
}

impl BootFiles {
    /// Files that no machine boots.
    fn of_no_machine(dir: &Path) -> Result<Self> {
        let file = dir.join("boot-file");
        std::fs::write(&file, "no machine of these tests boots it")?;
        Ok(Self { kernel: file.clone(), initramfs: file, medium_loaders: None })
    }

    /// The settings of `[boot]`.
    fn settings(&self) -> String {
        let loaders = self.medium_loaders.as_ref().map(|dir| format!("medium_loader_dir = {dir:?}\n"));
        format!(
            "kernel = {:?}\ninitramfs = {:?}\n{}",
            self.kernel,
            self.initramfs,
            loaders.unwrap_or_default()
        )
    }
}

impl Ports {
    /// How a client at `from` reaches the agents' port.
    pub fn to_agents(&self, from: Ipv4Addr) -> Route {
        Route { from, ..self.encrypted.clone() }
    }

    /// How a client at `from` reaches the boot port.
    pub fn to_boot(&self, from: Ipv4Addr) -> Route {
        Route { to: self.boot, from, tls: None, nonce: None }
    }
}

impl Controller {
    /// Starts the `anneal-controller` at `program` with an empty database in `dir`, on one processor if `pinned`.
    ///
    /// # Errors
    /// When it does not serve within a minute.
    pub async fn start(program: &Path, dir: &Path, pinned: bool) -> Result<Self> {
        let mut command = Command::new(if pinned { Path::new("taskset") } else { program });
        if pinned {
            command.args(["--cpu-list", "0"]).arg(program);
        }
        Self::begin(command, dir, Ipv4Addr::LOCALHOST, &BootFiles::of_no_machine(dir)?, "").await
    }

    /// The same, for nodes that boot these files.
    ///
    /// # Errors
    /// When it does not serve within a minute.
    pub async fn start_booting(program: &Path, dir: &Path, files: &BootFiles) -> Result<Self> {
        Self::begin(Command::new(program), dir, Ipv4Addr::LOCALHOST, files, "").await
    }

    /// Starts the `anneal-controller` at `program` with an empty database in `dir`. Nodes reach it at `address`, and `settings` are
    /// tables of its configuration in addition.
    ///
    /// # Errors
    /// When it does not serve within a minute.
    pub async fn start_at(program: &Path, dir: &Path, address: Ipv4Addr, settings: &str) -> Result<Self> {
        let files = BootFiles::of_no_machine(dir)?;
        Self::begin(Command::new(program), dir, address, &files, settings).await
    }

    async fn begin(
        mut command: Command,
        dir: &Path,
        address: Ipv4Addr,
        files: &BootFiles,
        settings: &str,
    ) -> Result<Self> {
        let port = || Ok::<_, anyhow::Error>(SocketAddr::from(([127, 0, 0, 1], free_port()?)));
        let (operators, agents, boot) = (port()?, port()?, SocketAddr::from((address, free_port()?)));
        let config = dir.join("controller.toml");
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = [\"{operators}\", \"0.0.0.0:{}\"]\nauth_strategy = \"noauth\"\n[boot]\n\
             enabled = true\naddress = \"{address}\"\nhttp_port = {}\ntftp = false\n{}{settings}",
            dir.join("state"),
            agents.port(),
            boot.port(),
            files.settings()
        );
        std::fs::write(&config, text)?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.arg("--config").arg(&config);
        let process = Daemon::start(&command, &dir.join("controller.log"))?;
        let endpoint = format!("http://{operators}");
        let encrypted = Route::encrypted(agents, Ipv4Addr::LOCALHOST)?;
        let ports = Ports { operators, agents, boot, encrypted };
        let from = |address: Ipv4Addr| Api::from_address(&endpoint, VERSION, PATIENCE, address.into());
        let (operator, of_silent_bmcs) = (Operator::new(&endpoint)?, Operator::of(from(OF_SILENT_BMCS)?));
        let mut started = Self { operator, of_silent_bmcs, api: from(DESK)?, ports, process };
        started.wait().await.with_context(|| program)?;
        Ok(started)
    }

    async fn wait(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !self.operator.has_driver("fake-hardware").await {
            self.process.ensure_running()?;
            anyhow::ensure!(begun.elapsed() < START, "it does not serve within {} s", START.as_secs());
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}
