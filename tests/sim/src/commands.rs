//! What an agent answers to its controller: the real registry and the real step table, in an agent's clothes.

use crate::agent::AgentProcess;
use crate::execution;
use crate::held;
use crate::machine::{Flavour, Machine};
use crate::offers::modelled;
use crate::wire::Ask;
use crate::world::World;
use agent_protocol::command::{CommandRequest, CommandStatus, Status};
use agentd::registry::{Cancel, Ending, Submission};
use axum::http::StatusCode;
use hwm_sdk::StepKind;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Status and body, or why there are none.
pub type Reply = Result<(StatusCode, Vec<u8>), String>;

/// What a command is.
enum Command {
    GetSteps(StepKind),
    ExecuteStep(StepKind),
    FinalizeRescue,
    Cancel,
}

/// Let the agent of a machine answer.
pub async fn answer(world: &Arc<World>, machine: &Arc<Machine>, ask: &Ask) -> Reply {
    let Some(agent) = machine.agent() else {
        return Err(format!("connection refused: {}", world.happened(machine, "no agent answers")));
    };
    if ask.certificate.as_deref() != Some(agent.certificate.as_str()) {
        let number = world.happened(machine, "another agent than the one that is trusted answers");
        return Err(format!("the certificate is another {number}"));
    }
    if !held(&agent.token).as_ref().is_some_and(|token| token.matches(&ask.token)) {
        return Ok(fault(StatusCode::UNAUTHORIZED, "401 Unauthorized: Token invalid."));
    }
    let Some(body) = &ask.body else { return Ok(question(&agent, &ask.tail)) };
    let request: CommandRequest = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return Ok(fault(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let reply = submit(world, machine, &agent, &request);
    world.trace.note(|| {
        let id = request.anneal_command_id.as_deref().unwrap_or("no id");
        let answer = String::from_utf8_lossy(&reply.1);
        let answer: String = answer.chars().take(160).collect();
        format!("{} command {} ({id}) → {} {answer}", machine.name, request.name, reply.0)
    });
    Ok(reply)
}

fn question(agent: &AgentProcess, tail: &str) -> (StatusCode, Vec<u8>) {
    let registry = held(&agent.registry);
    let id = tail.split('?').next().unwrap_or_default();
    if id.is_empty() {
        return ok(&registry.list());
    }
    match registry.status(id) {
        Some(status) => ok(&status),
        None => fault(StatusCode::NOT_FOUND, &format!("Not found: Command Result with id {id} not found.")),
    }
}

fn submit(
    world: &Arc<World>,
    machine: &Arc<Machine>,
    agent: &Arc<AgentProcess>,
    request: &CommandRequest,
) -> (StatusCode, Vec<u8>) {
    let Some((command, short)) = find(&request.name, machine.flavour) else {
        return fault(
            StatusCode::BAD_REQUEST,
            &format!("Invalid command: Unknown command: {}", request.name),
        );
    };
    // ironic-python-agent knows nothing of ids that others choose.
    let wanted = request.anneal_command_id.as_deref().filter(|_| machine.flavour == Flavour::Anneal);
    let fresh = world.rng.uuid().to_string();
    if let Command::Cancel = command {
        let submission = held(&agent.registry).record(short, wanted, fresh, |registry| {
            let target = request.params.get("command_id").and_then(Value::as_str).unwrap_or_default();
            match registry.cancel(target) {
                Cancel::Unknown => Ending::failed("CommandNotFound", "Nothing to cancel", target),
                asked => Ending::done(Some(json!({"was_running": asked == Cancel::Asked}))),
            }
        });
        return submitted(submission);
    }
    let submission = held(&agent.registry).submit(short, wanted, fresh);
    let (id, context) = match submission {
        Submission::New { id, context } => (id, context),
        other => return submitted(other),
    };
    match command {
        Command::GetSteps(kind) => {
            let steps = get_steps(world, machine, kind);
            held(&agent.registry).finish(&id, Ending::done(Some(steps)));
        }
        Command::ExecuteStep(kind) => {
            execution::begin(world, machine, agent, &id, context, kind, &request.params);
        }
        Command::FinalizeRescue => {
            let hashed = request.params.get("hashed") == Some(&Value::Bool(true));
            world.trace.note(|| format!("{} rescued", machine.name));
            let ending = if hashed {
                held(&world.ground_truth).rescues[machine.index] += 1;
                Ending::done(None)
            } else {
                Ending::failed("RescueError", "Rescue failed", "a plain password")
            };
            held(&agent.registry).finish(&id, ending);
            agent.bell.notify_one();
        }
        Command::Cancel => {}
    }
    match held(&agent.registry).status(&id) {
        Some(status) => ok(&status),
        None => fault(StatusCode::INTERNAL_SERVER_ERROR, "the command is gone"),
    }
}

/// The command of a name, with its name without the extension.
fn find(name: &str, flavour: Flavour) -> Option<(Command, &str)> {
    let short = name.split_once('.')?.1;
    let kinds = [(StepKind::Clean, "clean"), (StepKind::Deploy, "deploy"), (StepKind::Service, "service")];
    for (kind, word) in kinds {
        if name == format!("{word}.get_{word}_steps") {
            return Some((Command::GetSteps(kind), short));
        }
        if name == format!("{word}.execute_{word}_step") {
            return Some((Command::ExecuteStep(kind), short));
        }
    }
    match name {
        "rescue.finalize_rescue" => Some((Command::FinalizeRescue, short)),
        "anneal.cancel" if flavour == Flavour::Anneal => Some((Command::Cancel, short)),
        _ => None,
    }
}

fn get_steps(world: &World, machine: &Machine, kind: StepKind) -> Value {
    let offers = machine.state().offers.clone();
    held(&world.ground_truth).advertised(machine.index, modelled(kind), &offers, world.now());
    execution::table(machine, &offers, kind, None).advertised()
}

fn submitted(submission: Submission) -> (StatusCode, Vec<u8>) {
    match submission {
        Submission::Known(status) => ok(&*status),
        Submission::Busy { command_name } => {
            fault(StatusCode::CONFLICT, &format!("Agent is busy: executing command {command_name}"))
        }
        Submission::Reused { command_name } => {
            fault(StatusCode::CONFLICT, &format!("Invalid command: the id has been used for {command_name}"))
        }
        // Not reached: the callers handle new commands themselves.
        Submission::New { id, .. } => ok(&CommandStatus {
            id,
            command_name: String::new(),
            command_status: Status::Running,
            command_error: None,
            command_result: None,
            progress: None,
            checkpoint: None,
        }),
    }
}

fn ok(value: &impl serde::Serialize) -> (StatusCode, Vec<u8>) {
    (StatusCode::OK, serde_json::to_vec(value).unwrap_or_default())
}

fn fault(status: StatusCode, text: &str) -> (StatusCode, Vec<u8>) {
    let mut body = Map::new();
    body.insert("faultstring".to_owned(), text.into());
    (status, serde_json::to_vec(&body).unwrap_or_default())
}
