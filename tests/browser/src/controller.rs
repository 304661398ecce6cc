//! The controller whose page is used, and `anneal` next to it.

use anyhow::{Context, Result, anyhow};
use contract::process::{Daemon, check, free_port, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

const START: Duration = Duration::from_secs(60);

/// How people log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Not at all (`noauth`).
    Open,
    /// By a one-time link (`token`).
    Link,
    /// By user and password (`http_basic`): [`USERS`].
    Users,
}

/// Names, passwords and roles.
pub const USERS: [(&str, &str, &str); 4] = [
    ("alice", "alice's password", "admin"),
    ("mona", "mona's password", "member"),
    ("rita", "rita's password", "reader"),
    ("paul", "paul's password", "reader project-1"),
];

/// A controller with a directory of its own; it is killed when dropped.
pub struct Controller {
    /// What machines run on.
    pub runtime: tokio::runtime::Runtime,
    /// Where its API and its page are.
    pub address: SocketAddr,
    login: Login,
    dir: tempfile::TempDir,
    programs: [PathBuf; 2],
    process: Option<Daemon>,
}

impl Controller {
    /// Starts one with an empty database.
    ///
    /// # Errors
    /// When it cannot be built, or does not serve within a minute.
    pub fn start(login: Login) -> Result<Self> {
        let programs = [bench::build::controller()?, bench::build::program("anneal")?];
        Self::of(programs, login, directory()?)
    }

    /// Starts `anneal-controller` and uses `anneal`, the two programs, on the database in `state` of a directory; an empty one if
    /// there is none.
    ///
    /// # Errors
    /// When it does not serve within a minute.
    pub fn of(programs: [PathBuf; 2], login: Login, dir: tempfile::TempDir) -> Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        std::fs::write(dir.path().join("controller.toml"), configuration(login, address, dir.path())?)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut started = Self { runtime, address, login, dir, programs, process: None };
        started.run()?;
        Ok(started)
    }

    /// Starts the program, on what it left behind.
    ///
    /// # Errors
    /// When it does not serve within a minute.
    pub fn run(&mut self) -> Result<()> {
        let mut command = Command::new(&self.programs[0]);
        command.arg("--config").arg(self.dir.path().join("controller.toml"));
        let log = self.dir.path().join("controller.log");
        let mut process = Daemon::start(&command, &log)?;
        let serves = wait_until("anneal-controller serves", START, || {
            process.ensure_running()?;
            Ok(self.anneal(&["driver", "list"])?.status.success())
        });
        serves.with_context(|| std::fs::read_to_string(&log).unwrap_or_default())?;
        self.process = Some(process);
        Ok(())
    }

    /// Its process id.
    ///
    /// # Errors
    /// When it is not running.
    pub fn pid(&self) -> Result<u32> {
        Ok(self.process.as_ref().context("it is not running")?.id())
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops it in the middle of whatever it does, or lets it go on.
    ///
    /// # Errors
    /// When it is not running.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        let process = self.process.as_ref().context("it is not running")?;
        let signal = if frozen { Signal::SIGSTOP } else { Signal::SIGCONT };
        Ok(kill(Pid::from_raw(i32::try_from(process.id())?), signal)?)
    }

    /// The address of a place in the page: `nodes`.
    pub fn url(&self, place: &str) -> String {
        format!("http://{}/ui/#/{place}", self.address)
    }

    /// What a command of `anneal` printed, and how it ended.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn anneal(&self, words: &[&str]) -> Result<Output> {
        Ok(self.command(words).output()?)
    }

    /// What a command prints for programs.
    ///
    /// # Errors
    /// When it fails.
    pub fn json(&self, words: &[&str]) -> Result<Value> {
        let output = check(&mut self.command(&[words, &["--json"]].concat()))?;
        serde_json::from_slice(&output.stdout).with_context(|| words.join(" "))
    }

    /// Does what a command says.
    ///
    /// # Errors
    /// When it fails.
    pub fn does(&self, words: &[&str]) -> Result<()> {
        check(&mut self.command(words)).map(drop)
    }

    /// Enrols a node of fake-hardware, and gives its UUID.
    ///
    /// # Errors
    /// When it is refused.
    pub fn enrol(&self, name: &str, options: &[&str]) -> Result<String> {
        let words = [&["node", "create", "--driver", "fake-hardware", "--name", name], options].concat();
        Ok(self.json(&words)?["uuid"].as_str().context("a UUID")?.to_owned())
    }

    /// A member of a node, as the API shows it.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn node(&self, name: &str, member: &str) -> Result<Value> {
        Ok(self.json(&["node", "show", name])?[member].clone())
    }

    /// Waits until a node is in a provision state.
    ///
    /// # Errors
    /// When it is not there in time.
    pub fn reaches(&self, name: &str, state: &str) -> Result<()> {
        let what = format!("{name} is {state}");
        wait_until(&what, START, || Ok(self.node(name, "provision_state")? == state))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.programs[1]);
        command.args(words).env_clear().current_dir(self.dir.path());
        match self.login {
            Login::Open => command.env("ANNEAL_ENDPOINT", format!("http://{}", self.address)),
            Login::Link => {
                let socket = self.dir.path().join("state/api.sock");
                command.env("ANNEAL_ENDPOINT", format!("unix:{}", socket.display()))
            }
            Login::Users => {
                let (name, password, _) = USERS[0];
                command.env("ANNEAL_USERNAME", name).env("ANNEAL_PASSWORD", password);
                command.env("ANNEAL_ENDPOINT", format!("http://{}", self.address))
            }
        };
        command
    }
}

/// A new directory for a controller.
///
/// # Errors
/// When none can be made.
pub fn directory() -> Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("anneal-page-").tempdir()?)
}

fn configuration(login: Login, address: SocketAddr, dir: &Path) -> Result<String> {
    let strategy = match login {
        Login::Open => "auth_strategy = \"noauth\"".to_owned(),
        Login::Link => "auth_strategy = \"token\"".to_owned(),
        Login::Users => {
            let (mut passwords, mut roles) = (String::new(), String::new());
            for (name, password, role) in USERS {
                // As `htpasswd` writes it; of the least cost, since debug builds are slow.
                let hash = bcrypt::hash(password, 4)
                    .map_err(|error| anyhow!("{error}"))?
                    .replacen("$2b$", "$2y$", 1);
                passwords.push_str(&format!("{name}:{hash}\n"));
                roles.push_str(&format!("{name}: {role}\n"));
            }
            let files = [dir.join("htpasswd"), dir.join("roles")];
            std::fs::write(&files[0], passwords)?;
            std::fs::write(&files[1], roles)?;
            let [passwords, roles] = files;
            format!(
                "auth_strategy = \"http_basic\"\nhttp_basic_auth_user_file = {passwords:?}\nroles_file = {roles:?}"
            )
        }
    };
    // Agents come without a boot script and without TLS: what they do is what is looked at here, not how they boot.
    Ok(format!(
        "state_dir = {:?}\n[api]\nlisten = [\"{address}\"]\n{strategy}\n[agent]\nrequests_per_s = 0\nlookup_without_nonce = true\n\
         require_tls = false\n[bundles]\nallow_unsigned = true\n",
        dir.join("state")
    ))
}
