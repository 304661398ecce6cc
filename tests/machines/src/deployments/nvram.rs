//! A firmware without room for one more boot entry.

use anyhow::{Context, Result, ensure};
use lab::mirror::{Behaviour, Mirror};
use lab::site::ADDRESS;
use lab::uefi_variables;

use super::cases::Case;
use super::deployment::Deployment;
use crate::node::writing;
use crate::stage::{LONG, NODE, Stage};

/// Bytes that are left: the firmware can still boot, Linux keeps 5 KiB free.
const LEFT: usize = 3000;

pub async fn story(case: &Case, stage: &Stage) -> Result<String> {
    let mut deployment = Deployment::prepare(case, stage, 0).await?;
    let mirror = Mirror::start(ADDRESS, deployment.served()?, |_| Behaviour::default()).await?;
    deployment.ask("active", &mirror.url()).await?;
    deployment.ensure_boots().await?;

    let variables = deployment.node.machine.spec().uefi_variables();
    uefi_variables::fill(&variables, LEFT)?;
    deployment.replace_image(case, "other", "5CA1AB1E-0000-4000-8000-00000000FEED")?;
    let slow = |_| Behaviour { rate: Some(3 << 20), ..Behaviour::default() };
    let mirror = Mirror::start(ADDRESS, deployment.served()?, slow).await?;
    deployment.ask("rebuild", &mirror.url()).await?;
    writing(&deployment.site.controller, NODE, "ROOT", 0.0, LONG).await?;
    // The firmware may have changed it when it began this boot.
    let before = order(&variables)?;
    let failed = deployment.ended("deploy failed").await?;
    failed.ensure_says(&[
        "deploy.prepare_instance_boot",
        "NVRAM is full",
        "the boot order was not changed",
    ])?;
    deployment.node.machine.power_off().await?;
    let after = order(&variables)?;
    ensure!(before == after, "the boot order was {before:02x?}, and is {after:02x?}");
    Ok("deploy failed: the firmware's NVRAM is full; the boot order is what it was".to_owned())
}

fn order(variables: &std::path::Path) -> Result<Vec<u8>> {
    uefi_variables::value(variables, "BootOrder")?.context("the firmware has no boot order")
}
