//! Which agent may send heartbeats for a node.

use crate::held;
use crate::world::World;
use store::TokenGrant;
use uuid::Uuid;

/// ARCHITECTURE: "An agent token is given to one boot of one node, and is deleted while the node is known to be off."
pub fn granted(world: &World, node: Uuid, token: &str, grant: TokenGrant) {
    let Some(machine) = world.machine(node) else { return };
    let out = &mut held(&world.ground_truth).machines[machine.index].token;
    match (grant, out.is_some()) {
        (TokenGrant::Given, true) => {
            world.violated("a_token_is_given_once", format!("{} has one already", machine.name));
        }
        (TokenGrant::Given, false) => *out = Some(token.to_owned()),
        (TokenGrant::AlreadyOut, _) => {}
    }
}

/// A heartbeat is accepted only with the token that was given out.
pub fn heard(world: &World, node: Uuid, token: &str) {
    let Some(machine) = world.machine(node) else { return };
    let chronicle = &mut held(&world.ground_truth).machines[machine.index];
    chronicle.heard.push(world.now());
    if chronicle.token.as_deref() != Some(token) {
        world.violated("only_the_token_that_is_out_is_heard", format!("{} another token", machine.name));
    }
}

/// The token is taken back.
pub fn forgotten(world: &World, node: Uuid) {
    let Some(machine) = world.machine(node) else { return };
    held(&world.ground_truth).machines[machine.index].token = None;
}
