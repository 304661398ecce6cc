//! Visits every world that can be reached, and says where the first one is that breaks a property.
//!
//! First all worlds without a disturbance, then all with one, and so on. Those of the largest number are by far the
//! most: each is followed to its end as soon as it is found, so that few have to be kept at a time.

use crate::canon::fingerprint;
use crate::moves::{self, Next};
use crate::properties::{Move, PROPERTIES, is_failure};
use crate::scenario::Scenario;
use crate::trace::line;
use crate::transition::Transition;
use crate::world::World;
use model::ProvisionState;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// More worlds than this are a mistake of the scenario, or a defect that makes them endless.
const MOST: usize = 30_000_000;

/// What was explored.
#[derive(Debug)]
pub struct Explored {
    /// Distinct worlds.
    pub states: usize,
    /// Moves between them.
    pub moves: usize,
    /// How long it took.
    pub took: Duration,
    /// States in which runs ended, with the number of worlds.
    pub ends: BTreeMap<&'static str, usize>,
}

/// One world that was found: how it was reached, and where it goes when nothing more goes wrong.
struct Found {
    from: u32,
    transition: Transition,
    /// Disturbances on the way, as few as can be.
    faults: u8,
    /// The round in which it was looked at last.
    round: u8,
    calm: u32,
    at_rest: bool,
}

const NONE: u32 = u32::MAX;
const NEVER: u8 = u8::MAX;

/// Explore a scenario.
///
/// # Errors
/// The broken property with a short trace: no other has fewer disturbances.
pub fn explore(scenario: &Scenario) -> Result<Explored, String> {
    let begun = Instant::now();
    let mut search = Search {
        scenario: scenario.clone(),
        found: Vec::new(),
        known: HashMap::new(),
        moves: 0,
        ends: BTreeMap::new(),
    };
    search.meet(&World::first(scenario), NONE, Transition::Tick);
    for round in 0..=scenario.budget {
        search.scenario.budget = round;
        search.walk(round)?;
    }
    search.is_live()?;
    search.is_well()?;
    Ok(Explored { states: search.found.len(), moves: search.moves, took: begun.elapsed(), ends: search.ends })
}

struct Search {
    /// What is explored, with the round's number of disturbances.
    scenario: Scenario,
    found: Vec<Found>,
    known: HashMap<u64, u32>,
    moves: usize,
    ends: BTreeMap<&'static str, usize>,
}

impl Search {
    /// A world was reached; its number.
    fn meet(&mut self, world: &World, from: u32, transition: Transition) -> u32 {
        let fresh = u32::try_from(self.found.len()).unwrap_or(NONE);
        let index = *self.known.entry(fingerprint(world)).or_insert(fresh);
        if index == fresh {
            let at_rest = world.is_at_rest();
            if at_rest {
                *self.ends.entry(world.node().provision_state.as_str()).or_default() += 1;
            }
            let faults = world.story.faults;
            self.found.push(Found { from, transition, faults, round: NEVER, calm: NONE, at_rest });
        }
        index
    }

    /// Look at every world with up to `round` disturbances. Those with fewer are known from the rounds before.
    fn walk(&mut self, round: u8) -> Result<(), String> {
        self.moves = 0;
        let mut earlier = VecDeque::from([(0, World::first(&self.scenario))]);
        let mut last = VecDeque::new();
        while let Some((index, world)) = last.pop_front().or_else(|| earlier.pop_front()) {
            for (index, world) in self.look(index, &world, round)? {
                let queue = if world.story.faults < round { &mut earlier } else { &mut last };
                queue.push_back((index, world));
            }
        }
        Ok(())
    }

    /// Check every move from a world; the worlds that are still to be looked at in this round.
    fn look(&mut self, index: u32, world: &World, round: u8) -> Result<Vec<(u32, World)>, String> {
        let mut ahead = Vec::new();
        self.found[index as usize].round = round;
        for next in moves::all(&self.scenario, world) {
            self.moves += 1;
            let now = Move { scenario: &self.scenario, before: world, next: &next };
            for property in PROPERTIES {
                if let Err(why) = (property.check)(&now) {
                    return Err(self.report(
                        property.name,
                        property.sentence,
                        &why,
                        index,
                        Some(next.transition),
                    ));
                }
            }
            let Next { transition, world: mut after, .. } = next;
            let reached = self.meet(&after, index, transition);
            let found = &mut self.found[index as usize];
            if found.calm == NONE && !transition.is_disturbance() && reached != index {
                found.calm = reached;
            }
            let found = &mut self.found[reached as usize];
            if found.round != round {
                found.round = round;
                after.story.faults = found.faults;
                ahead.push((reached, after));
            }
        }
        if self.found.len() > MOST {
            return Err(self.report(
                "the_exploration_ends",
                "bounds are small",
                "too many worlds",
                index,
                None,
            ));
        }
        Ok(ahead)
    }

