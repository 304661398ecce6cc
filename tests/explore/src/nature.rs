//! What happens outside the conductor: the machine and its agent, the network, time, the user.

use crate::effects;
use crate::moves::{Moves, Next};
use crate::scenario::{BOOT_LIMIT, By, SILENCE, STEP_LIMIT, Scenario, TICK};
use crate::transition::Transition;
use crate::turn;
use crate::world::{Agent, Held, Lack, Link, Runs, Stand, State, Task, World};
use mac::Mac;
use model::boot::BootNonce;
use model::request::VerbRequest;
use model::request::accept_hello;
use model::{Contact, Cursor, ProvisionState, Timestamp, Verb};
use std::net::IpAddr;
use std::time::Duration;
use store::contact::{beat, fetch, grant};
use store::{FetchSource, ScriptFetch, ScriptGrant, TokenGrant, TokenRequest};

/// A heartbeat that is as late as this is lost: its sender has timed out.
const LATEST: Duration = TICK.saturating_mul(2);

/// Everything that may happen outside the conductor; `asleep`: it waits for time to pass.
pub fn moves(scenario: &Scenario, world: &World, asleep: bool, moves: &mut Moves) {
    network(scenario, world, moves);
    machine(world, moves);
    instance(scenario, world, moves);
    agent(scenario, world, moves);
    impostor(scenario, world, moves);
    bmc(world, moves);
    if world.is_under_way() {
        if asleep && world.node().next_wake_at.is_some() {
            moves.push(Next::new(Transition::Tick, ticked(scenario, world)));
        }
        if moves.may(Transition::Away) {
            let mut away = world.clone();
            away.conductor = Stand::Idle;
            turn::note_death(scenario, &mut away);
            moves.push(Next::new(Transition::Away, passed(scenario, away, BOOT_LIMIT, false)));
        }
    }
    user(scenario, world, moves);
}

fn network(scenario: &Scenario, world: &World, moves: &mut Moves) {
    let mut link = |transition, link| moves.change(transition, world, |next| next.link = link);
    match world.link {
        Link::Up if scenario.agent && world.is_under_way() => {
            link(Transition::Mute, Link::Mute);
            link(Transition::Cut, Link::Down);
        }
        Link::Up => {}
        Link::Mute | Link::Down => link(Transition::Heal, Link::Up),
    }
    if world.held.is_some() {
        moves.push(arrive(scenario, world));
    }
}

/// A message that was held back arrives.
fn arrive(scenario: &Scenario, world: &World) -> Next {
    let mut next = world.clone();
    let mut began = None;
    match next.held.take() {
        Some(Held::Beat(late)) => {
            let (token, mut sent) = *late;
            sent.at = next.now();
            let mut taken = false;
            next.store(|stored| taken = beat(&mut stored.contact, &token, sent));
            if taken {
                next.story.heard_at = next.now();
            }
        }
        Some(Held::Command(late)) => {
            let (id, step, token) = *late;
            if next.agent().is_some_and(|agent| agent.token == token) {
                began = effects::submit(scenario, &mut next, &id, step).1;
            }
        }
        None => {}
    }
    if let Some(began) = &mut began {
        began.late = true;
    }
    Next { began, ..Next::new(Transition::Arrive, next) }
}

