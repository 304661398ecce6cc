//! Processes that end with the scenario, and their logs.

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// A process in a group of its own, killed with the group when dropped: as a power cut would.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts `command`; what it says goes to `log`. It dies with the thread that started it, also when that
    /// is killed.
    ///
    /// # Errors
    /// When the log cannot be written or the program cannot be started.
    pub fn start(command: &Command, log: &Path) -> Result<Self> {
        // One that is started again goes on where it was.
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("{}", log.display()))?;
        let mut mortal = Command::new("setpriv");
        mortal.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => mortal.env(name, value),
                None => mortal.env_remove(name),
            };
        }
        let child = mortal
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{}", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// Its process id, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended, if it has.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Fails if the process has ended.
    ///
    /// # Errors
    /// See above.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => bail!("it ended early: {status}"),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // It may have ended by itself; then there is no group any more.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        if let Err(error) = self.child.wait() {
            eprintln!("waiting for process {}: {error}", self.child.id());
        }
    }
}

/// Runs `command` to its end; its output is in the error if it fails.
///
/// # Errors
/// When it cannot be started, or ends with anything but 0.
pub fn check(command: &mut Command) -> Result<Output> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output().with_context(|| name.clone())?;
    ensure!(
        output.status.success(),
        "{name}: {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout).trim(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output)
}

/// Runs `command` to its end with this on its standard input; what it complains of is in the error if it fails.
///
/// # Errors
/// When it cannot be started, or ends with anything but 0.
pub fn feed(command: &mut Command, input: &str) -> Result<()> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("stdin")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.trim());
    Ok(())
}

/// Asks `question` ten times a second until it says yes.
///
/// # Errors
/// When it fails, or has not said yes within `limit`.
pub fn wait_until(what: &str, limit: Duration, mut question: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !question().with_context(|| what.to_owned())? {
        ensure!(begun.elapsed() < limit, "{what}: not within {} s", limit.as_secs());
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// A port on loopback on which no process listens, and that no other caller in this process is given. It is below those
/// that the kernel gives to connections, so that it stays free while the process that it is meant for is dead.
///
/// # Errors
/// When all are taken.
pub fn free_port() -> Result<u16> {
    const FIRST: u16 = 10_240;
    const SPAN: u16 = 21_760;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two processes begin far from each other.
    let start = u16::try_from(std::process::id() % u32::from(SPAN))?;
    (0..SPAN)
        .map(|_| FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % SPAN)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port on loopback")
}

/// The last lines of every log in `dir` and in its directories.
pub fn print_tails(dir: &Path) {
    const LINES: usize = 15;
    let entries =
        |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<_> = entries(dir).collect();
    logs.extend(
        entries(dir).filter(|path| path.is_dir()).flat_map(|path| entries(&path).collect::<Vec<_>>()),
    );
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    for log in logs {
        let text = std::fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        println!("      --- {}", log.display());
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            println!("      {line}");
        }
    }
}
