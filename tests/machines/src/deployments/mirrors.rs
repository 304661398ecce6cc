//! Mirrors that do not behave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::mirror::{Behaviour, Mirror};
use lab::site::ADDRESS;
use lab::wait;

use super::cases::Case;
use super::deployment::Deployment;
use crate::node::Node;
use crate::stage::{LONG, NODE, Stage};

/// In the image, in MiB.
const FILLER: u64 = 16;
/// A mirror that stalls is named within this.
const NAMED: Duration = Duration::from_secs(30);

/// The mirror drops each connection after a fifth of the image.
pub async fn dies(case: &Case, stage: &Stage) -> Result<String> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let image = deployment.served()?;
    let fifth = image.len() / 5;
    let mirror =
        Mirror::start(ADDRESS, image, move |_| Behaviour { drops: Some(fifth), ..Behaviour::default() });
    let mirror = mirror.await?;
    deployment.ask("active", &mirror.url()).await?;
    deployment.ensure_boots().await?;
    let seen = mirror.seen();
    let places: Vec<usize> = seen.iter().filter_map(|seen| seen.from).collect();
    ensure!(seen[0].from.is_none() && places.len() + 1 == seen.len(), "asked for the whole again: {seen:?}");
    ensure!(
        places.len() >= 4 && places.is_sorted_by(|a, b| a < b),
        "it did not go on where it was: {seen:?}"
    );
    Ok(format!("active, boots; {} connections, each from where the last one ended", seen.len()))
}

/// The mirror sends nothing more, and nothing at all to the second request.
pub async fn stalls(case: &Case, stage: &Stage) -> Result<String> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let image = deployment.served()?;
    let half = image.len() / 2;
    let mirror = Mirror::start(ADDRESS, image, move |number| Behaviour {
        stalls: [Some(half), Some(0)].get(number).copied().flatten(),
        ..Behaviour::default()
    });
    let mirror = mirror.await?;
    deployment.ask("active", &mirror.url()).await?;
    wait::until("the mirror to stall", LONG, async || {
        Ok(mirror.seen().first().filter(|seen| seen.sent >= half).map(|_| ()))
    })
    .await?;
    let (begun, url) = (Instant::now(), mirror.url());
    wait::until("the mirror to be named", NAMED, async || {
        let now = Node::now(&deployment.site.controller, NODE).await?;
        let said = now.anneal()["progress"]["text"].as_str().unwrap_or_default().to_owned();
        Ok((said.contains("stalled") && said.contains(&url)).then_some(()))
    })
    .await?;
    let seconds = begun.elapsed().as_secs();
    deployment.ensure_boots().await?;
    Ok(format!("active, boots; named after {seconds} s, {} connections", mirror.seen().len()))
}

/// The second request gets other bytes under the same name. When the mirror is honest again, the node is deployed.
pub async fn lies(case: &Case, stage: &Stage) -> Result<String> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let image = deployment.served()?;
    let half = image.len() / 2;
    let honest = Arc::new(AtomicBool::new(false));
    let is_honest = Arc::clone(&honest);
    let mirror = Mirror::start(ADDRESS, image, move |number| match number {
        _ if is_honest.load(Ordering::Acquire) => Behaviour::default(),
        0 => Behaviour { drops: Some(half), ..Behaviour::default() },
        _ => Behaviour { other_bytes: true, ..Behaviour::default() },
    });
    let mirror = mirror.await?;
    deployment.ask("active", &mirror.url()).await?;
    let failed = deployment.ended("deploy failed").await?;
    deployment.root.ensure_unbootable()?;
    failed.ensure_says(&["deploy.write_image", "the sha256 of http://"])?;
    ensure!(mirror.seen().get(1).is_some_and(|seen| seen.from.is_some()), "{:?}", mirror.seen());
    honest.store(true, Ordering::Release);
    deployment.ask("active", &mirror.url()).await?;
    deployment.ensure_boots().await.context("from an honest mirror")?;
    Ok("deploy failed by the digest, nothing bootable; then from an honest mirror: active, boots".to_owned())
}

/// The second request gets another file, with another entity tag and length; then the first one is back.
pub async fn changes(case: &Case, stage: &Stage) -> Result<String> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let image = deployment.served()?;
    let half = image.len() / 2;
    let mirror = Mirror::start(ADDRESS, image, move |number| match number {
        0 => Behaviour { drops: Some(half), ..Behaviour::default() },
        1 => Behaviour { other_file: Some(4096), ..Behaviour::default() },
        _ => Behaviour::default(),
    });
    let mirror = mirror.await?;
    deployment.ask("active", &mirror.url()).await?;
    deployment.ensure_boots().await?;
    let seen = mirror.seen();
    let [first, second, third] = seen.as_slice() else { anyhow::bail!("three requests: {seen:?}") };
    ensure!(
        first.from.is_none() && second.from.is_some() && third.from.is_none(),
        "it did not begin anew: {seen:?}"
    );
    Ok("active, boots; begun anew when the file had changed".to_owned())
}
