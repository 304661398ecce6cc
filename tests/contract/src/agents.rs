//! Agents in their cage.

use crate::World;
use crate::network::{BootScript, Network, parameter};
use crate::process::{Daemon, free_port};
use crate::vendor;
use anyhow::{Context, Result};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which agent boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// anneal-agent.
    Anneal,
    /// ironic-python-agent.
    Ipa,
}

/// What came of switching a machine on.
#[derive(Debug)]
pub enum Booted {
    /// Its agent runs.
    Agent(Daemon),
    /// It runs what is on its disk.
    Disk,
    /// Its firmware waits for the boot script, and asks again.
    Waits,
}

/// All that is needed to boot a node's agent.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Which agent.
    pub kind: Kind,
    /// What it finds when it boots.
    pub network: Network,
    /// MAC address of the node.
    pub mac: String,
    /// The node's only disk.
    pub disk: String,
    /// Whether its ironic-python-agent serves TLS.
    pub tls: Arc<AtomicBool>,
    /// The program.
    program: PathBuf,
    /// Scratch directory of the scenario.
    dir: PathBuf,
}

impl Machine {
    /// A machine on `network` whose ramdisk runs `kind`.
    pub fn new(world: &World, kind: Kind, network: &Network, mac: &str, disk: &str) -> Self {
        let program = match kind {
            Kind::Anneal => world.bin_dir.join("anneal-agent"),
            Kind::Ipa => world.peers.program("ipa", "ironic-python-agent"),
        };
        let (mac, disk) = (mac.to_owned(), disk.to_owned());
        let tls = Arc::new(AtomicBool::new(true));
        Self { kind, network: network.clone(), mac, disk, tls, program, dir: world.dir.clone() }
    }

    /// Switches it on while its node is in `provision_state`: the agent, if the network has a ramdisk for it. `boot`
    /// numbers the boots. Dropping the daemon is cutting the power.
    pub fn boot(&self, boot: usize, provision_state: &Value) -> Result<Booted> {
        let command_line = match self.network.boot_script(&self.mac, provision_state)? {
            BootScript::Ramdisk(command_line) => command_line,
            BootScript::Disk => return Ok(Booted::Disk),
            BootScript::Wait => return Ok(Booted::Waits),
        };
        let home = self.home(boot);
        // A NIC as sysfs shows it.
        let nic = home.join("net/eno1");
        std::fs::create_dir_all(nic.join("device"))?;
        for (name, value) in [("address", self.mac.as_str()), ("type", "1"), ("carrier", "1")] {
            std::fs::write(nic.join(name), format!("{value}\n"))?;
        }
        let cage = self.dir.join("cage.sh");
        std::fs::write(&cage, include_str!("../peers/cage.sh"))?;
        std::fs::set_permissions(&cage, std::fs::Permissions::from_mode(0o755))?;
        let mut command = Command::new(&cage);
        command.args([Path::new(&self.disk), &home]).arg(&self.program);
        match self.kind {
            Kind::Anneal => self.anneal(&mut command, &command_line)?,
            Kind::Ipa => self.ipa(&mut command, &command_line, &home)?,
        }
        // What a hardware manager was upgraded to stays.
        let version = self.home(boot.saturating_sub(1)).join("tmp/version");
        if version.exists() {
            std::fs::create_dir_all(home.join("tmp"))?;
            std::fs::copy(version, home.join("tmp/version"))?;
        }
        Daemon::start(&command, &self.log(boot)).context("the agent").map(Booted::Agent)
    }

    /// What the agent of a boot said.
    pub fn log(&self, boot: usize) -> PathBuf {
        self.dir.join(format!("agent-{boot}.log"))
    }

    /// The steps that `peers/one_disk.py` ran in a boot.
    pub fn ran(&self, boot: usize) -> Result<Vec<String>> {
        let file = self.home(boot).join("tmp/ran");
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Ends the step `wait_for_go` of a boot.
    pub fn go(&self, boot: usize) -> Result<()> {
        Ok(std::fs::write(self.home(boot).join("tmp/go"), "")?)
    }

    /// Scratch directory of a boot: the only place its agent can write to, and its `/etc`.
    pub fn home(&self, boot: usize) -> PathBuf {
        self.dir.join(format!("boot-{boot}"))
    }

    /// Outside the ramdisk it takes flags, not the kernel's words.
    fn anneal(&self, command: &mut Command, command_line: &str) -> Result<()> {
        for (key, flag) in [
            ("ipa-api-url", "--api-url"),
            ("ipa-inspection-callback-url", "--inspection-callback-url"),
            ("ipa-inspection-collectors", "--inspection-collectors"),
        ] {
            if let Some(value) = parameter(command_line, key) {
                command.args([flag, value]);
            }
        }
        if let Some(nonce) = parameter(command_line, "anneal.boot-nonce") {
            command.env("ANNEAL_BOOT_NONCE", nonce);
        }
        let here = format!("127.0.0.1:{}", free_port()?);
        command.args(["--listen", &here, "--advertise", &here, "--mac", &self.mac]);
        command.args(["--only-device", &self.disk, "--debug"]);
        let vendors = vendor::directory(&self.dir);
        if vendors.is_dir() {
            command.arg("--external").arg(vendors).env("CAGE_HOLDS_SANDBOXES", "yes");
        }
        Ok(())
    }

    /// It reads `/proc/cmdline`, which is a file of `home` in the cage.
    fn ipa(&self, command: &mut Command, command_line: &str, home: &Path) -> Result<()> {
        std::fs::write(home.join("cmdline"), format!("{command_line}\n"))?;
        let config = include_str!("../peers/ipa.conf")
            .replace("@PORT@", &free_port()?.to_string())
            .replace("@TLS@", if self.tls.load(Ordering::Relaxed) { "True" } else { "False" });
        let path = home.join("ipa.conf");
        std::fs::write(&path, config)?;
        command.arg("--config-file").arg(path);
        command.env("PYTHONPATH", self.plugin(home)?);
        command.env("CONTRACT_DISK", &self.disk).env("CONTRACT_MAC", &self.mac);
        Ok(())
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
