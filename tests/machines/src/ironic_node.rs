//! A node of a real Ironic: powered by Redfish, and enrolled as `docs/replace-ipa.md` says, with our kernel and ramdisk, or with our
//! ISO.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use lab::disk::DiskSpec;
use lab::machine::Machine;
use lab::net::Bridge;
use lab::node::{Firmware, NodeSpec};
use lab::redfish::media::{DriveQuirks, MediaQuirks};
use lab::redfish::{BmcConfig, RedfishBmc};
use lab::site::{ADDRESS, BMC_PASSWORD, BMC_USER};
use lab::timeline::Timeline;
use lab::{binaries, wait};
use serde_json::Value;

use crate::judges::ironic::{self, Ironic};
use crate::page::block;
use crate::stage::{LONG, NODE, Stage};

const MAC: &str = "52:54:00:a4:ea:01";

/// The page, whose `driver_info` is used with the lab's values.
pub const PAGE: &str = include_str!("../../../docs/replace-ipa.md");

/// How Ironic boots it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By iPXE.
    Ipxe,
    /// By virtual media, from our ISO as it is.
    ReadyIso,
    /// By virtual media, from an ISO that Ironic makes of our kernel and ramdisk.
    MadeIso,
}

impl Way {
    fn boot_interface(self) -> &'static str {
        match self {
            Self::Ipxe => "boot=ipxe",
            Self::ReadyIso | Self::MadeIso => "boot=redfish-virtual-media",
        }
    }

    /// The block of the page with its `driver_info`.
    fn block(self) -> &'static str {
        match self {
            Self::Ipxe => "sh ipxe",
            Self::ReadyIso => "sh iso",
            Self::MadeIso => "sh media",
        }
    }
}

/// The node, and the Ironic that it belongs to.
pub struct IronicNode {
    pub ironic: Ironic,
    pub machine: Machine,
    /// What it writes to its serial port.
    pub console: PathBuf,
    /// Its BMC.
    pub bmc: RedfishBmc,
}

impl IronicNode {
    /// As [`IronicNode::enrol_by`], by iPXE.
    pub async fn enrol(
        stage: &Stage,
        firmware: Firmware,
        disks: Vec<DiskSpec>,
        more: &[&str],
    ) -> Result<Self> {
        Self::enrol_by(Way::Ipxe, stage, firmware, disks, more).await
    }

    /// Starts all of it and enrols the node, with these words more for `anneal node create`; it is manageable then.
    pub async fn enrol_by(
        way: Way,
        stage: &Stage,
        firmware: Firmware,
        disks: Vec<DiskSpec>,
        more: &[&str],
    ) -> Result<Self> {
        let bridge = Bridge::create("br0", &format!("{ADDRESS}/24"))?;
        bridge.tap("tap1")?;
        let mut spec = NodeSpec::new(NODE, firmware, MAC, "tap1", stage.dir.join(NODE))?;
        spec.disks = disks;
        if firmware.is_uefi() && way == Way::Ipxe {
            // As Ironic has it, the kernel's EFI stub takes the ramdisk from iPXE, and both have a copy.
            spec.memory_mib = 512;
        }
        let console = spec.serial_log();
        let machine = Machine::new(spec, Timeline::default());
        let (username, password) = (BMC_USER.to_owned(), BMC_PASSWORD.to_owned());
        let config = BmcConfig { address: (ADDRESS, 8001).into(), username, password, tls: true };
        let drives = vec![DriveQuirks::cd("1"), DriveQuirks::stick("2")];
        let media = MediaQuirks { drives, ..MediaQuirks::default() };
        let bmc = RedfishBmc::start_with(machine.clone(), config, media).await?;
        let ironic = Ironic::start(&stage.dir, "br0", ADDRESS)?;

        let image = binaries::image_dir()?.canonicalize()?;
        let mut words = vec!["node", "create", "--driver", "redfish", "--name", NODE, "--mac", MAC];
        let share = ironic::share(&stage.dir).display().to_string();
        let places = [
            ("/usr/share/anneal/anneal.iso", format!("{share}/anneal.iso")),
            ("/usr/share/anneal", image.display().to_string()),
        ];
        let lines = driver_info(way, &places, &bmc.url())?;
        lines.iter().for_each(|line| words.extend(["--driver-info", line]));
        words.extend(["--interface", way.boot_interface(), "--interface", "deploy=direct"]);
        words.extend(more);
        let node = Self { ironic, machine, console, bmc };
        node.ask(&words)?;
        node.ask(&["node", "manage", NODE, "--wait", "60"])?;
        Ok(node)
    }

    /// Asks Ironic with `anneal`, as long as the runtime's other worker carries the BMC.
    pub fn ask(&self, words: &[&str]) -> Result<Value> {
        tokio::task::block_in_place(|| self.ironic.ask(words))
    }

    /// Waits until the node is in `state`, and gives it; a failure ends the wait.
    pub async fn until_in(&self, state: &str) -> Result<Value> {
        let what = format!("the node to be {state}");
        let seen = wait::until(&what, LONG, async || {
            let node = self.ask(&["node", "show", NODE])?;
            let now = node["provision_state"].as_str().unwrap_or_default();
            ensure!(now == state || !now.ends_with(" failed"), "{now}: {}", node["last_error"]);
            Ok((now == state).then_some(node))
        });
        seen.await.with_context(|| wait::tail(&self.console, 3000))
    }
}

/// The lines `--driver-info KEY=VALUE` of the page, with the values that are here. `places`: what stands there for a directory.
fn driver_info(way: Way, places: &[(&str, String)], bmc: &str) -> Result<Vec<String>> {
    let command = block(PAGE, way.block())?;
    ensure!(command.contains(&way.boot_interface().replace('=', "-interface ")), "another way: {command}");
    let here = |line: &str| {
        let mut line = line.trim_end_matches('\\').trim().trim_matches('\'').to_owned();
        for (there, here) in places {
            line = line.replace(&format!("file://{there}"), &format!("file://{here}"));
        }
        line.replace("https://10.1.0.7", bmc)
            .replace("=admin", &format!("={BMC_USER}"))
            .replace("=PASSWORD", &format!("={BMC_PASSWORD}"))
            .replace("SYSTEM", RedfishBmc::system_id())
    };
    let lines: Vec<String> =
        command.lines().filter_map(|line| line.trim().strip_prefix("--driver-info ")).map(here).collect();
    ensure!(lines.len() >= 7, "the page has other lines of driver_info: {lines:?}");
    Ok(lines)
}
