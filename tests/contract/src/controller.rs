//! anneal-controller on loopback, with its database in the scenario's directory.

use crate::network::Network;
use crate::process::{Daemon, free_port, wait_until};
use crate::tool::Tool;
use crate::{Operators, World};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const START: Duration = Duration::from_secs(30);

/// Polls often, so that scenarios are short. No machine boots the files that the boot service names: agents run in
/// their cage and get the kernel command line that a booted kernel would get.
const SETTINGS: &str = "\
state_dir = '@DIR@/state'
[api]
listen = ['127.0.0.1:@API@']
@AUTH@
[boot]
enabled = true
address = '127.0.0.1'
http_port = @BOOT@
tftp = false
kernel = '@DIR@/vmlinuz'
initramfs = '@DIR@/initramfs'
rescue = '@DIR@/rescue'
[images]
hosts = ['127.0.0.0/8']
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
    /// Where it keeps its database, its keys and the logs of ramdisks.
    pub state_dir: PathBuf,
    command: Command,
    log: PathBuf,
    tool: Tool,
    /// Whether the API authenticates its clients.
    guarded: bool,
    process: Option<Daemon>,
}

impl Controller {
    /// Starts one with an empty database and waits until it answers.
    pub fn start(world: &World) -> Result<Self> {
        Self::with(world, "", "")
    }

    /// The same with more settings, in TOML: before the first table, and of the table `[conductor]`.
    pub fn with(world: &World, first: &str, conductor: &str) -> Result<Self> {
        let auth = match world.operators {
            Operators::Token => "",
            Operators::Noauth => "auth_strategy = 'noauth'",
        };
        Self::launch(world, &world.dir, first, auth, conductor, false)
    }

    /// One that asks for the passwords in the first file (htpasswd's), and obeys the roles in the second.
    pub fn with_users(world: &World, passwords: &str, roles: &str) -> Result<Self> {
        let dir = world.dir.join("guarded");
        std::fs::create_dir_all(&dir)?;
        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = dir.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        let auth = format!(
            "auth_strategy = 'http_basic'\nhttp_basic_auth_user_file = '{}'\nroles_file = '{}'",
            write("htpasswd", passwords)?.display(),
            write("roles", roles)?.display()
        );
        Self::launch(world, &dir, "", &auth, "", true)
    }

    fn launch(
        world: &World,
        dir: &Path,
        first: &str,
        auth: &str,
        conductor: &str,
        guarded: bool,
    ) -> Result<Self> {
        let (port, boot) = (free_port()?, free_port()?);
        for file in ["vmlinuz", "initramfs", "rescue"] {
            std::fs::write(dir.join(file), "")?;
        }
        let settings = SETTINGS
            .replace("@DIR@", &dir.display().to_string())
            .replace("@API@", &port.to_string())
            .replace("@AUTH@", auth)
            .replace("@BOOT@", &boot.to_string());
        let path = dir.join("controller.toml");
        std::fs::write(&path, format!("{first}{settings}{conductor}"))?;
        let mut command = Command::new(world.bin_dir.join("anneal-controller"));
        command.arg("--config").arg(&path);
        let endpoint = format!("http://127.0.0.1:{port}");
        let tool = Tool::anneal(world, &endpoint);
        let network = Network::Anneal { boot: format!("http://127.0.0.1:{boot}") };
        let (state_dir, log) = (dir.join("state"), dir.join("controller.log"));
        let mut controller =
            Self { endpoint, network, state_dir, command, log, tool, guarded, process: None };
        controller.start_again()?;
        Ok(controller)
    }

    /// The operators' token, if the controller asks for one.
    pub fn token(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.state_dir.join("operator.token")).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// `curl` as an operator.
    pub fn curl(&self) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error"]);
        if let Some(token) = self.token() {
            curl.args(["--user", &format!("contract:{token}")]);
        }
        curl
    }

    /// A program in the environment that `anneal env` prints, as the book says to set it.
    pub fn in_environment(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "eval \"$(\"$0\" env)\"; exec \"$@\""]).arg(self.tool.program()).arg(program);
        command.env("ANNEAL_ENDPOINT", &self.endpoint);
        command
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it, with whatever its database holds.
    pub fn start_again(&mut self) -> Result<()> {
        let mut process = Daemon::start(&self.command, &self.log)?;
        wait_until("anneal-controller answers", START, || {
            process.ensure_running()?;
            Ok(if self.guarded {
                self.tool.refused(&["driver", "list"]).is_ok_and(|said| said.contains("HTTP 401"))
            } else {
                self.tool.json(&["driver", "list"]).is_ok()
            })
        })
        .context("anneal-controller")?;
        self.process = Some(process);
        Ok(())
    }
}
