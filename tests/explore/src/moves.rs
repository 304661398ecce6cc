//! From a world to all the worlds that may follow.

use crate::scenario::Scenario;
use crate::transition::Transition;
use crate::world::World;
use crate::{nature, turn};
use conductor::decision::Action;
use model::Event;

/// One thing that happened, and the world after it.
#[derive(Debug, Clone)]
pub struct Next {
    /// What happened.
    pub transition: Transition,
    /// The world after it.
    pub world: World,
    /// The action that the conductor did in it.
    pub action: Option<Action>,
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
    /// `transition`, and the world after it.
    pub fn new(transition: Transition, world: World) -> Self {
        Self { transition, world, action: None, began: None, events: Vec::new() }
    }
}

/// Moves as they are found.
pub struct Moves {
    list: Vec<Next>,
    calm: bool,
}

impl Moves {
    /// Whether this may happen: disturbances only as long as there may be more of them.
    pub fn may(&self, transition: Transition) -> bool {
        !self.calm || !transition.is_disturbance()
    }

    /// It may happen.
    pub fn push(&mut self, next: Next) {
        if self.may(next.transition) {
            self.list.push(next);
        }
    }

    /// It may happen, and changes the world like this.
    pub fn change(&mut self, transition: Transition, world: &World, change: impl FnOnce(&mut World)) {
        if self.may(transition) {
            let mut next = Next::new(transition, world.clone());
            change(&mut next.world);
            self.list.push(next);
        }
    }
}

/// Everything that may happen next. The first that is no disturbance is what happens in a calm world.
pub fn all(scenario: &Scenario, world: &World) -> Vec<Next> {
    let mut moves = Moves { list: Vec::new(), calm: world.story.faults >= scenario.budget };
    let asleep = turn::moves(scenario, world, &mut moves);
    nature::moves(scenario, world, asleep, &mut moves);
    for next in &mut moves.list {
        next.world.story.faults += u8::from(next.transition.is_disturbance());
    }
    moves.list
}
