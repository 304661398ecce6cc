//! What an action does to the world, and every answer that may come of it.

use crate::evidence;
use crate::moves::Began;
use crate::scenario::{By, Scenario};
use crate::transition::Answer;
use crate::world::{Command, Held, Link, Runs, State, Task, World};
use agent_protocol::command::{CommandStatus, Status};
use conductor::decision::{Action, ActionError, Outcome};
use model::{Cursor, PowerState, PowerTarget};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The agent cannot be reached.
pub const UNREACHABLE: &str = "the agent could not be reached";
/// The BMC does not answer.
pub const BMC_SILENT: &str = "the BMC does not answer";
/// The BMC refuses.
pub const BMC_REFUSES: &str = "the BMC refuses this user";
/// A step of the agent fails.
pub const STEP_FAILED: &str = "the disk cannot be written";
/// A step of the BMC fails.
pub const TASK_FAILED: &str = "the BMC could not apply the setting";

/// One way in which an action may go.
pub struct Effect {
    /// How it was answered.
    pub answer: Answer,
    /// The world after it.
    pub world: World,
    /// What the conductor learns; `None`: it died.
    pub outcome: Option<Outcome>,
    /// The step that began.
    pub began: Option<Began>,
}

impl Effect {
    fn of(answer: Answer, world: World, outcome: Outcome) -> Self {
        Self { answer, world, outcome: Some(outcome), began: None }
    }
}

/// Every way in which an action may go. The first is the undisturbed one, and the only one in a calm world.
pub fn effects(scenario: &Scenario, world: &World, action: &Action, calm: bool) -> Vec<Effect> {
    match action {
        Action::AskSteps(_)
        | Action::SendStep { .. }
        | Action::AskCommand { .. }
        | Action::CancelCommand { .. } => to_agent(scenario, world, action, calm),
        Action::RunStep { command_id, step, polling, .. } => match scenario.index(&step.label()) {
            Some(index) if *polling => poll(world, index, calm),
            Some(index) => run_step(scenario, world, command_id, index, calm),
            None => vec![Effect::of(Answer::Well, world.clone(), failed("there is no such step", false))],
        },
        Action::VerifyBmc
        | Action::ReadPower
        | Action::ReadState
        | Action::SetPower(_)
        | Action::ReadBootDevice
        | Action::SetBootDevice
        | Action::InsertMedium
        | Action::EjectMedium
        | Action::RestoreBootDevice(_)
        | Action::InspectBmc => to_bmc(scenario, world, action, calm),
        Action::CollectLogs(_) => collect_logs(world, calm),
    }
}

/// They change nothing, whatever comes of them.
fn collect_logs(world: &World, calm: bool) -> Vec<Effect> {
    let kept = Effect::of(Answer::Well, world.clone(), Outcome::Done);
    let lost = Effect::of(Answer::RequestLost, world.clone(), failed(UNREACHABLE, true));
    if calm { vec![kept] } else { vec![kept, lost] }
}

fn failed(text: &str, retryable: bool) -> Outcome {
    Outcome::Failed(ActionError { text: text.to_owned(), retryable, unreachable: retryable })
}

