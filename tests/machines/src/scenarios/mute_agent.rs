//! An agent that signs, and reports its erase as a success without a word about any disk. The node has no other agent: its
//! machine's own MAC address is unknown, so the machine boots from its disk.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;

use crate::impostor::Impostor;
use crate::stage::{ERASE, NO_METADATA, NODE, Stage, enrol, held, redfish_info};

pub const ABOUT: &str = "an agent that reports success and no disk: the node is held and says so";

/// Of the node's only port.
const MAC: &str = "52:54:00:a4:ea:66";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("KEPT", Bus::Sata, 16)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = site.node(NODE, Firmware::Bios, vec![disk.spec.clone()]).await?;
    enrol(&site.controller, NODE, "redfish", redfish_info(&node), MAC).await?;
    site.controller.provision(NODE, "provide").await?;
    let _agent = Impostor::start(&site, MAC, |agent| agent).await?;
    let after = held(&site.controller).await?;
    after.ensure_says(&[ERASE, "without a report of the disks"])?;
    ensure!(node.machine.is_on().await, "a failed node is left on");
    disk.ensure_untouched()
}
