//! A login by OpenSSH's client, and one on a serial console.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::machine::Machine;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, timeout};

/// For one login, under emulation.
const LIMIT: Duration = Duration::from_secs(90);
/// A console that says nothing is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// A client with a key of its own, that remembers the host keys it has seen.
pub struct Client {
    dir: PathBuf,
    address: String,
    user: &'static str,
}

/// How a user shows who it is.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'a> {
    Password(&'a str),
    Key,
}

impl Client {
    /// One that works in `dir`.
    ///
    /// # Errors
    /// When there is no `ssh-keygen`.
    pub async fn new(dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(&dir)?;
        let client = Self { dir, address: String::new(), user: "rescue" };
        // ssh asks this program for the password: no terminal is needed, and no command line shows it.
        let ask = client.dir.join("ask");
        fs::write(&ask, "#!/bin/sh\necho \"$PASSWORD_OF_THE_TEST\"\n")?;
        fs::set_permissions(&ask, fs::Permissions::from_mode(0o755))?;
        client.keygen(&["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", "key"]).await?;
        Ok(client)
    }

    /// For the node at this address.
    pub fn set_address(&mut self, address: &str) {
        address.clone_into(&mut self.address);
    }

    /// The public key.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn public_key(&self) -> Result<String> {
        Ok(fs::read_to_string(self.dir.join("key.pub"))?.trim().to_owned())
    }

    /// Logs in and runs a command: what it prints, or what ssh says.
    ///
    /// # Errors
    /// When ssh cannot be started or does not end.
    pub async fn run(&self, proof: Proof<'_>, command: &str) -> Result<Result<String, String>> {
        let mut ssh = Command::new("ssh");
        ssh.current_dir(&self.dir).args([
            "-F",
            "none",
            "-o",
            "UserKnownHostsFile=known",
            "-o",
            "LogLevel=ERROR",
        ]);
        ssh.args(["-o", "StrictHostKeyChecking=accept-new", "-o", "NumberOfPasswordPrompts=1"]);
        match proof {
            Proof::Password(password) => ssh
                .args(["-o", "PubkeyAuthentication=no"])
                .env("SSH_ASKPASS", self.dir.join("ask"))
                .env("SSH_ASKPASS_REQUIRE", "force")
                .env("PASSWORD_OF_THE_TEST", password),
            Proof::Key => ssh.args(["-i", "key", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"]),
        };
        ssh.arg(format!("{}@{}", self.user, self.address)).arg(command).kill_on_drop(true);
        let output = timeout(LIMIT, ssh.output()).await.context("ssh does not end")?;
        let output = output.context("cannot start ssh (Debian package openssh-client)")?;
        Ok(match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        })
    }

    /// Fingerprints of the host keys seen.
    ///
    /// # Errors
    /// When none was seen.
    pub async fn host_keys(&self) -> Result<String> {
        self.keygen(&["-l", "-f", "known"]).await
    }

    async fn keygen(&self, words: &[&str]) -> Result<String> {
        let output = Command::new("ssh-keygen").args(words).current_dir(&self.dir).output().await;
        let output = output.context("cannot start ssh-keygen (Debian package openssh-client)")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "ssh-keygen {}: {said}", words.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The serial console of a machine, until its next power-on.
pub struct Console {
    stream: UnixStream,
    seen: String,
}

impl Console {
    /// Connects to it; its log goes on.
    ///
    /// # Errors
    /// When the machine is off or QEMU refuses.
    pub async fn of(machine: &Machine) -> Result<Self> {
        let socket = machine.spec().dir.join("console.sock");
        let data = json!({
            "addr": {"type": "unix", "data": {"path": socket}}, "server": true, "wait": false,
            "logfile": machine.spec().serial_log(), "logappend": true,
        });
        let backend = json!({"type": "socket", "data": data});
        machine.qmp("chardev-change", json!({"id": "serial0", "backend": backend})).await?;
        let stream = UnixStream::connect(&socket).await;
        Ok(Self { stream: stream.with_context(|| socket.display().to_string())?, seen: String::new() })
    }

    /// Logs in and runs a command, until `answer` is seen.
    ///
    /// # Errors
    /// When it is not seen; with what was.
    pub async fn log_in(&mut self, user: &str, password: &str, command: &str, answer: &str) -> Result<()> {
        for (say, then) in [("", "login: "), (user, "Password: "), (password, "# "), (command, answer)] {
            self.seen.clear();
            self.stream.write_all(format!("{say}\n").as_bytes()).await?;
            self.wait_for(then, say.is_empty()).await?;
        }
        Ok(())
    }

    async fn wait_for(&mut self, text: &str, ask_again: bool) -> Result<()> {
        let end = Instant::now() + LIMIT;
        let mut bytes = [0; 4096];
        while !self.seen.contains(text) {
            if Instant::now() > end {
                bail!("{text:?} is not on the console: {:?}", self.seen);
            }
            match timeout(ASK_AGAIN, self.stream.read(&mut bytes)).await {
                Ok(count) => self.seen.push_str(&String::from_utf8_lossy(&bytes[..count?])),
                Err(_) if ask_again => self.stream.write_all(b"\n").await?,
                Err(_) => {}
            }
        }
        Ok(())
    }
}
