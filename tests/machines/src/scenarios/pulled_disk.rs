//! A disk is pulled between the last inspection and the cleaning. The cleaning fails and names it: its data left
//! with it.

use anyhow::{Result, ensure};
use lab::disk::Bus;
use serde_json::json;

use crate::stage::{ERASE, NO_METADATA, NODE, Stage, held, manageable, through, verb};

pub const ABOUT: &str = "a disk pulled since the last inspection is named, and the node is held";

pub async fn story(stage: Stage) -> Result<()> {
    let stays = stage.disk("STAYS", Bus::Sata, 16)?;
    let pulled = stage.disk("PULLED", Bus::Nvme, 16)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&stays, &pulled]).await?;
    site.controller.set(NODE, json!({"/inspect_interface": "agent"})).await?;
    through(&site.controller, verb("inspect"), "manageable").await?;
    ensure!(!node.machine.is_on().await, "an inspected node is off");

    node.machine.pull_disk("PULLED").await;
    site.controller.provision_with(NODE, verb("provide")).await?;
    let after = held(&site.controller).await?;
    after.ensure_says(&[ERASE, "PULLED", "is missing"])?;
    ensure!(!after.last_error().contains("STAYS"), "STAYS is blamed: {}", after.last_error());
    pulled.ensure_untouched()
}
