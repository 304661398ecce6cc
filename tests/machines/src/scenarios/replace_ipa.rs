//! What `docs/replace-ipa.md` says, done: a real Ironic powers a server by Redfish, boots our kernel and ramdisk by iPXE,
//! and cleans it. Nothing in this scenario is our controller.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::signatures::{Content, Table};

use crate::ironic_node::IronicNode;
use crate::stage::{NODE, Stage};

pub const ABOUT: &str = "a real Ironic with our kernel and ramdisk, as docs/replace-ipa.md says: redfish, iPXE, erased, available";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?;
    let node = IronicNode::enrol(&stage, Firmware::Bios, vec![disk.spec.clone()], &[]).await?;
    node.ask(&["node", "provide", NODE])?;
    node.until_in("available").await?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    disk.ensure_erased()
}