fn to_bmc(scenario: &Scenario, world: &World, action: &Action, calm: bool) -> Vec<Effect> {
    let done = bmc_does(world, action);
    let reserved = began_reserved(scenario, world, action);
    let outcome = match action {
        Action::SetBootDevice | Action::InsertMedium | Action::EjectMedium | Action::RestoreBootDevice(_) => {
            Outcome::Done
        }
        Action::ReadBootDevice => Outcome::BootDevice(world.boot_device()),
        Action::ReadState => Outcome::State(done.power(), None),
        _ => Outcome::Power(done.power()),
    };
    let with = |answer: Answer, world: World, outcome: Option<Outcome>, began: bool| Effect {
        answer,
        world,
        outcome,
        began: reserved.clone().filter(|_| began),
    };
    let mut effects = vec![with(Answer::Well, ended(&done, &reserved), Some(outcome), true)];
    if calm {
        return effects;
    }
    let silent = || Some(failed(BMC_SILENT, true));
    effects.push(with(Answer::RequestLost, world.clone(), silent(), false));
    // A BMC that refuses to report its boot device is modelled as one that has none to report.
    if !matches!(action, Action::ReadPower | Action::ReadState | Action::ReadBootDevice) {
        effects.push(with(Answer::AnswerLost, ended(&done, &reserved), silent(), true));
        let mut refused = world.clone();
        refused.story.harmed = true;
        effects.push(with(Answer::Refused, refused, Some(failed(BMC_REFUSES, false)), false));
    }
    if matches!(action, Action::SetPower(_)) && done.power() != world.power() {
        let mut ignored = world.clone();
        // A power step is asked for once, then only looked at.
        ignored.story.harmed |= reserved.is_some();
        let power = Outcome::Power(ignored.power());
        effects.push(with(Answer::Ignored, ignored, Some(power), reserved.is_some()));
    }
    if let Action::SetPower(PowerTarget::Reboot) = action
        && reserved.is_none()
    {
        let mut ignored = world.clone();
        ignored.story.harmed = true;
        note_reset(&mut ignored, PowerTarget::Reboot);
        let power = Outcome::Power(ignored.power());
        effects.push(with(Answer::Ignored, ignored, Some(power), false));
    }
    if reserved.is_some() {
        effects.push(with(Answer::Dies, ended(&done, &reserved), None, true));
    }
    effects
}

fn bmc_does(world: &World, action: &Action) -> World {
    let mut done = world.clone();
    match action {
        Action::SetBootDevice => {
            done.machine.network_boot = true;
            done.machine.boot_forgotten = true;
        }
        Action::RestoreBootDevice(_) => done.machine.boot_forgotten = false,
        Action::SetPower(target) => {
            if target.resulting_state() == PowerState::Off {
                done.machine.power.switch_off();
                done.story.off_boot = done.machine.power.boot;
            } else if *target == PowerTarget::Reboot || !done.machine.power.on {
                note_reset(&mut done, *target);
                done.start();
            }
        }
        _ => {}
    }
    done
}

/// A reset in the place of switching the node off is accepted.
fn note_reset(world: &mut World, target: PowerTarget) {
    if target == PowerTarget::Reboot && world.run().is_some_and(|run| run.cursor == Cursor::PowerOn) {
        world.story.reset_boot = world.machine.power.boot - u32::from(world.is_in_firmware());
    }
}

/// The reserved power step that this action is.
fn began_reserved(scenario: &Scenario, world: &World, action: &Action) -> Option<Began> {
    let run = world.run()?;
    let Cursor::OutOfBand { command_id, .. } = &run.cursor else { return None };
    let step =
        run.index.filter(|index| scenario.steps.get(*index).is_some_and(|step| step.by == By::Engine))?;
    let Action::SetPower(_) = action else { return None };
    Some(Began { step, command_id: command_id.clone(), late: false })
}

/// A reserved power step has ended when the BMC has done it.
fn ended(done: &World, reserved: &Option<Began>) -> World {
    let mut world = done.clone();
    if let Some(began) = reserved {
        let of = (world.story.run, world.story.round);
        world.note_begin(began.step);
        world.note_end(began.step, of);
    }
    world
}

