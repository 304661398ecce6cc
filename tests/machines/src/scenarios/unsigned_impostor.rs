//! An impostor fetches the boot script of a node that boots Anneal's agent, gets its token, and speaks the agent protocol as
//! ironic-python-agent does: it does not sign, and would report every erase as a success. Its first heartbeat is refused, and
//! the node is held. The machine's own MAC address is unknown, so the machine boots from its disk.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;

use crate::impostor::{HOME, Impostor};
use crate::stage::{NO_METADATA, NODE, Stage, enrol, held, made_up_report, redfish_info};

pub const ABOUT: &str =
    "an impostor that does not sign: it is never the node's agent, the node is held and says so";

/// Of the node's only port.
const MAC: &str = "52:54:00:a4:ea:67";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("KEPT", Bus::Sata, 16)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = site.node(NODE, Firmware::Bios, vec![disk.spec.clone()]).await?;
    enrol(&site.controller, NODE, "redfish", redfish_info(&node), MAC).await?;
    site.controller.provision(NODE, "provide").await?;
    let impostor = Impostor::start(&site, MAC, |agent| agent.unsigned().reporting(made_up_report())).await?;
    let after = held(&site.controller).await?;
    after.ensure_says(&["was not accepted", &HOME.to_string(), "does not sign", "agent_kind"])?;
    ensure!(impostor.has_token(), "the impostor was not even the first");
    ensure!(after.0["driver_internal_info"]["agent_url"].is_null(), "it is taken for the node's agent");
    ensure!(node.machine.is_on().await, "a failed node is left on");
    disk.ensure_untouched()
}
