//! A BMC by other people: OpenIPMI's `ipmi_sim` (Debian's `openipmi`), RMCP+ on a UDP port, cipher suite 3.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::process::{Daemon, leashed};
use crate::wait;

/// User and password of each.
pub const USER: (&str, &str) = ("admin", "ipmi-of-the-lab");

const START_LIMIT: Duration = Duration::from_secs(20);
/// One management controller with a chassis.
const CONTROLLER: &str =
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";

/// A running simulator.
#[derive(Debug)]
pub struct IpmiSim {
    address: SocketAddr,
    _daemon: Daemon,
}

impl IpmiSim {
    /// Starts one that listens at `address`, with its files in `dir`, which exists. It asks the program `chassis` for power and boot device
    /// (`ipmi_lan.5`, "chassis_control"); without one, the machine is off.
    ///
    /// # Errors
    /// When openipmi is not installed, or it does not listen in time.
    pub async fn start(dir: &Path, address: SocketAddr, chassis: Option<&Path>) -> Result<Self> {
        let path = |name: &str| dir.join(name);
        fs::write(path("controller"), CONTROLLER)?;
        fs::write(path("lan.conf"), lan_conf(address, chassis))?;
        let mut command = leashed("ipmi_sim");
        command.arg("-n").arg("-c").arg(path("lan.conf")).arg("-f").arg(path("controller"));
        command.arg("-s").arg(path("state"));
        let mut daemon = Daemon::start("ipmi_sim", command, &path("ipmi_sim.log"))?;
        let port = format!(":{:04X} ", address.port());
        wait::until("ipmi_sim to listen", START_LIMIT, async || {
            daemon.ensure_alive()?;
            // Of the network namespace of this thread.
            let table = fs::read_to_string("/proc/thread-self/net/udp").context("UDP sockets")?;
            Ok(table.contains(&port).then_some(()))
        })
        .await?;
        Ok(Self { address, _daemon: daemon })
    }

    /// `driver_info` of Ironic's ipmi driver. It names no cipher suite: 17 is tried first, as anywhere.
    #[must_use]
    pub fn driver_info(&self) -> Value {
        json!({
            "ipmi_address": self.address.ip(),
            "ipmi_port": self.address.port(),
            "ipmi_username": USER.0,
            "ipmi_password": USER.1,
        })
    }
}

fn lan_conf(address: SocketAddr, chassis: Option<&Path>) -> String {
    let auths: String = ["callback", "user", "operator", "admin"]
        .map(|level| format!("    allowed_auths_{level} none md2 md5 straight\n"))
        .concat();
    let chassis = chassis.map(|program| format!("  chassis_control \"{} 0x20\"\n", program.display()));
    format!(
        "name \"lab\"\nset_working_mc 0x20\n  startlan 1\n    addr {} {}\n    priv_limit admin\n\
         {auths}    guid a123456789abcdefa123456789abcdef\n  endlan\n{}\
         \x20 user 1 true \"\" \"\" user 10 none md2 md5 straight\n\
         \x20 user 2 true \"{}\" \"{}\" admin 10 none md2 md5 straight\n",
        address.ip(),
        address.port(),
        chassis.unwrap_or_default(),
        USER.0,
        USER.1
    )
}
