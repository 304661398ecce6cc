//! Rules for when nothing goes wrong any more.

use super::Broken;
use super::rows::is_at_rest;
use crate::world::World;
use model::{EventKind, Node};
use store::prelude::*;

/// Whether a node has come to rest: nothing is under way, and nothing was asked for that has not been done.
pub fn rests(node: &Node) -> bool {
    is_at_rest(node.provision_state) && node.target_power_state.is_none()
}

/// "none lost": every node that was enrolled is there, with its whole history.
pub async fn none_lost(world: &World) -> Broken {
    for machine in &world.machines {
        let node = world.disk.node(machine.uuid).await.map_err(|error| error.to_string())?;
        let history = world.disk.history(machine.uuid).await.map_err(|error| error.to_string())?;
        let mut at = String::from("enroll");
        for event in history.iter().filter(|event| event.kind == EventKind::Transition) {
            let Some((from, to)) = event.text.split(": ").next().and_then(|arrow| arrow.split_once(" -> "))
            else {
                continue;
            };
            if from != at {
                return Err(format!("{}: {from} -> {to} follows {at} in its history", machine.name));
            }
            to.clone_into(&mut at);
        }
        if at != node.provision_state.as_str() {
            return Err(format!(
                "{} is in {}, its history ends in {at}",
                machine.name,
                node.provision_state.as_str()
            ));
        }
    }
    Ok(())
}

/// "none stuck": once faults have stopped every node comes to rest; holds are released.
pub async fn none_stuck(world: &World) -> Broken {
    for machine in &world.machines {
        let node = world.disk.node(machine.uuid).await.map_err(|error| error.to_string())?;
        if !rests(&node) {
            let (run, wait) = (node.run.as_ref().map(|run| (&run.cursor, run.attempts)), &node.wait);
            return Err(format!(
                "{} is still in {} with target {:?}, run {run:?}, wait {wait:?}, next look {:?}, now {:?}",
                machine.name,
                node.provision_state.as_str(),
                node.target_power_state,
                node.next_wake_at,
                world.now(),
            ));
        }
    }
    Ok(())
}
