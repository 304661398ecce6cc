//! From a world to all the worlds that may follow.

use crate::action::Action;
use crate::scenario::Scenario;
use crate::world::World;
use crate::{nature, turn};
use conductor::decision::Deed;
use model::Event;

/// One thing that happened, and the world after it.
#[derive(Debug, Clone)]
pub struct Next {
    /// What happened.
    pub action: Action,
    /// The world after it.
    pub world: World,
    /// The deed that the conductor did in it.
    pub deed: Option<Deed>,
    /// The step that began in the world.
    pub began: Option<Began>,
    /// Events that were stored.
    pub events: Vec<Event>,
}

/// A step that began.
#[derive(Debug, Clone)]
pub struct Began {
    /// Its place in the plan.
    pub step: usize,
    /// The command.
    pub command_id: String,
    /// Its request was held back by the network, and the conductor did not send it just now.
    pub late: bool,
}

impl Next {
    /// `action`, and the world after it.
    pub fn new(action: Action, world: World) -> Self {
        Self { action, world, deed: None, began: None, events: Vec::new() }
    }
}

/// Everything that may happen next. The first that is no disturbance is what happens in a calm world.
pub fn all(scenario: &Scenario, world: &World) -> Vec<Next> {
    let mut moves = Vec::new();
    let asleep = turn::moves(scenario, world, &mut moves);
    nature::moves(scenario, world, asleep, &mut moves);
    for next in &mut moves {
        let faults = world.story.faults + u8::from(next.action.is_disturbance());
        next.world.story.faults = faults;
    }
    moves.retain(|next| next.world.story.faults <= scenario.budget);
    moves
}