fn machine(world: &World, moves: &mut Moves) {
    if world.machine.outage && !world.machine.power.on {
        moves.change(Transition::PowerBack, world, |next| {
            next.start();
            next.machine.network_boot = true;
        });
    }
    if !world.machine.power.on {
        return;
    }
    if let Runs::Firmware = world.machine.power.runs {
        moves.change(Transition::Boot, world, |next| {
            // The boot service asks at this moment whether the node is to have the ramdisk.
            if next.machine.network_boot && next.node().boots_ramdisk() {
                // Without a script it asks again.
                if let ScriptGrant::Given(nonce) = script(next) {
                    next.machine.network_boot = false;
                    start_agent(next, nonce);
                }
                return;
            }
            next.machine.network_boot = false;
            next.machine.power.runs = Runs::Workload;
        });
    }
    if !world.is_under_way() || world.run().is_some_and(|run| run.cursor == Cursor::Start) {
        return;
    }
    let mut harm = |transition: Transition, change: fn(&mut World)| {
        moves.change(transition, world, |next| {
            change(next);
            next.story.harmed = true;
        });
    };
    harm(Transition::PowerLost, |next| {
        next.machine.power.switch_off();
        next.machine.outage = true;
    });
    harm(Transition::Reset, |next| {
        next.start();
        next.machine.network_boot = true;
    });
    harm(Transition::ResetToDisk, |next| {
        next.start();
        next.machine.network_boot = false;
    });
}

/// What is on the disk runs. That a run awaits its hello means that the run wrote it.
fn instance(scenario: &Scenario, world: &World, moves: &mut Moves) {
    if let Runs::Workload = world.machine.power.runs
        && let Some((node, event)) = accept_hello(world.node(), world.now())
    {
        let mut next = world.clone();
        next.store_node(scenario, node);
        moves.push(Next { events: vec![event], ..Next::new(Transition::Hello, next) });
    }
}

/// The machine fetches its boot script.
fn script(world: &mut World) -> ScriptGrant {
    let from = IpAddr::from([192, 0, 2, 1]);
    let fetched = ScriptFetch {
        by: FetchSource::Nic(Mac::new([2, 0, 0, 0, 0, 1])),
        from,
        at: world.now(),
        medium: None,
    };
    let run = world.run().cloned();
    let mut grant = ScriptGrant::Withheld;
    world.store(|stored| grant = fetch(&mut stored.contact, run.as_ref(), &fetched));
    grant
}

fn start_agent(world: &mut World, nonce: BootNonce) {
    world.machine.processes += 1;
    let process = world.machine.processes;
    world.machine.power.runs = Runs::Agent(Agent { process, nonce, token: None, commands: Vec::new() });
}

/// Someone asks for the token who knows the MAC address and nothing else.
fn impostor(scenario: &Scenario, world: &World, moves: &mut Moves) {
    let mut contact = world.stored.contact.clone();
    let request = TokenRequest::without_nonce("token-0-1", None, world.now());
    let request = TokenRequest { without_nonce: scenario.never_off, ..request };
    grant(&mut contact, world.run(), request);
    if contact != world.stored.contact {
        moves.change(Transition::Impostor, world, |next| next.store(|stored| stored.contact = contact));
    }
}

fn agent(scenario: &Scenario, world: &World, moves: &mut Moves) {
    let Some(agent) = world.agent() else { return };
    if world.link == Link::Up {
        if agent.token.is_none() {
            if let Some(next) = looked_up(world, true) {
                moves.push(Next::new(Transition::Lookup, next));
            }
            if let Some(next) =
                looked_up(world, false).filter(|next| next.stored.contact.token != world.stored.contact.token)
            {
                moves.push(Next::new(Transition::LookupLost, next));
            }
        }
        if let Some(next) = beaten(scenario, world) {
            if let (Some(token), None) = (&agent.token, &world.held) {
                let held = Some(Held::Beat(Box::new((token.clone(), world.beat(scenario, agent)))));
                let late = World { held: held.clone(), ..world.clone() };
                let twice = World { held, ..next.clone() };
                moves.push(Next::new(Transition::BeatLate, late));
                moves.push(Next::new(Transition::BeatTwice, twice));
            }
            moves.push(Next::new(Transition::Beat, next));
        }
    }
    steps(scenario, world, agent, moves);
    if world.is_under_way() {
        let nonce = agent.nonce.clone();
        moves.change(Transition::AgentRestarts, world, |next| {
            start_agent(next, nonce);
            next.story.harmed = true;
        });
        moves.change(Transition::ManagersChange, world, |next| {
            next.machine.managers += 1;
            next.story.flips += 1;
            next.story.harmed |= next.story.flips > scenario.settings.max_replans;
        });
    }
}

