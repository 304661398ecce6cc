//! OpenStack's own client drives anneal-controller and anneal-agent through a node's whole life.

use crate::World;
use anyhow::Result;

pub fn run(_world: &World) -> Result<()> {
    anyhow::bail!("wip")
}
