//! The node loses power in the middle of an erase, behind the controller's back. Half erased is not erased: the
//! node is cleaned again from the beginning, as often as the settings allow, and then held.

use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};
use lab::wait;

use crate::node::{Node, count, erasing, history};
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, Stage, manageable};

pub async fn story(stage: Stage) -> Result<()> {
    let slow = stage.disk("SLOW", Bus::Sata, 64)?.with(Fault::SlowWrites(1 << 20));
    let mut site = stage.site(&format!("{NO_METADATA}max_interruptions = 1\n")).await?;
    let node = manageable(&mut site, &[&slow]).await?;
    site.controller.provision(NODE, "provide").await?;
    let (first, _) = erasing(&site.controller, NODE, "SLOW", 0.05, LONG).await?;
    node.machine.power_off().await?;
    ensure!(slow.findings()?.unchanged > 0, "the erase ended too early for this scenario");

    wait::until("the controller to notice", LONG, || async {
        Ok((count(&site.controller, NODE, &format!("step {ERASE} begins")).await? == 2).then_some(()))
    })
    .await?;
    let events = history(&site.controller, NODE).await?;
    let told = events.iter().any(|event| event.contains("the node lost power in the middle of the step"));
    ensure!(told, "the reason is not told: {events:?}");
    let (second, _) = erasing(&site.controller, NODE, "SLOW", 0.02, LONG).await?;
    let running = |node: &Node| node.anneal()["agent"]["running"].clone();
    ensure!(running(&second) != running(&first), "the command of the boot that is over goes on");

    node.machine.power_off().await?;
    let left = slow.findings()?;
    ensure!(left.unchanged > 0, "the erase ended too early for this scenario");
    let after = Node(site.controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    after.ensure_held()?;
    ensure!(after.last_error().contains("lost power"), "the reason is not told: {}", after.last_error());
    ensure!(slow.findings()? == left, "written while off");
    let events = history(&site.controller, NODE).await?;
    ensure!(!events.iter().any(|event| event.contains("-> available")), "it was available: {events:?}");
    Ok(())
}