/// How the running step may go on.
fn steps(scenario: &Scenario, world: &World, agent: &Agent, moves: &mut Moves) {
    let Some(place) =
        agent.commands.iter().position(|command| matches!(command.state, State::Running { .. }))
    else {
        return;
    };
    let command = &agent.commands[place];
    let State::Running { hung, cancelled } = command.state else { return };
    let mut to = |transition: Transition, state: State, harms: bool| {
        moves.change(transition, world, |next| {
            if let Some(command) = next.agent_mut().and_then(|agent| agent.commands.get_mut(place)) {
                command.state = state;
            }
            if matches!(state, State::Succeeded | State::Unproven(_)) {
                next.note_end(command.step, command.of);
            }
            if state == State::Succeeded {
                next.note_proof(command.step, command.of);
            }
            next.story.harmed |= harms;
            next.story.hung |= transition == Transition::StepHangs;
        });
    };
    if hung.is_some() {
        return;
    }
    let abortable = scenario.steps.get(command.step).is_some_and(|step| step.abortable);
    if cancelled && abortable {
        to(Transition::StepStops, State::Stopped, false);
    }
    to(Transition::StepEnds, State::Succeeded, false);
    to(Transition::StepFails, State::Failed, true);
    to(Transition::StepLies, State::Contradicted, true);
    if scenario.signs && scenario.erases(command.step) {
        for lack in [Lack::Signature, Lack::Disk, Lack::Report] {
            to(Transition::StepUnproven(lack), State::Unproven(lack), true);
        }
    }
    if !cancelled {
        to(Transition::StepHangs, State::Running { hung: Some(world.now()), cancelled }, true);
    }
}

fn bmc(world: &World, moves: &mut Moves) {
    let Some(task) = world.machine.task.filter(|task| task.ended_well.is_none()) else { return };
    for (transition, well) in [(Transition::TaskEnds, true), (Transition::TaskFails, false)] {
        moves.change(transition, world, |next| {
            next.machine.task = Some(Task { ended_well: Some(well), ..task });
            if well {
                next.note_end(task.step, task.of);
            } else {
                next.story.harmed = true;
            }
        });
    }
}

/// States in which a lookup is answered (`api/src/ramdisk/lookup.rs`).
fn is_expected(state: ProvisionState) -> bool {
    use ProvisionState as P;
    matches!(state, P::CleanWait | P::Cleaning | P::Deploying | P::DeployWait | P::ServiceWait)
}

/// The agent asks for its token. `None`: the request or its answer is lost, or nothing changes.
fn looked_up(world: &World, arrives: bool) -> Option<World> {
    let agent = world.agent()?;
    if !is_expected(world.node().provision_state) {
        return None;
    }
    let mut next = world.clone();
    let token = format!("token-{}-{}", world.machine.power.boot, world.machine.tokens + 1);
    let boot_id = format!("boot-{}", world.machine.power.boot);
    let mut contact = world.stored.contact.clone();
    let nonce = agent.nonce.clone();
    let request = TokenRequest::with_nonce(nonce, &token, Some(&boot_id), world.now());
    let granted = grant(&mut contact, world.run(), request);
    if granted == TokenGrant::Given {
        next.machine.tokens += 1;
        next.story.token_boot = world.machine.power.boot;
        if arrives && let Some(agent) = next.agent_mut() {
            agent.token = Some(token);
        }
    } else if granted == TokenGrant::NotAwaited
        || agent.token.is_none() && world.stored.contact.rival == contact.rival
    {
        return None;
    }
    next.store(|stored| stored.contact = contact);
    Some(next)
}

