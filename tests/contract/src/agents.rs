//! Agents in their cage.

use crate::World;
use anyhow::{Context, Result};
use contract::process::{Daemon, free_port};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which agent boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// anneal-agent.
    Anneal,
    /// ironic-python-agent.
    Ipa,
}

/// All that is needed to boot a node's agent.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Which agent.
    pub kind: Kind,
    /// URL of the controller's API.
    pub api: String,
    /// MAC address of the node.
    pub mac: String,
    /// The node's only disk.
    pub disk: String,
    /// The program.
    program: PathBuf,
    /// Scratch directory of the scenario.
    dir: PathBuf,
}

impl Machine {
    /// A machine that boots `kind` and looks for a controller at `api`.
    pub fn new(world: &World, kind: Kind, api: &str, mac: &str, disk: &str) -> Self {
        let program = match kind {
            Kind::Anneal => world.bin_dir.join("anneal-agent"),
            Kind::Ipa => world.peers.program("ipa", "ironic-python-agent"),
        };
        let (api, mac, disk) = (api.to_owned(), mac.to_owned(), disk.to_owned());
        Self { kind, api, mac, disk, program, dir: world.dir.clone() }
    }

    /// Boots it for the `boot`-th time. Dropping the daemon is cutting the power.
    pub fn boot(&self, boot: usize) -> Result<Daemon> {
        let home = self.dir.join(format!("boot-{boot}"));
        std::fs::create_dir_all(&home)?;
        let cage = self.dir.join("cage.sh");
        std::fs::write(&cage, include_str!("../peers/cage.sh"))?;
        std::fs::set_permissions(&cage, std::fs::Permissions::from_mode(0o755))?;
        let port = free_port()?;
        let mut command = Command::new(&cage);
        command.args([Path::new(&self.disk), &home]).arg(&self.program);
        match self.kind {
            Kind::Anneal => {
                let here = format!("127.0.0.1:{port}");
                command.args([
                    "--api-url",
                    &self.api,
                    "--listen",
                    &here,
                    "--advertise",
                    &here,
                    "--mac",
                    &self.mac,
                ]);
                command.args(["--only-device", &self.disk, "--debug"]);
            }
            Kind::Ipa => {
                let config = include_str!("../peers/ipa.conf")
                    .replace("@API@", &self.api)
                    .replace("@PORT@", &port.to_string());
                let path = home.join("ipa.conf");
                std::fs::write(&path, config)?;
                command.arg("--config-file").arg(path);
                command.env("PYTHONPATH", self.plugin(&home)?);
                command.env("CONTRACT_DISK", &self.disk).env("CONTRACT_MAC", &self.mac);
            }
        }
        Daemon::start(&command, &self.dir.join(format!("agent-{boot}.log"))).context("the agent")
    }

    /// The hardware manager, laid out as pip would install it.
    fn plugin(&self, home: &Path) -> Result<PathBuf> {
        let plugin = home.join("plugin");
        let about = plugin.join("contract_one_disk-1.dist-info");
        std::fs::create_dir_all(&about)?;
        std::fs::write(plugin.join("one_disk.py"), include_str!("../peers/one_disk.py"))?;
        std::fs::write(
            about.join("METADATA"),
            "Metadata-Version: 2.1\nName: contract-one-disk\nVersion: 1\n",
        )?;
        std::fs::write(
            about.join("entry_points.txt"),
            "[ironic_python_agent.hardware_managers]\ncontract_one_disk = one_disk:OneDisk\n",
        )?;
        Ok(plugin)
    }
}
