//! The controller on a copy of a filled database.

use super::Place;
use super::fill::Filled;
use super::http::{Client, request};
use super::tls::{ADDRESS, Identity};
use crate::cpu;
use anyhow::{Context, Result, ensure};
use contract::process::{Daemon, free_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(120);
const STOP: Duration = Duration::from_secs(30);
/// Between two looks at whether it serves.
const LOOK: Duration = Duration::from_millis(2);

/// A running controller.
pub struct Serving {
    /// Where its API listens.
    pub address: SocketAddr,
    /// From its start until it answered.
    pub start: Duration,
    process: Daemon,
}

impl Serving {
    /// Starts the controller of `place` on a copy of this database in `dir`, which is new, with the default settings but for those
    /// of `place`, the limit of requests and authentication, and two agents' settings without which their heartbeats would not be
    /// accepted.
    pub fn start(place: Place<'_>, filled: &Filled, dir: &Path) -> Result<Self> {
        let state = dir.join("state");
        std::fs::create_dir_all(&state)?;
        for file in ["anneal.sqlite", "database.key"] {
            std::fs::copy(filled.directory.join(file), state.join(file))?;
        }
        Self::start_again(place, dir)
    }

    /// The same on the database that is there.
    pub fn start_again(place: Place<'_>, dir: &Path) -> Result<Self> {
        Self::launch(place, dir, None)
    }

    /// The same with TLS, in [`super::tls::namespace`].
    pub fn start_with_tls(place: Place<'_>, dir: &Path, identity: &Identity) -> Result<Self> {
        Self::launch(place, dir, Some(identity))
    }

    fn launch(place: Place<'_>, dir: &Path, identity: Option<&Identity>) -> Result<Self> {
        let at = identity.map_or(Ipv4Addr::LOCALHOST, |_| ADDRESS);
        let address = SocketAddr::from((at, free_port()?));
        let config = dir.join("controller.toml");
        let cache = place.node_cache_mib.map(|mib| format!("node_cache_mib = {mib}\n")).unwrap_or_default();
        let tls = identity.map(|identity| {
            // All agents of the measurement have one address.
            format!(
                "tls_certificate = {:?}\ntls_key = {:?}\n[connections]\nagents_per_address = 256\n",
                identity.certificate, identity.key
            )
        });
        let tls = tls.unwrap_or_default();
        let text = format!(
            "{cache}state_dir = {:?}\n[api]\nlisten = [\"{address}\"]\nauth_strategy = \"noauth\"\n{tls}[agent]\nrequests_per_s = 0\nlookup_without_nonce = true\n",
            dir.join("state")
        );
        std::fs::write(&config, text)?;
        let begun = Instant::now();
        let mut program = Command::new(place.controller);
        let mut process = Daemon::start(program.arg("--config").arg(&config), &dir.join("controller.log"))?;
        // Off loopback, agents alone are served without users.
        let ask = request("GET", if identity.is_some() { "/" } else { "/v1/nodes?limit=1" }, None);
        let connect = || match identity {
            Some(identity) => Client::connect_tls(address, &identity.client),
            None => Client::connect(address),
        };
        while connect().and_then(|mut client| Ok(client.send(&ask)?.0)).ok() != Some(200) {
            process.ensure_running()?;
            ensure!(begun.elapsed() < START, "the controller does not serve; see {}", dir.display());
            std::thread::sleep(LOOK);
        }
        Ok(Self { address, start: begun.elapsed(), process })
    }

    /// Where it is, and its process.
    pub fn to(&self) -> (SocketAddr, u32) {
        (self.address, self.process.id())
    }

    /// Waits until it rests: after its start it checks the whole database, which takes one processor some seconds.
    pub fn rested(&self) -> Result<()> {
        const BUSY: Duration = Duration::from_millis(30);
        let begun = Instant::now();
        let mut before = cpu::of_group(self.process.id())?;
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let after = cpu::of_group(self.process.id())?;
            if after.saturating_sub(before) < BUSY {
                return Ok(());
            }
            ensure!(begun.elapsed() < START, "the controller does not come to rest");
            before = after;
        }
    }

    /// MiB of memory that are resident.
    pub fn resident_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }

    /// Stops it as systemd does.
    pub fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(i32::try_from(self.process.id())?), Signal::SIGTERM)?;
        let begun = Instant::now();
        while self.process.ended()?.is_none() {
            ensure!(begun.elapsed() < STOP, "the controller does not stop");
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}