/// The agent sends a heartbeat, and looks itself up again when it is refused. `None`: nothing is new.
fn beaten(scenario: &Scenario, world: &World) -> Option<World> {
    let agent = world.agent()?;
    let token = agent.token.as_ref()?;
    let mut contact: Contact = world.stored.contact.clone();
    if !beat(&mut contact, token, world.beat(scenario, agent)) {
        return looked_up(world, true).filter(|next| next.stored.contact.token != world.stored.contact.token);
    }
    if contact == world.stored.contact {
        return None;
    }
    let mut next = world.clone();
    next.store(|stored| stored.contact = contact);
    next.story.heard_at = next.now();
    Some(next)
}

/// A tick passes; an agent that can be heard is heard.
fn ticked(scenario: &Scenario, world: &World) -> World {
    passed(scenario, world.clone(), 1, true)
}

/// Time passes. `served`: the controller is there.
fn passed(scenario: &Scenario, mut world: World, ticks: u64, served: bool) -> World {
    let span = TICK * u32::try_from(ticks).unwrap_or(u32::MAX);
    world.store(|stored| stored.now = stored.now.after(span));
    let late = |held: &Held| matches!(held, Held::Beat(late) if world.now().since(late.1.at) >= LATEST);
    if world.held.as_ref().is_some_and(late) {
        world.held = None;
    }
    if !served {
        world.store(|stored| stored.listening_since = stored.now);
    }
    if served && world.link == Link::Up {
        let asked = match world.agent() {
            Some(agent) if agent.token.is_none() => looked_up(&world, true),
            _ => beaten(scenario, &world),
        };
        world = asked.unwrap_or(world);
    }
    note_time(scenario, &mut world, served);
    world
}

/// Whether a run may fail because of the time that has passed.
fn note_time(scenario: &Scenario, world: &mut World, served: bool) {
    let now = world.now();
    let Some(run) = world.run() else { return };
    let age = |then: Timestamp| now.since(then).as_secs() / TICK.as_secs();
    let contact = &world.stored.contact;
    let mut harm = world.link == Link::Down && served;
    match &run.cursor {
        Cursor::Issued { at, .. } => {
            let heard = contact.last_heartbeat_at.unwrap_or(*at).max(*at).max(world.stored.listening_since);
            let running = world.agent().is_some_and(|agent| agent.running().is_some());
            harm |= running && age(*at) >= STEP_LIMIT;
            harm |= served && age(heard) >= SILENCE;
        }
        Cursor::OutOfBand { at, .. } => {
            let step = run.index.and_then(|index| scenario.steps.get(index));
            harm |= step.is_none_or(|step| step.by != By::Controller) && age(*at) >= STEP_LIMIT;
        }
        _ => {
            let over = world.node().wait.as_ref().and_then(|wait| wait.deadline).is_some_and(|at| at <= now);
            let awaits = matches!(run.cursor, Cursor::AwaitAgent | Cursor::Pause { .. });
            harm |= over && (served || !awaits || world.agent().is_none());
        }
    }
    world.story.harmed |= harm;
}

fn user(scenario: &Scenario, world: &World, moves: &mut Moves) {
    let mut ask = |request: VerbRequest| {
        let verb = request.verb;
        if moves.may(Transition::User(verb))
            && let Ok((mut next, events)) = world.ask(scenario, request)
        {
            if verb == Verb::Abort {
                next.story.abort = true;
                next.story.harmed = true;
            }
            moves.push(Next { events, ..Next::new(Transition::User(verb), next) });
        }
    };
    if world.run().is_some_and(|run| run.cursor == Cursor::Hold) {
        ask(VerbRequest::of(Verb::Unhold));
    }
    if world.run().is_some_and(|run| !run.abort) {
        ask(VerbRequest::of(Verb::Abort));
    }
    if (world.is_at_rest() || world.keeps_ramdisk()) && world.run().is_none() {
        for request in &scenario.again {
            ask(request.clone());
        }
    }
}
