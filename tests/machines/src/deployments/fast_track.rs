//! A deployment that begins in the ramdisk of the cleaning before it.

use anyhow::{Result, ensure};
use lab::mirror::{Behaviour, Mirror};
use lab::site::ADDRESS;

use super::cases::Case;
use super::deployment::Deployment;
use crate::node::history;
use crate::stage::{NO_METADATA, NODE, Stage, through, verb};

/// In the image, in MiB.
const FILLER: u64 = 4;

pub async fn story(case: &Case, stage: &Stage) -> Result<String> {
    let settings = format!("{NO_METADATA}fast_track = true\n");
    let deployment = Deployment::enrolled(case, stage, FILLER, &settings).await?;
    let controller = &deployment.site.controller;
    let mirror = Mirror::start(ADDRESS, deployment.served()?, |_| Behaviour::default()).await?;
    through(controller, verb("provide"), "available").await?;
    ensure!(deployment.node.machine.is_on().await, "the cleaning has not left its ramdisk running");
    deployment.ask("active", &mirror.url()).await?;
    deployment.ensure_boots().await?;
    let events = history(controller, NODE).await?;
    let begins = "the deployment begins in the ramdisk";
    ensure!(events.iter().any(|event| event.contains(begins)), "{events:?}");
    Ok("active, boots; begun without a boot".to_owned())
}
