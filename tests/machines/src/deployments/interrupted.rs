//! Deployments that a power cut or a kill of the controller interrupts, at a moment that the seed names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::mirror::{Behaviour, Mirror};
use lab::site::ADDRESS;
use lab::wait;

use super::cases::Case;
use super::deployment::{Deployment, WRITE};
use crate::node::{Node, count, history, writing};
use crate::stage::{LONG, NODE, Stage};

/// In the image, in MiB, and how much of it a second the mirror sends: twenty seconds of writing.
const FILLER: u64 = 40;
const RATE: usize = 2 << 20;
/// From the first sign of the writing to the cut: within the writing.
const IN_THE_WRITING: Duration = Duration::from_secs(17);
/// From power-on to the cut: firmware, kernel, the agent's first requests.
const IN_THE_BOOT: Duration = Duration::from_secs(8);
/// From the first sign of the writing to the kill: writing, reading back, boot entries, power off, power on.
const UNTIL_IT_BOOTS: Duration = Duration::from_secs(30);

/// A deployment that is being written, and its mirror, which is slow until that changes.
async fn begun(case: &Case, stage: &Stage) -> Result<(Deployment, Mirror, Arc<AtomicBool>)> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let mirror = Mirror::start(ADDRESS, deployment.served()?, move |_| Behaviour {
        rate: is_slow.load(Ordering::Acquire).then_some(RATE),
        ..Behaviour::default()
    });
    let mirror = mirror.await?;
    deployment.ask("active", &mirror.url()).await?;
    writing(&deployment.site.controller, NODE, "ROOT", 0.0, LONG).await?;
    Ok((deployment, mirror, slow))
}

/// How far the node is, in words.
async fn place(deployment: &Deployment) -> Result<String> {
    let now = Node::now(&deployment.site.controller, NODE).await?;
    let step = now.0["deploy_step"]["step"].as_str().unwrap_or("no step").to_owned();
    Ok(match now.progress("ROOT") {
        Some(seen) if seen.bytes_total > 0 => {
            let percent = seen.bytes_done * 100 / seen.bytes_total;
            format!("{step}, {:?} {percent} %", seen.phase)
        }
        _ => format!("{step}, {}", now.state()),
    })
}

pub async fn cut(case: &Case, stage: &Stage) -> Result<String> {
    let (deployment, _mirror, slow) = begun(case, stage).await?;
    stage.moments().pass(IN_THE_WRITING).await;
    let place = place(&deployment).await?;
    deployment.node.machine.power_off().await?;
    deployment.root.ensure_unbootable().with_context(|| format!("cut at {place}"))?;
    slow.store(false, Ordering::Release);
    let after = deployment.ensure_boots().await.with_context(|| format!("cut at {place}"))?;
    let events = history(&deployment.site.controller, NODE).await?;
    ensure!(
        events.iter().any(|event| event.contains("lost power")),
        "the cut is not in the history: {events:?}"
    );
    let written = after.results(WRITE)[0]["result"]["deploy_result"]["image"]["record"]["written"].as_u64();
    let written = written.context("the record of the image")? >> 20;
    Ok(format!("active, boots; cut at {place}, {written} MiB written after it"))
}

pub async fn cut_in_boot(case: &Case, stage: &Stage) -> Result<String> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let mirror = Mirror::start(ADDRESS, deployment.served()?, |_| Behaviour::default()).await?;
    deployment.ask("active", &mirror.url()).await?;
    let machine = &deployment.node.machine;
    wait::until("the node to be powered on", LONG, || async { Ok(machine.is_on().await.then_some(())) })
        .await?;
    stage.moments().pass(IN_THE_BOOT).await;
    let place = place(&deployment).await?;
    machine.power_off().await?;
    deployment.ensure_boots().await.with_context(|| format!("cut at {place}"))?;
    let events = history(&deployment.site.controller, NODE).await?;
    ensure!(
        events.iter().any(|event| event.contains("lost power")),
        "the cut is not in the history: {events:?}"
    );
    Ok(format!("active, boots; cut at {place}"))
}

pub async fn killed(case: &Case, stage: &Stage) -> Result<String> {
    let (mut deployment, _mirror, _) = begun(case, stage).await?;
    stage.moments().pass(UNTIL_IT_BOOTS).await;
    let place = place(&deployment).await?;
    deployment.site.controller.kill().await?;
    deployment.site.controller.restart().await?;
    let after = deployment.ensure_boots().await.with_context(|| format!("killed at {place}"))?;
    ensure!(after.results(WRITE).len() == 1, "{}", after.anneal()["run"]);
    let begun = count(&deployment.site.controller, NODE, &format!("step {WRITE} begins")).await?;
    ensure!(begun == 1, "the image was written {begun} times, killed at {place}");
    Ok(format!("active, boots; killed at {place}"))
}
