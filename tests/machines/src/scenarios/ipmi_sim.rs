//! The ipmi driver against a BMC by other people: power on, one PXE boot, erase, power off.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::signatures::{Content, OLD_SYSTEM, Table};

use crate::judges::ipmi_sim::IpmiSim;
use crate::stage::{NODE, Stage, enrol, through, verb};

pub const ABOUT: &str = "outside judge: OpenIPMI's BMC simulator, driver ipmi";

pub async fn story(stage: Stage) -> Result<()> {
    // Bootable: without the order to boot from the network once, the old system would start.
    let disk = stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)?;
    let mut site = stage.site("").await?;
    let node = site.node(NODE, Firmware::Bios, vec![disk.spec.clone()]).await?;
    let sim = IpmiSim::start(node.machine.clone(), &stage.dir).await?;
    enrol(&site.controller, NODE, "ipmi", sim.driver_info(), &node.machine.spec().mac).await?;
    ensure!(!node.machine.is_on().await, "managing a node does not switch it on");

    let after = through(&site.controller, verb("provide"), "available").await?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    ensure!(after.0["power_state"] == "power off", "{}", after.0["power_state"]);
    let console = std::fs::read_to_string(node.machine.spec().serial_log())?;
    ensure!(!console.contains(OLD_SYSTEM), "the old system was booted");
    ensure!(node.machine.boot_choice().await.is_none(), "the order to boot from the network is still there");
    disk.ensure_erased()
}
