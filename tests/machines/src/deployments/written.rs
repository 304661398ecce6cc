//! A deployment in which nothing goes wrong.

use anyhow::Result;
use lab::mirror::{Behaviour, Mirror};
use lab::site::ADDRESS;

use super::cases::Case;
use super::deployment::Deployment;
use crate::stage::Stage;

/// In the image, in MiB.
const FILLER: u64 = 4;

pub async fn story(case: &Case, stage: &Stage) -> Result<String> {
    let deployment = Deployment::prepare(case, stage, FILLER).await?;
    let mirror = Mirror::start(ADDRESS, deployment.served()?, |_| Behaviour::default()).await?;
    deployment.ask("active", &mirror.url()).await?;
    deployment.ensure_boots().await?;
    Ok("active, boots".to_owned())
}
