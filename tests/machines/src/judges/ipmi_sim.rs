//! OpenIPMI's `ipmi_sim` in front of a machine of the lab.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;
use lab::machine::Machine;
use serde_json::Value;

use super::chassis::Chassis;

const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 9001);

/// A running simulator in front of a machine.
#[derive(Debug)]
pub struct IpmiSim {
    sim: lab::ipmi_sim::IpmiSim,
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
        let sim =
            lab::ipmi_sim::IpmiSim::start(&dir, SocketAddr::from(ADDRESS), Some(&path("chassis"))).await?;
        Ok(Self { sim, _chassis: chassis })
    }

    /// `driver_info` of Ironic's ipmi driver.
    #[must_use]
    pub fn driver_info(&self) -> Value {
        self.sim.driver_info()
    }
}