fn run_step(scenario: &Scenario, world: &World, command_id: &str, step: usize, calm: bool) -> Vec<Effect> {
    let spec = &scenario.steps[step];
    let of = (world.story.run, world.story.round);
    let began = Some(Began { step, command_id: command_id.to_owned(), late: false });
    let mut begun = world.clone();
    begun.note_begin(step);
    let mut done = begun.clone();
    done.note_end(step, of);
    let with = |answer: Answer, mut world: World, outcome: Option<Outcome>, harms: bool| {
        world.story.harmed |= harms;
        let began = began.clone().filter(|_| answer != Answer::RequestLost);
        Effect { answer, world, outcome, began }
    };
    let lost = || Some(failed(BMC_SILENT, true));
    let once = !spec.idempotent;
    let mut effects = Vec::new();
    if spec.by == By::Bmc {
        let mut outside = begun.clone();
        outside.machine.task = Some(Task { step, of, ended_well: None });
        let running = Outcome::StepRunning("begun".to_owned());
        effects.push(with(Answer::GoesOn, outside.clone(), Some(running), false));
        done = outside;
    } else {
        effects.push(with(Answer::Well, done.clone(), Some(Outcome::StepDone(Value::Null)), false));
    }
    if calm {
        return effects;
    }
    effects.push(with(Answer::AnswerLost, done, lost(), once));
    effects.push(with(Answer::RequestLost, world.clone(), lost(), once));
    effects.push(with(Answer::BreaksOff, begun.clone(), lost(), once));
    effects.push(with(Answer::Refused, begun.clone(), Some(failed(TASK_FAILED, false)), true));
    effects.push(with(Answer::Dies, begun, None, false));
    effects
}

fn poll(world: &World, step: usize, calm: bool) -> Vec<Effect> {
    let outcome = match world.machine.task.filter(|task| task.step == step).map(|task| task.ended_well) {
        Some(Some(true)) => Outcome::StepDone(Value::Null),
        Some(None) => Outcome::StepRunning("half".to_owned()),
        _ => failed(TASK_FAILED, false),
    };
    let mut effects = vec![Effect::of(Answer::Well, world.clone(), outcome)];
    if !calm {
        effects.push(Effect::of(Answer::RequestLost, world.clone(), failed(BMC_SILENT, true)));
    }
    effects
}

fn to_agent(scenario: &Scenario, world: &World, action: &Action, calm: bool) -> Vec<Effect> {
    let contact = &world.stored.contact;
    let heard = contact.callback_url.is_some() && contact.token.is_some();
    // Another process has another certificate: it cannot be talked to either.
    let reachable = world.agent().is_some_and(|agent| heard && agent.token == contact.token);
    if !reachable || world.link == Link::Down {
        return vec![unanswered(Answer::Well, world.clone())];
    }
    let mut done = world.clone();
    let (outcome, began) = answered(scenario, &mut done, action);
    done.story.answers = true;
    let mut effects =
        vec![Effect { began: began.clone(), ..Effect::of(Answer::Well, done.clone(), outcome) }];
    if calm {
        return effects;
    }
    effects.push(unanswered(Answer::RequestLost, world.clone()));
    if matches!(action, Action::SendStep { .. } | Action::CancelCommand { .. }) {
        effects.push(Effect { began, ..unanswered(Answer::AnswerLost, done) });
    }
    if let (Action::SendStep { command_id, step, .. }, None) = (action, &world.held)
        && let Some(index) = scenario.index(&step.label())
        // An ironic-python-agent runs a request that comes late as one more: what is weaker with it.
        && !scenario.ipa
    {
        let mut late = world.clone();
        late.held = Some(Held::Command(Box::new((command_id.clone(), index, contact.token.clone()))));
        effects.push(unanswered(Answer::RequestLate, late));
    }
    effects
}

fn unanswered(answer: Answer, mut world: World) -> Effect {
    world.story.answers = false;
    Effect::of(answer, world, failed(UNREACHABLE, true))
}

fn answered(scenario: &Scenario, world: &mut World, action: &Action) -> (Outcome, Option<Began>) {
    match action {
        Action::AskSteps(kind) => {
            let busy = world.agent().is_some_and(|agent| agent.running().is_some());
            let outcome = if busy {
                Outcome::Busy("Agent is busy: executing a step".to_owned())
            } else {
                Outcome::Steps(BTreeMap::from([(*kind, scenario.advertised(world.machine.managers))]))
            };
            (outcome, None)
        }
        Action::SendStep { command_id, step, .. } => match scenario.index(&step.label()) {
            Some(index) => submit(scenario, world, command_id, index),
            None => (failed("there is no such step", false), None),
        },
        Action::CancelCommand { command_id } => {
            for command in world.agent_mut().into_iter().flat_map(|agent| &mut agent.commands) {
                if let State::Running { cancelled, .. } = &mut command.state
                    && command.id == *command_id
                {
                    *cancelled = true;
                }
            }
            (known(scenario, world, command_id), None)
        }
        Action::AskCommand { command_id } => (known(scenario, world, command_id), None),
        _ => (failed("not an action for an agent", false), None),
    }
}

