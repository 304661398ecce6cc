//! The conductor's turns, cut where it may die: after each effect and each write. What it does between is the real
//! `decide` and `apply_outcome`; the order of loads, effects and writes is that of `conductor/src/drive.rs`.

use crate::effects::{self, Effect};
use crate::evidence;
use crate::moves::{Moves, Next};
use crate::scenario::Scenario;
use crate::transition::{Answer, Transition};
use crate::world::{Applying, Held, Stand, Storing, World};
use conductor::decision::{Action, Change, Decision, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::{Cursor, Node};
use std::sync::Arc;

/// What the conductor may do next. True when it has nothing to do before time passes or something happens.
pub fn moves(scenario: &Scenario, world: &World, moves: &mut Moves) -> bool {
    match &world.conductor {
        Stand::Idle => return idle(scenario, world, moves),
        Stand::Storing(storing) => {
            moves.push(store(scenario, world, Transition::GoOn(Answer::Well), (**storing).clone()))
        }
        Stand::Begun(action) => act(scenario, world, action, Transition::GoOn, moves),
        Stand::Done(applying) => {
            let outcome = applying.outcome.clone();
            let change = apply_outcome(&applying.seen, &applying.action, outcome, &scenario.settings);
            let storing = Storing {
                change,
                seen: applying.seen.clone(),
                applying: Some((**applying).clone()),
                then: None,
            };
            moves.push(store(scenario, world, Transition::GoOn(Answer::Well), storing));
        }
    }
    moves.change(Transition::Die, world, |dead| {
        dead.conductor = Stand::Idle;
        note_death(scenario, dead);
    });
    false
}

/// The controller has died: whether a run may fail because of that.
pub fn note_death(scenario: &Scenario, world: &mut World) {
    world.store(|stored| stored.listening_since = stored.now);
    // A heartbeat that is on its way to it dies with its connection; a request that has left it does not.
    world.held = world.held.take().filter(|held| matches!(held, Held::Command(_)));
    let Some(run) = world.run() else { return };
    if !matches!(run.cursor, Cursor::OutOfBand { polling: false, .. }) {
        return;
    }
    let step = run.index.and_then(|index| scenario.steps.get(index));
    let spent = run.fruitless >= scenario.settings.max_interruptions;
    world.story.harmed |= spent || step.is_some_and(|step| !step.idempotent);
    world.story.died_in_step = true;
}

fn idle(scenario: &Scenario, world: &World, moves: &mut Moves) -> bool {
    let well = Transition::Turn(Answer::Well);
    match decide(&world.stored, &scenario.settings) {
        Decision::Sleep { wait, wake_at } => {
            let node = world.node();
            if node.wait == wait && node.next_wake_at == wake_at {
                return true;
            }
            let mut next = world.clone();
            next.store_node(scenario, Node { wait, next_wake_at: wake_at, ..node.clone() });
            moves.push(Next::new(well, next));
        }
        Decision::Record(change) => {
            let storing = Storing { change: *change, seen: world.stored.clone(), applying: None, then: None };
            moves.push(store(scenario, world, well, storing));
        }
        Decision::Begin(change, action) => {
            let storing =
                Storing { change: *change, seen: world.stored.clone(), applying: None, then: Some(action) };
            moves.push(store(scenario, world, well, storing));
        }
        Decision::Act(action) => act(scenario, world, &action, Transition::Turn, moves),
    }
    false
}

/// Do an action, with every answer that the world may give.
fn act(
    scenario: &Scenario,
    world: &World,
    action: &Action,
    transition: fn(Answer) -> Transition,
    moves: &mut Moves,
) {
    let calm = !moves.may(transition(Answer::RequestLost));
    for Effect { answer, mut world, outcome, began } in effects::effects(scenario, world, action, calm) {
        world.conductor = match outcome {
            Some(outcome) => Stand::Done(Box::new(Applying {
                seen: world.stored.clone(),
                action: action.clone(),
                outcome,
            })),
            None => {
                note_death(scenario, &mut world);
                Stand::Idle
            }
        };
        let mut next = Next::new(transition(answer), world);
        next.action = Some(action.clone());
        next.began = began;
        moves.push(next);
    }
}

/// The next write of a change: what the row will rely on first, the row last.
fn store(scenario: &Scenario, world: &World, transition: Transition, mut storing: Storing) -> Next {
    let mut next = world.clone();
    next.conductor = Stand::Idle;
    let change = &mut storing.change;
    if change.forget_agent || !change.catalogues.is_empty() {
        if change.forget_agent {
            change.forget_agent = false;
            let boot = change.next_boot.take();
            next.store(|stored| stored.contact = model::Contact { boot, ..model::Contact::default() });
        } else if let Some((_, mut catalogue)) = std::mem::take(&mut change.catalogues).pop() {
            catalogue.steps.iter_mut().for_each(|step| step.raw.clear());
            next.store(|stored| stored.catalogue = Some(catalogue));
        }
        if !is_stored(&storing.change, &storing.seen) {
            next.conductor = Stand::Storing(Box::new(storing));
        }
        return Next::new(transition, next);
    }
    let mut events = Vec::new();
    if !is_stored(&storing.change, &storing.seen) {
        if world.node().version != storing.seen.node.version {
            next.conductor = stale(world, storing);
            return Next::new(transition, next);
        }
        if let Some(proof) = storing.change.evidence.take() {
            evidence::certify(&mut storing.change.node, &proof.evidence.command_id);
        }
        next.store_node(scenario, storing.change.node);
        events = storing.change.events;
    }
    if let Some(action) = storing.then {
        next.conductor = Stand::Begun(Box::new(action));
    }
    Next { events, ..Next::new(transition, next) }
}

/// Whether the row needs no write.
fn is_stored(change: &Change, seen: &Arc<Snapshot>) -> bool {
    change.catalogues.is_empty()
        && !change.forget_agent
        && change.node == seen.node
        && change.events.is_empty()
}

/// A user wrote meanwhile: an outcome is applied into what is stored now, unless that no longer waits for it; a
/// decision is taken again.
fn stale(world: &World, storing: Storing) -> Stand {
    let place = |node: &Node| {
        let run = node.run.as_ref().map(|run| (run.id, run.cursor.clone()));
        (node.provision_state, node.target_power_state, run)
    };
    match storing.applying {
        Some(applying) if place(world.node()) == place(&storing.seen.node) => {
            Stand::Done(Box::new(Applying { seen: world.stored.clone(), ..applying }))
        }
        _ => Stand::Idle,
    }
}
