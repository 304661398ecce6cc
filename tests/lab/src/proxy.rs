//! A forward proxy of others on the nodes' network: tinyproxy.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process::{Daemon, leashed};
use crate::wait;

const PORT: u16 = 3128;
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running proxy; dropping it kills it.
#[derive(Debug)]
pub struct ForwardProxy {
    address: Ipv4Addr,
    log: PathBuf,
    _daemon: Daemon,
}

impl ForwardProxy {
    /// Starts it at this address, for clients that know this user and password.
    ///
    /// # Errors
    /// When tinyproxy is not installed (Debian package tinyproxy-bin) or does not start.
    pub async fn start(dir: &Path, address: Ipv4Addr, user: &str, password: &str) -> Result<Self> {
        let (file, log) = (dir.join("tinyproxy.conf"), dir.join("tinyproxy.log"));
        let mut text = String::new();
        for (name, value) in [
            ("Port", PORT.to_string()),
            ("Listen", address.to_string()),
            ("Timeout", "60".to_owned()),
            ("MaxClients", "20".to_owned()),
            ("LogLevel", "Info".to_owned()),
            ("BasicAuth", format!("{user} {password}")),
        ] {
            writeln!(text, "{name} {value}")?;
        }
        std::fs::write(&file, text)?;
        let mut command = leashed("tinyproxy");
        command.arg("-d").arg("-c").arg(&file);
        let daemon = Daemon::start("tinyproxy", command, &log).context("Debian package tinyproxy-bin")?;
        wait::for_line(&log, "Accepting connections", START_LIMIT).await?;
        Ok(Self { address, log, _daemon: daemon })
    }

    /// What the settings `[images] http_proxy` and `https_proxy` name.
    #[must_use]
    pub fn url(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@{}:{PORT}", self.address)
    }

    /// Where it writes each request.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }
}