/// A step command arrives at the agent.
pub fn submit(scenario: &Scenario, world: &mut World, id: &str, step: usize) -> (Outcome, Option<Began>) {
    let planned = world.run().map(|run| run.hardware_manager_version.get("generic").cloned());
    let matches = planned == Some(Some(Value::from(world.machine.managers.to_string())));
    let of = (world.story.run, world.story.round);
    // Of an ironic-python-agent the conductor takes the last command that is none of an earlier step of this plan for
    // its own.
    let known_results: Vec<String> = world.run().map(results).unwrap_or_default();
    let Runs::Agent(agent) = &mut world.machine.power.runs else {
        return (failed(UNREACHABLE, true), None);
    };
    let ours = |command: &&Command| match scenario.ipa {
        true => !known_results.contains(&command.id),
        false => command.id == id,
    };
    let of_this_plan = |command: &&Command| !scenario.ipa || command.state != State::Mismatch;
    let mut commands = agent.commands.iter().rev().take_while(of_this_plan);
    if let Some(id) = commands.find(ours).map(|command| command.id.clone()) {
        return (known(scenario, world, &id), None);
    }
    if agent.running().is_some() {
        return (Outcome::Busy("Agent is busy: executing a step".to_owned()), None);
    }
    let id = match scenario.ipa {
        true => format!("{}-{}", agent.commands.len(), agent.process),
        false => id.to_owned(),
    };
    let state = if matches { State::Running { hung: None, cancelled: false } } else { State::Mismatch };
    agent.commands.push(Command { id: id.clone(), step, of, state });
    let began = matches.then(|| Began { step, command_id: id.clone(), late: false });
    if matches {
        world.note_begin(step);
    }
    (known(scenario, world, &id), began)
}

fn results(run: &model::Run) -> Vec<String> {
    run.results.iter().map(|result| result.command_id.clone()).collect()
}

/// How the agent says that a command stands.
fn known(scenario: &Scenario, world: &World, id: &str) -> Outcome {
    let commands = world.agent().map(|agent| agent.commands.as_slice()).unwrap_or_default();
    let Some(command) = commands.iter().find(|command| command.id == id) else {
        return Outcome::NoSuchCommand;
    };
    let status = match command.state {
        State::Running { .. } => room::command(id, Status::Running),
        State::Succeeded | State::Contradicted | State::Unproven(_) => room::command(id, Status::Succeeded),
        State::Failed => room::failed(id, "CleaningError", STEP_FAILED),
        State::Stopped => room::failed(id, "Cancelled", "the step was cancelled by request"),
        State::Mismatch => room::command(id, Status::VersionMismatch),
    };
    let disk = json!({"disks": [{"device": "/dev/sda", "size": 1, "outcome": "failed", "reason": "not zero",
        "bytes_erased": 0}]});
    let kind = world.run().and_then(|run| run.kind.steps()).unwrap_or(scenario.step_kind());
    let key = kind.result_field();
    let signs = scenario.signs && scenario.erases(command.step);
    let name = scenario.steps.get(command.step).and_then(|step| step.label.split_once('.'));
    let command_result = match (command.state, name, world.agent()) {
        (State::Contradicted, ..) => Some(json!({ key: disk })),
        (State::Running { .. }, ..) => None,
        (State::Succeeded | State::Unproven(_), Some((_, name)), Some(agent)) if signs => {
            Some(evidence::result(world, agent.process, name, command))
        }
        _ => Some(Value::Null),
    };
    Outcome::Command(CommandStatus { command_result, ..status })
}
