//! Which agent may send heartbeats for a node.

use crate::held;
use crate::world::World;
use store::{TokenGrant, TokenRequest};
use uuid::Uuid;

/// ARCHITECTURE: "An agent token is given to one boot of one node"; issue 16: "no second token without an observed Off (or its stated stand-in)". An
/// agent whose answer was lost may ask again before its first heartbeat.
/// Issue 16: the nonce of a boot stands in its boot script alone.
pub fn granted(world: &World, node: Uuid, request: &TokenRequest, grant: TokenGrant) {
    let boot_id = request.boot_id.as_deref();
    let Some(machine) = world.machine(node) else { return };
    if grant != TokenGrant::Given {
        return;
    }
    let chronicle = &mut held(&world.ground_truth).machines[machine.index];
    if request.nonce.is_none() || request.nonce != chronicle.nonce {
        let text = format!("{} got one for another nonce than that of its last boot script", machine.name);
        world.violated("no_token_without_the_nonce_of_the_boot", text);
    }
    let again = boot_id.is_some() && chronicle.token_boot.as_deref() == boot_id;
    if chronicle.token.is_some() && !again {
        world.violated("a_token_is_given_once", format!("{} has one already", machine.name));
    }
    // What stands for it where the node is never powered off: an accepted reset, and a fetch of the boot script since.
    let stand_in = std::mem::take(&mut chronicle.reset) && std::mem::take(&mut chronicle.fetched_since_reset);
    let seen_off = std::mem::take(&mut chronicle.seen_off) || (machine.never_off && stand_in);
    if !seen_off && !again {
        let text = format!("{} was not seen to be off since the token before", machine.name);
        world.violated("no_second_token_without_an_observed_off", text);
    }
    chronicle.token = Some(request.token.clone());
    chronicle.token_boot = boot_id.map(str::to_owned);
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
