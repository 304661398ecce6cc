//! The controller dies in the middle of an erase, again and again, at random moments. The agent goes on; each new
//! controller finds the command where its predecessor had written it down, and does not send another.

use anyhow::{Context, Result, ensure};
use lab::disk::{Bus, Fault};
use lab::wait;
use std::time::Duration;

use crate::node::{count, erasing};
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, SHORT, Stage, cleaned, full_speed, manageable};

pub const ABOUT: &str =
    "SIGKILL of the controller, several times: the erase goes on and is not started again";

/// More than a heartbeat's interval: a kill may hit any part of what happens in one.
const ANY_TIME: Duration = Duration::from_secs(5);
/// Written in a second.
const RATE: u64 = 1 << 20;

pub async fn story(stage: Stage) -> Result<()> {
    // Enough for all kills: one takes about ten seconds.
    let slow = stage.disk("SLOW", Bus::Sata, 40 + 16 * stage.times)?.with(Fault::SlowWrites(RATE));
    let fast = stage.disk("FAST", Bus::Virtio, 64)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&slow, &fast]).await?;
    site.controller.provision(NODE, "provide").await?;
    let (before, mut seen) = erasing(&site.controller, NODE, "SLOW", 0.01, LONG).await?;
    let agent = before.anneal()["agent"]["process_id"].clone();
    let command = before.anneal()["agent"]["running"].clone();
    ensure!(command.is_string(), "no running command is known: {}", before.anneal());

    let mut moments = stage.moments();
    for kill in 1..=stage.times {
        moments.pass(ANY_TIME).await;
        site.controller.kill().await?;
        let left = slow.findings()?.unchanged;
        wait::until("the erase to go on without a controller", SHORT, || async {
            // 1 MiB further
            Ok((slow.findings()?.unchanged + 2048 < left).then_some(()))
        })
        .await?;
        ensure!(slow.findings()?.unchanged > 0, "the erase ended too early for this scenario");
        site.controller.restart().await?;

        let again = async {
            wait::until("news of the erase", LONG, || async {
                let (during, later) = erasing(&site.controller, NODE, "SLOW", 0.0, LONG).await?;
                ensure!(later.bytes_done >= seen.bytes_done, "it began again: {seen:?}, then {later:?}");
                Ok((later.bytes_done > seen.bytes_done).then_some((during, later)))
            })
            .await
        };
        let (during, later) = again.await.with_context(|| format!("after kill {kill}"))?;
        ensure!(during.anneal()["agent"]["process_id"] == agent, "another agent after kill {kill}");
        ensure!(during.anneal()["agent"]["running"] == command, "another command after kill {kill}");
        seen = later;
    }

    full_speed(&node.machine, 0).await?;
    let after = cleaned(&site.controller, "available").await?;
    ensure!(after.results(ERASE).len() == 1, "{}", after.anneal()["run"]);
    ensure!(after.results(ERASE)[0]["command_id"] == command, "another command erased");
    ensure!(count(&site.controller, NODE, &format!("step {ERASE} begins")).await? == 1, "issued twice");
    let serial = std::fs::read_to_string(node.machine.spec().serial_log())?;
    let begun = serial.matches("all disks judged, beginning").count();
    ensure!(begun == 1, "the agent began {begun} times");
    slow.ensure_erased()?;
    fast.ensure_erased()
}
