//! What an agent answers to its controller: the commands are the library's, what they do is the machine's.

use crate::execution;
use crate::held;
use crate::invariants;
use crate::machine::Machine;
use crate::world::World;
use axum::http::StatusCode;
use model::StepKind;
use room::{Agent, Begun, Call, Ending, Work};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

/// The commands of the agent of a machine.
struct Commands<'a> {
    world: &'a Arc<World>,
    machine: &'a Arc<Machine>,
    agent: &'a Arc<Agent>,
}

/// Let the agent of a machine answer, if it is the one with this certificate.
///
/// # Errors
/// Why there is no answer.
pub fn answer(
    world: &Arc<World>,
    machine: &Arc<Machine>,
    call: &Call,
    certificate: Option<&str>,
) -> Result<(StatusCode, Vec<u8>), String> {
    let Some(agent) = machine.agent() else {
        return Err(format!("connection refused: {}", world.happened(machine, "no agent answers")));
    };
    if certificate != Some(agent.certificate.as_str()) {
        let number = world.happened(machine, "another agent than the one that is trusted answers");
        return Err(format!("the certificate is another {number}"));
    }
    let reply = agent.answer(&Commands { world, machine, agent: &agent }, call);
    if let Some(command) = call.command().filter(|_| reply.0.is_success()) {
        invariants::commanded(world, machine, &agent, command.anneal_epoch);
    }
    if call.is_command() {
        let answer = String::from_utf8_lossy(&reply.1);
        world.trace.note(|| format!("{} {call} → {} {answer:.160}", machine.name, reply.0));
    }
    Ok(reply)
}

impl Work for Commands<'_> {
    fn fresh_id(&self) -> Uuid {
        self.world.rng.uuid()
    }

    fn steps(&self, kind: StepKind) -> Value {
        let offers = self.machine.state().offers.clone();
        let now = self.world.now();
        held(&self.world.ground_truth).advertised(self.machine.index, kind, &offers, now);
        execution::table(self.machine, &offers, kind, None).advertised()
    }

    fn begin(&self, step: Begun<'_>) {
        execution::begin(self.world, self.machine, self.agent, step);
    }

    fn rescue(&self, params: &Map<String, Value>) -> Ending {
        self.world.trace.note(|| format!("{} rescued", self.machine.name));
        if params.get("hashed") != Some(&Value::Bool(true)) {
            return Ending::failed("RescueError", "Rescue failed", "a plain password");
        }
        held(&self.world.ground_truth).rescues[self.machine.index] += 1;
        Ending::done(None)
    }
}
