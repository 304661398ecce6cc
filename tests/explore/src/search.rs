//! Visits every world that can be reached, and says where the first one is that breaks a property.

use crate::action::Action;
use crate::canon::fingerprint;
use crate::moves::{self, Next};
use crate::properties::{Move, PROPERTIES, is_failure};
use crate::scenario::Scenario;
use crate::world::{Runs, Stand, World};
use model::ProvisionState;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// More worlds than this are a mistake of the scenario.
const MOST: usize = 3_000_000;

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
    action: Action,
    depth: u32,
    faults: u8,
    calm: u32,
    looked_at: bool,
    at_rest: bool,
}

const NONE: u32 = u32::MAX;

/// Explore a scenario.
///
/// # Errors
/// The broken property with its shortest trace: fewest disturbances, then fewest moves.
pub fn explore(scenario: &Scenario) -> Result<Explored, String> {
    let begun = Instant::now();
    let mut search = Search {
        scenario,
        found: Vec::new(),
        known: HashMap::new(),
        levels: BTreeMap::new(),
        moves: 0,
        ends: BTreeMap::new(),
    };
    search.meet(World::first(scenario), NONE, Action::Tick, 0);
    while let Some((_, worlds)) = search.levels.pop_first() {
        for (index, world) in worlds {
            if !search.found[index as usize].looked_at {
                search.look(index, &world)?;
            }
        }
    }
    search.is_live()?;
    search.is_well()?;
    Ok(Explored { states: search.found.len(), moves: search.moves, took: begun.elapsed(), ends: search.ends })
}

struct Search<'a> {
    scenario: &'a Scenario,
    found: Vec<Found>,
    known: HashMap<u64, u32>,
    /// Worlds to be looked at, by disturbances and then by moves.
    levels: BTreeMap<(u8, u32), Vec<(u32, World)>>,
    moves: usize,
    ends: BTreeMap<&'static str, usize>,
}

impl Search<'_> {
    /// A world was reached; its number.
    fn meet(&mut self, world: World, from: u32, action: Action, depth: u32) -> u32 {
        let faults = world.story.faults;
        let fresh = u32::try_from(self.found.len()).unwrap_or(NONE);
        let index = *self.known.entry(fingerprint(&world)).or_insert(fresh);
        if index == fresh {
            let at_rest = world.is_at_rest();
            if at_rest {
                *self.ends.entry(world.node().provision_state.as_str()).or_default() += 1;
            }
            self.found.push(Found { from, action, depth, faults, calm: NONE, looked_at: false, at_rest });
        } else {
            let found = &mut self.found[index as usize];
            if found.looked_at || (found.faults, found.depth) <= (faults, depth) {
                return index;
            }
            (found.from, found.action, found.depth, found.faults) = (from, action, depth, faults);
        }
        self.levels.entry((faults, depth)).or_default().push((index, world));
        index
    }

    fn look(&mut self, index: u32, world: &World) -> Result<(), String> {
        let depth = self.found[index as usize].depth;
        self.found[index as usize].looked_at = true;
        for next in moves::all(self.scenario, world) {
            self.moves += 1;
            let now = Move { scenario: self.scenario, before: world, next: &next };
            for property in PROPERTIES {
                if let Err(why) = (property.check)(&now) {
                    return Err(self.report(
                        property.name,
                        property.sentence,
                        &why,
                        index,
                        Some(next.action),
                    ));
                }
            }
            let Next { action, world: after, .. } = next;
            let reached = self.meet(after, index, action, depth + 1);
            let found = &mut self.found[index as usize];
            if found.calm == NONE && !action.is_disturbance() && reached != index {
                found.calm = reached;
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
        Ok(())
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
                    break Some("it goes round for ever, although nothing goes wrong any more");
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
            if let Some((action, world)) = self.replay(*at).pop() {
                let _ = writeln!(text, "       {}", line(action, &world));
            }
        }
        text
    }

    /// The way to a world, move by move.
    fn replay(&self, index: u32) -> Vec<(Action, World)> {
        let mut actions = Vec::new();
        let mut at = index;
        while at != NONE && self.found[at as usize].from != NONE {
            actions.push((self.found[at as usize].action, at));
            at = self.found[at as usize].from;
        }
        let mut world = World::first(self.scenario);
        let mut way = vec![(Action::User(self.scenario.request().verb), world.clone())];
        for (action, reached) in actions.into_iter().rev() {
            let next = moves::all(self.scenario, &world).into_iter().find(|next| {
                next.action == action && self.known.get(&fingerprint(&next.world)) == Some(&reached)
            });
            let Some(next) = next else { break };
            world = next.world;
            way.push((action, world.clone()));
        }
        way
    }

    fn report(&self, name: &str, sentence: &str, why: &str, index: u32, last: Option<Action>) -> String {
        let mut text = format!("{}: {name} is broken\n  {sentence}\n  {why}\n  trace:\n", self.scenario.name);
        let mut way = self.replay(index);
        if let (Some(action), Some((_, world))) = (last, way.last()) {
            let next = moves::all(self.scenario, world).into_iter().find(|next| next.action == action);
            way.extend(next.map(|next| (action, next.world)));
        }
        for (number, (action, world)) in way.iter().enumerate() {
            let _ = writeln!(text, "  {number:3}. {}", line(*action, world));
        }
        text
    }
}

/// One line of a trace: what happened, and how it stands then.
fn line(action: Action, world: &World) -> String {
    let node = world.node();
    let cursor = node.run.as_ref().map(|run| format!("{:?}", run.cursor)).unwrap_or_default();
    let cursor = cursor.split([' ', '{']).next().unwrap_or_default().to_owned();
    let step = world.run().and_then(|run| run.current()).map(|step| step.label()).unwrap_or_default();
    let stand = match &world.conductor {
        Stand::Idle => String::new(),
        Stand::Storing(_) => " · half stored".to_owned(),
        Stand::Begun(_) => " · begun".to_owned(),
        Stand::Done(absorbing) => {
            format!(" · did {}, to store {}", word(&absorbing.deed), word(&absorbing.outcome))
        }
    };
    let machine = match &world.machine.runs {
        Runs::Nothing => "off".to_owned(),
        Runs::Firmware => "booting".to_owned(),
        Runs::Workload => "disk".to_owned(),
        Runs::Agent(agent) => {
            let commands: Vec<String> = agent
                .commands
                .iter()
                .map(|command| format!("{}:{}", command.step, word(&command.state)))
                .collect();
            let token = if agent.token.is_none() { ", no token" } else { "" };
            format!("agent {}{token} [{}]", agent.process, commands.join(" "))
        }
    };
    let why = node.last_error.as_ref().map(|error| format!(" · last_error: {error}")).unwrap_or_default();
    let tick = i64::try_from(crate::scenario::TICK.as_micros()).unwrap_or(1);
    format!(
        "{action:55}  t{:<3} {} {cursor} {step} · boot {} {machine}{stand}{why}",
        world.now().0 / tick - 1_000,
        node.provision_state.as_str(),
        world.machine.boot,
        action = action.to_string(),
    )
}

/// The first word of a debug text.
fn word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}
