//! The node loses power in the middle of an erase, behind the controller's back. Half erased is not erased.

use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};

use crate::node::{Node, erasing, history};
use crate::stage::{LONG, NO_METADATA, NODE, Stage, manageable};

pub async fn story(stage: Stage) -> Result<()> {
    let slow = stage.disk("SLOW", Bus::Sata, 64)?.with(Fault::SlowWrites(2 << 20));
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&slow]).await?;
    site.controller.provision(NODE, "provide").await?;
    erasing(&site.controller, NODE, "SLOW", 0.1, LONG).await?;

    node.machine.power_off().await?;
    let left = slow.findings()?;
    ensure!(left.unchanged > 0, "the erase ended too early for this scenario");

    let after = Node(site.controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    if after.state() == "available" {
        // Cleaned again from the beginning is as good.
        return slow.ensure_erased();
    }
    after.ensure_held()?;
    ensure!(after.last_error().contains("lost power"), "the reason is not told: {}", after.last_error());
    ensure!(slow.findings()? == left, "written while off");
    let events = history(&site.controller, NODE).await?;
    ensure!(!events.iter().any(|event| event.contains("to available")), "it was available: {events:?}");
    Ok(())
}
