//! The redfish driver against a BMC by other people, and a machine started by libvirt: power on, PXE boot,
//! erase, power off.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::signatures::{Content, OLD_SYSTEM, Table};

use crate::judges::sushy::Sushy;
use crate::stage::{NODE, Stage, enrol, through, verb};

pub const ABOUT: &str = "outside judge: sushy-emulator over libvirt, driver redfish";

pub async fn story(stage: Stage) -> Result<()> {
    // Bootable: without the order to boot from the network, the old system would start.
    let disk = stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)?;
    let mut site = stage.site("").await?;
    let node = site.node(NODE, Firmware::Bios, vec![disk.spec.clone()]).await?;
    let spec = node.machine.spec();
    let sushy = Sushy::start(spec, &stage.dir).await?;
    enrol(&site.controller, NODE, "redfish", Sushy::driver_info(), &spec.mac).await?;
    ensure!(!sushy.is_on().await?, "managing a node does not switch it on");

    let after = through(&site.controller, verb("provide"), "available").await?;
    ensure!(!sushy.is_on().await?, "an available node is off");
    ensure!(after.0["power_state"] == "power off", "{}", after.0["power_state"]);
    let console = std::fs::read_to_string(spec.serial_log())?;
    ensure!(!console.contains(OLD_SYSTEM), "the old system was booted");
    ensure!(console.contains("anneal-agent"), "the ramdisk was not booted");
    disk.ensure_erased()
}
