//! The node loses power in the middle of an erase, behind the controller's back, at random moments. Half erased is
//! not erased: the node is cleaned again from the beginning, as often as the settings allow, and then held.

use anyhow::{Context, Result, ensure};
use lab::disk::{Bus, Fault};
use lab::wait;
use std::time::Duration;

use crate::node::{count, erasing, history};
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, Stage, held, manageable};

pub const ABOUT: &str =
    "the node loses power, several times: cleaned anew, then clean failed with a reason, never available";

/// From the first sign of an erase; the disk takes a minute.
const ANY_TIME: Duration = Duration::from_secs(5);

pub async fn story(stage: Stage) -> Result<()> {
    let slow = stage.disk("SLOW", Bus::Sata, 64)?.with(Fault::SlowWrites(1 << 20));
    let allowed = stage.times - 1;
    let mut site = stage.site(&format!("{NO_METADATA}max_interruptions = {allowed}\n")).await?;
    let node = manageable(&mut site, &[&slow]).await?;
    site.controller.provision(NODE, "provide").await?;

    let mut moments = stage.moments();
    let mut commands = Vec::new();
    for cut in 1..=stage.times {
        let erasing = erasing(&site.controller, NODE, "SLOW", 0.02, LONG).await;
        let (during, _) = erasing.with_context(|| format!("before cut {cut}"))?;
        let command = during.anneal()["agent"]["running"].clone();
        ensure!(!commands.contains(&command), "the command of a boot that is over goes on: {command}");
        commands.push(command);
        moments.pass(ANY_TIME).await;
        node.machine.power_off().await?;
        ensure!(slow.findings()?.unchanged > 0, "the erase ended too early for this scenario");
        if cut < stage.times {
            wait::until("the controller to notice", LONG, || async {
                let begun = count(&site.controller, NODE, &format!("step {ERASE} begins")).await?;
                Ok((u64::try_from(begun)? == cut + 1).then_some(()))
            })
            .await
            .with_context(|| format!("cut {cut}"))?;
        }
    }

    let left = slow.findings()?;
    let after = held(&site.controller).await?;
    ensure!(after.last_error().contains("lost power"), "the error is another: {}", after.last_error());
    ensure!(slow.findings()? == left, "written while off");
    let events = history(&site.controller, NODE).await?;
    let cuts = events.iter().filter(|event| event.contains("the node lost power in the middle of the step"));
    ensure!(u64::try_from(cuts.count())? >= stage.times, "not every cut has its event: {events:?}");
    ensure!(!events.iter().any(|event| event.contains("-> available")), "it was available: {events:?}");
    Ok(())
}
