//! OpenStack's own client drives anneal-controller: a node with an agent through its whole life, and a node of the
//! fake driver through every verb of the state machine; and every resource besides nodes.

mod deployments;
mod life;
mod node;
mod resources;
mod rights;
mod steps;
mod story;
mod walk;

use crate::World;
use crate::controller::Controller;
use crate::stock::Stock;
use anyhow::{Context, Result};
use serde_json::Value;

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let stock = Stock::new(world, &controller)?;
    life::run(world, &controller, &stock).context("a node with an agent")?;
    walk::run(world, &controller, &stock).context("every verb of a fake node")?;
    resources::run(&stock).context("resources")?;
    rights::run(world).context("users with passwords")
}

fn find<'a>(rows: &'a Value, column: &str, value: &str) -> Result<&'a Value> {
    let mut list = rows.as_array().context("a list was expected")?.iter();
    list.find(|row| row[column] == value).with_context(|| format!("no {column} {value:?} in {rows}"))
}
