//! BMCs that speak IPMI, by OpenIPMI's `ipmi_sim`, and a client that reads their power state with `ipmitool` and does nothing else.

use crate::network::uuid;
use anyhow::{Context, Result, ensure};
use lab::ipmi_sim::{IpmiSim, USER};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use tokio::process::Command;

/// Simulators. Each is a process, and the controller asks a BMC for at most eight nodes at once.
const SIMS: u8 = 16;
/// `ipmi_sim` has no other cipher suite. Without it each first reading would try another one before.
const CIPHER: u8 = 3;

/// The simulators.
pub struct Sims(Vec<(SocketAddr, IpmiSim)>);

impl Sims {
    /// Starts them, each at an address of its own, with their files below `dir`.
    ///
    /// # Errors
    /// When openipmi is not installed.
    pub async fn start(dir: &Path) -> Result<Self> {
        let mut sims = Vec::new();
        for number in 0..SIMS {
            let dir = dir.join(format!("ipmi-{number}"));
            std::fs::create_dir(&dir)?;
            let address = free_port(Ipv4Addr::new(127, 96, 0, number + 1))?;
            sims.push((address, IpmiSim::start(&dir, address, None).await?));
        }
        Ok(Self(sims))
    }

    fn of(&self, number: u32) -> Result<&(SocketAddr, IpmiSim)> {
        let at = usize::try_from(number)? % self.0.len();
        self.0.get(at).context("a simulator")
    }

    /// What a node is enrolled with at a controller.
    ///
    /// # Errors
    /// When there is no simulator.
    pub fn enrolment(&self, number: u32) -> Result<Value> {
        let mut info = self.of(number)?.1.driver_info();
        info["ipmi_cipher_suite"] = CIPHER.into();
        Ok(json!({
            "uuid": uuid(number),
            "name": format!("fleet-{number}"),
            "driver": "ipmi",
            "driver_info": info,
            "deploy_interface": "direct",
        }))
    }

    /// Reads the power state of the simulator of a node.
    ///
    /// # Errors
    /// When it does not say what it is.
    pub async fn read(&self, number: u32) -> Result<()> {
        let address = self.of(number)?.0;
        let mut tool = Command::new("ipmitool");
        tool.args(["-I", "lanplus", "-H", &address.ip().to_string(), "-p", &address.port().to_string()]);
        tool.args(["-U", USER.0, "-E", "-C", &CIPHER.to_string(), "chassis", "power", "status"]);
        let output = tool.env("IPMI_PASSWORD", USER.1).output().await.context("ipmitool")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(said.starts_with("Chassis Power is"), "{said}{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// A port of this address on which no process listens now.
fn free_port(address: Ipv4Addr) -> Result<SocketAddr> {
    Ok(UdpSocket::bind((address, 0))?.local_addr()?)
}
