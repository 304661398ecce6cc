//! A name server on the nodes' network.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Result;

use crate::process::{Daemon, leashed};

/// dnsmasq; stops when dropped.
#[derive(Debug)]
pub struct NameServer {
    daemon: Daemon,
}

impl NameServer {
    /// Knows one name, which is `host`, and nothing else. It logs in `dir`.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(dir: &Path, address: Ipv4Addr, name: &str, host: Ipv4Addr) -> Result<Self> {
        let mut command = leashed("dnsmasq");
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--user=root"]);
        command.args(["--bind-interfaces", "--no-resolv", "--no-hosts", "--local=/#/"]);
        command.args(["--log-queries", "--log-facility=-"]);
        command.arg(format!("--listen-address={address}")).arg(format!("--address=/{name}/{host}"));
        Ok(Self { daemon: Daemon::start("dnsmasq", command, &dir.join("dnsmasq.log"))? })
    }

    /// What it was asked.
    #[must_use]
    pub fn log(&self) -> &Path {
        self.daemon.log()
    }
}