    /// Where nothing more goes wrong, every run comes to rest: no dead end, no livelock.
    fn is_live(&self) -> Result<(), String> {
        // 0: not yet looked at, 1: on the present way, 2: comes to rest.
        let mut marks = vec![0_u8; self.found.len()];
        for start in 0..self.found.len() {
            let mut way = Vec::new();
            let mut at = start;
            let stuck = loop {
                let found = &self.found[at];
                if marks[at] == 2 || found.at_rest {
                    break None;
                }
                if marks[at] == 1 {
                    break Some("it loops without end, although nothing goes wrong any more");
                }
                marks[at] = 1;
                way.push(at);
                if found.calm == NONE {
                    break Some("nothing can happen any more, and the run has not ended");
                }
                at = found.calm as usize;
            };
            if let Some(why) = stuck {
                let way: Vec<u32> = way.iter().filter_map(|at| u32::try_from(*at).ok()).collect();
                return Err(self.stuck(why, &way));
            }
            for at in way {
                marks[at] = 2;
            }
        }
        Ok(())
    }

    /// The undisturbed run ends well.
    fn is_well(&self) -> Result<(), String> {
        let mut at = 0;
        while !self.found[at].at_rest {
            at = self.found[at].calm as usize;
        }
        let world = self.replay(u32::try_from(at).unwrap_or(NONE)).pop().map(|(_, world)| world);
        let state = world.map(|world| world.node().provision_state);
        if self.found[at].faults == 0
            && state.is_some_and(|state| !is_failure(state) && state != ProvisionState::CleanHold)
        {
            return Ok(());
        }
        let index = u32::try_from(at).unwrap_or(NONE);
        Err(self.report(
            "an_undisturbed_run_ends_well",
            "every step runs, in order",
            &format!("{state:?}"),
            index,
            None,
        ))
    }

    fn stuck(&self, why: &str, way: &[u32]) -> String {
        let sentence = "none lost, none stuck: from every world that can be reached the run comes to rest";
        let start = way.first().copied().unwrap_or(0);
        let mut text = self.report("every_run_ends", sentence, why, start, None);
        text.push_str("  and from there, undisturbed:\n");
        for at in way.iter().skip(1).take(60) {
            if let Some((transition, world)) = self.replay(*at).pop() {
                let _ = writeln!(text, "       {}", line(transition, &world));
            }
        }
        text
    }

    /// The way to a world, move by move.
    fn replay(&self, index: u32) -> Vec<(Transition, World)> {
        let mut transitions = Vec::new();
        let mut at = index;
        while at != NONE && self.found[at as usize].from != NONE {
            transitions.push((self.found[at as usize].transition, at));
            at = self.found[at as usize].from;
        }
        let mut world = World::first(&self.scenario);
        let mut way = vec![(Transition::User(self.scenario.request().verb), world.clone())];
        for (transition, reached) in transitions.into_iter().rev() {
            let next = moves::all(&self.scenario, &world).into_iter().find(|next| {
                next.transition == transition && self.known.get(&fingerprint(&next.world)) == Some(&reached)
            });
            let Some(next) = next else { break };
            world = next.world;
            way.push((transition, world.clone()));
        }
        way
    }

    fn report(&self, name: &str, sentence: &str, why: &str, index: u32, last: Option<Transition>) -> String {
        let mut text = format!("{}: {name} is broken\n  {sentence}\n  {why}\n  trace:\n", self.scenario.name);
        let mut way = self.replay(index);
        if let (Some(transition), Some((_, world))) = (last, way.last()) {
            let next =
                moves::all(&self.scenario, world).into_iter().find(|next| next.transition == transition);
            way.extend(next.map(|next| (transition, next.world)));
        }
        for (number, (transition, world)) in way.iter().enumerate() {
            let _ = writeln!(text, "  {number:3}. {}", line(*transition, world));
        }
        text
    }
}
