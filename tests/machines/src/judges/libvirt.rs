//! libvirtd of our own, without systemd and separate from any other: its directories are laid over the system's in a
//! mount namespace, and a process namespace takes its machines with it when it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::process::{Daemon, leashed};
use lab::wait;
use tokio::process::Command;

const START_LIMIT: Duration = Duration::from_secs(90);

/// Places that libvirtd has built in. Ours are laid over them where only it sees it.
const PLACES: [&str; 5] =
    ["/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/run/libvirt"];

/// Nothing that needs systemd, cgroups or other users.
const QEMU_CONF: &str = "user = \"root\"\ngroup = \"root\"\ndynamic_ownership = 0\nremember_owner = 0\n\
    security_driver = \"none\"\ncgroup_controllers = []\nnamespaces = []\nstdio_handler = \"file\"\n";

/// Built in as the default user and group; Debian makes them with `libvirt-daemon-system`, which wants systemd.
const USERS: [(&str, &str); 2] = [
    ("/etc/passwd", "libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n"),
    ("/etc/group", "libvirt-qemu:x:64055:\nkvm:x:64056:\nlibvirt:x:64057:\n"),
];

/// A running libvirtd.
#[derive(Debug)]
pub struct Libvirt {
    socket: PathBuf,
    _daemon: Daemon,
}

impl Libvirt {
    /// Starts it with everything it writes below `dir`.
    ///
    /// # Errors
    /// When it is not installed, or does not answer in time.
    pub async fn start(dir: &Path) -> Result<Self> {
        let dir = dir.join("libvirt");
        let sockets = dir.join("sockets");
        fs::create_dir_all(&sockets)?;
        let mut script = String::from("set -e\n");
        for place in PLACES {
            let own = dir.join(place.trim_start_matches('/').replace('/', "-"));
            fs::create_dir_all(&own)?;
            fs::create_dir_all(place).with_context(|| format!("cannot create {place}"))?;
            script += &format!("mount --bind '{}' {place}\n", own.display());
        }
        for (file, lines) in USERS {
            let own = dir.join(Path::new(file).file_name().unwrap_or_default());
            let system = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
            fs::write(&own, format!("{}\n{lines}", system.trim_end()))?;
            script += &format!("mount --bind '{}' {file}\n", own.display());
        }
        fs::write(dir.join("etc-libvirt/qemu.conf"), QEMU_CONF)?;
        let config = dir.join("libvirtd.conf");
        fs::write(
            &config,
            format!(
                "unix_sock_dir = \"{}\"\nauth_unix_rw = \"none\"\nauth_unix_ro = \"none\"\n",
                sockets.display()
            ),
        )?;
        // Not exec: as process 1 it would have to reap machines that ended, and waits 40 s for each instead.
        script += &format!(
            "libvirtd --config '{}' --pid-file '{}' & wait $!\n",
            config.display(),
            dir.join("pid").display()
        );
        let mut command = leashed("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]);
        command.args(["sh", "-c", &script]);
        let mut daemon = Daemon::start("libvirtd", command, &dir.join("libvirtd.log"))?;
        let socket = sockets.join("libvirt-sock");
        wait::until("libvirtd to answer", START_LIMIT, || {
            let alive = daemon.ensure_alive();
            let asked = virsh(&socket, &["list"]);
            async move {
                alive?;
                Ok(asked.await.ok())
            }
        })
        .await?;
        Ok(Self { socket, _daemon: daemon })
    }

    /// How clients reach it.
    pub fn uri(&self) -> String {
        uri(&self.socket)
    }

    /// Runs `virsh`.
    ///
    /// # Errors
    /// What it says.
    pub async fn virsh(&self, words: &[&str]) -> Result<String> {
        virsh(&self.socket, words).await
    }
}

fn uri(socket: &Path) -> String {
    format!("qemu+unix:///system?socket={}", socket.display())
}

async fn virsh(socket: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new("virsh");
    command.args(["--connect", &uri(socket)]).args(words).kill_on_drop(true);
    let out = command.output().await.context("cannot start virsh (libvirt-clients)")?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "virsh {}: {}", words.join(" "), said.trim());
    Ok(String::from_utf8(out.stdout)?)
}
