//! A BMC by OpenIPMI (Debian's `openipmi`): RMCP+ on a UDP port of loopback, cipher suite 3.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use lab::machine::Machine;
use lab::process::{Daemon, leashed};
use lab::wait;
use serde_json::{Value, json};

use super::chassis::Chassis;

const PORT: u16 = 9001;
const USER: &str = "admin";
const PASSWORD: &str = "ipmi-of-the-lab";
const START_LIMIT: Duration = Duration::from_secs(20);

/// One management controller with a chassis.
const CONTROLLER: &str =
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";

/// A running simulator in front of a machine.
#[derive(Debug)]
pub struct IpmiSim {
    _daemon: Daemon,
    _chassis: Chassis,
}

impl IpmiSim {
    /// Starts it with its files below `dir`.
    ///
    /// # Errors
    /// When openipmi is not installed, or it does not listen in time.
    pub async fn start(machine: Machine, dir: &Path) -> Result<Self> {
        let dir = dir.join("ipmi");
        fs::create_dir_all(&dir)?;
        let path = |name: &str| dir.join(name);
        let chassis = Chassis::serve(machine, &path("chassis.sock"))?;
        let this = std::env::current_exe()?;
        // ipmi_sim puts the address of the controller before the words.
        let program = format!(
            "#!/bin/sh\nshift\nexec '{}' --chassis '{}' \"$@\"\n",
            this.display(),
            path("chassis.sock").display()
        );
        fs::write(path("chassis"), program)?;
        fs::set_permissions(path("chassis"), fs::Permissions::from_mode(0o755))?;
        fs::write(path("controller"), CONTROLLER)?;
        fs::write(path("lan.conf"), lan_conf(&path("chassis")))?;

        let mut command = leashed("ipmi_sim");
        command.arg("-n").arg("-c").arg(path("lan.conf")).arg("-f").arg(path("controller"));
        command.arg("-s").arg(path("state"));
        let mut daemon = Daemon::start("ipmi_sim", command, &path("ipmi_sim.log"))?;
        let socket = format!(":{PORT:04X} ");
        wait::until("ipmi_sim to listen", START_LIMIT, || {
            let alive = daemon.ensure_alive();
            let socket = &socket;
            async move {
                alive?;
                let table = fs::read_to_string("/proc/thread-self/net/udp").context("UDP sockets")?;
                Ok(table.contains(socket).then_some(()))
            }
        })
        .await?;
        Ok(Self { _daemon: daemon, _chassis: chassis })
    }

    /// `driver_info` of Ironic's ipmi driver. Without a cipher suite: 17 is tried first, as anywhere.
    #[must_use]
    pub fn driver_info() -> Value {
        json!({
            "ipmi_address": "127.0.0.1",
            "ipmi_port": PORT,
            "ipmi_username": USER,
            "ipmi_password": PASSWORD,
        })
    }
}

fn lan_conf(chassis: &Path) -> String {
    let auths: String = ["callback", "user", "operator", "admin"]
        .map(|level| format!("    allowed_auths_{level} none md2 md5 straight\n"))
        .concat();
    format!(
        "name \"lab\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {PORT}\n    priv_limit admin\n\
         {auths}    guid a123456789abcdefa123456789abcdef\n  endlan\n  chassis_control \"{} 0x20\"\n\
         \x20 user 1 true \"\" \"\" user 10 none md2 md5 straight\n\
         \x20 user 2 true \"{USER}\" \"{PASSWORD}\" admin 10 none md2 md5 straight\n",
        chassis.display()
    )
}
