//! Programs that a test starts: logged to a file, killed when dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::wait;

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    log: PathBuf,
    child: Child,
}

/// A command that dies with the thread that starts it, whatever happens to this process.
///
/// `setpriv` (util-linux) sets the parent-death signal; doing so between fork and exec ourselves would
/// need `unsafe`. Start it from a thread that lives as long as the program shall: a runtime's worker.
#[must_use]
pub fn leashed(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).kill_on_drop(true);
    command
}

impl Daemon {
    /// Starts a program with its output appended to `log`. Make the command with [`leashed`].
    ///
    /// # Errors
    /// When the log cannot be written or the program cannot be started.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let open = || {
            File::options()
                .create(true)
                .append(true)
                .open(log)
                .with_context(|| format!("cannot write {}", log.display()))
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(open()?)
            .stderr(open()?)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.to_owned(), log: log.to_owned(), child })
    }

    /// Process id; `None` when it has ended and was waited for.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Where its output goes.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Fails, with the end of the log, when the program is not running any more.
    ///
    /// # Errors
    /// See above.
    pub fn ensure_alive(&mut self) -> Result<()> {
        let ended = self.child.try_wait().context("cannot ask for the exit status")?;
        match ended {
            None => Ok(()),
            Some(status) => {
                bail!("{} ended with {status}; {}", self.name, wait::tail(&self.log, 2000))
            }
        }
    }

    /// SIGKILL: what a crash or a power cut does.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot kill {}", self.name))
    }

    /// SIGTERM, and the exit status.
    ///
    /// # Errors
    /// When it does not end within `limit` (it is then killed).
    pub async fn terminate(mut self, limit: Duration) -> Result<ExitStatus> {
        if let Some(pid) = self.child.id() {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(pid)?);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)
                .with_context(|| format!("cannot stop {}", self.name))?;
        }
        match timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => bail!("{} did not end within {limit:?} of SIGTERM", self.name),
        }
    }

    /// Largest resident memory so far, in bytes (`VmHWM` of `/proc/PID/status`).
    ///
    /// # Errors
    /// When the process has ended.
    pub fn peak_memory(&self) -> Result<u64> {
        let pid = self.pid().with_context(|| format!("{} has ended", self.name))?;
        let path = format!("/proc/{pid}/status");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: u64 = kib.with_context(|| format!("{path} has no VmHWM"))?.trim().parse()?;
        Ok(kib * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_logged_measured_and_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut command = leashed("sh");
        command.args(["-c", "echo started; exec sleep 1000"]);
        let mut daemon = Daemon::start("sleeper", command, &log).unwrap();
        wait::for_line(&log, "started", Duration::from_secs(10)).await.unwrap();
        daemon.ensure_alive().unwrap();
        assert!(daemon.peak_memory().unwrap() > 0);
        let status = daemon.terminate(Duration::from_secs(10)).await.unwrap();
        assert!(!status.success());
    }

    #[tokio::test]
    async fn an_early_exit_is_reported_with_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut command = leashed("sh");
        command.args(["-c", "echo no such luck; exit 3"]);
        let mut daemon = Daemon::start("failing", command, &log).unwrap();
        let error = wait::until("its end", Duration::from_secs(10), async || Ok(daemon.ensure_alive().err()));
        let error = error.await.unwrap().to_string();
        assert!(error.contains("no such luck"), "{error}");
    }
}
