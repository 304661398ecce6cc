//! The manager's process: started with its socket, watched, and gone in the end.

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes kept of the standard output and error of the manager.
const LOG_MAX: usize = 4 << 10;

/// A started manager. It is killed, with all it started, when this goes.
pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts the manager, and returns the agent's end of its socket.
    pub(crate) fn start(command: &[String]) -> Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair().context("no socket for the manager")?;
        // The shell moves the socket to where it belongs, which the standard library has no safe words for.
        let mut child = Command::new("/bin/sh")
            .args(["-c", r#"exec "$@" 3<&0 0</dev/null"#, "hwm"])
            .args(command)
            .env("ANNEAL_HWM_FD", "3")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let log = Arc::<Mutex<Vec<u8>>>::default();
        if let Some(output) = child.stdout.take() {
            keep(output, log.clone());
        }
        if let Some(output) = child.stderr.take() {
            keep(output, log.clone());
        }
        Ok((Self { child, log }, ours))
    }

    /// Its exit status, if it exits within this time.
    pub(crate) fn exit(&mut self, within: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Err(_) => return None,
                Ok(None) if Instant::now() >= end => return None,
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// The end of its standard output and error.
    pub(crate) fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&log).trim_end().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // Its group may be gone already.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

fn keep(mut output: impl Read + Send + 'static, log: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut piece) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.extend_from_slice(&piece[..count]);
            let spare = log.len().saturating_sub(LOG_MAX);
            log.drain(..spare);
        }
    });
}
