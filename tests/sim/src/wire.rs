//! Calls of the controller to agents: the transport under the real agent client.

use crate::commands;
use crate::controller::Life;
use crate::ground_truth::Target;
use crate::invariants::{self, InCall};
use crate::machine::Machine;
use crate::world::{Delivery, World};
use agent_protocol::command::CommandRequest;
use async_trait::async_trait;
use axum::http::StatusCode;
use conductor::agent_transport::{AgentCall, AgentTransport};
use room::{Call, Kind};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// As the controller's own limit of a call.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The controller's limit of a connection: a machine that is off does not answer.
const CONNECT: Duration = Duration::from_secs(5);

/// The network between one controller and all agents.
pub struct Wire {
    world: Arc<World>,
    life: Life,
}

impl Wire {
    /// The network that a controller of this life uses.
    pub fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }
}

#[async_trait]
impl AgentTransport for Wire {
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String> {
        self.life.goes_on().await;
        let world = &self.world;
        let host = call.url.host_str().unwrap_or_default().to_owned();
        let Some(machine) = world.machines.iter().find(|machine| machine.address == host).cloned() else {
            return Err(format!("no route to {host}"));
        };
        let certificate = call.certificate;
        let call = Call::new(call.url.path(), call.url.query(), call.body);
        let is_fenced = machine.agent_kind == Some(Kind::Anneal);
        let steps = |command: CommandRequest| command.name.contains(".execute_");
        let changes = !is_fenced && call.command().is_some_and(steps);
        // Ours refuses what comes too late. It may be asked by the controller that had the lease a moment ago.
        let open = (!is_fenced).then(|| {
            invariants::begun(world, &self.life, &machine, "call", changes.then_some(Target::ForeignAgent))
        });
        let answer = self.carry(&machine, call, certificate).await;
        self.life.goes_on().await;
        open.into_iter().for_each(InCall::ended);
        answer
    }
}

impl Wire {
    async fn carry(
        &self,
        machine: &Arc<Machine>,
        call: Call,
        certificate: Option<String>,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let world = &self.world;
        let cut = || {
            let number = world.happened(machine, "a command's message is Lost on the way of its controller");
            Err(format!("no answer within {} s {number}", PATIENCE.as_secs()))
        };
        if !self.life.host.reaches_nodes() {
            sleep(PATIENCE).await;
            return cut();
        }
        // What an ironic-python-agent gets late it does late: nothing could be promised (docs). It gets it before the pause.
        let (fenced, stops) = (machine.agent_kind == Some(Kind::Anneal), self.life.stops_in_call(world));
        if fenced && !stops.is_zero() {
            self.life.goes_on().await;
        }
        let answer = carry(world, machine, call, certificate).await;
        if self.life.host.reaches_nodes() { answer } else { cut() }
    }
}

async fn carry(
    world: &Arc<World>,
    machine: &Arc<Machine>,
    call: Call,
    certificate: Option<String>,
) -> Result<(StatusCode, Vec<u8>), String> {
    let mut delivery = world.delivery(machine);
    if machine.agent_kind != Some(Kind::Anneal) && matches!(delivery, Delivery::Late | Delivery::Twice) {
        // What such an agent gets twice it does twice: nothing could be promised (docs).
        delivery = Delivery::Unanswered;
    }
    let (there, here) = (world.clone(), machine.clone());
    let (late, pinned) = (call.clone(), certificate.clone());
    let process = machine.agent().map(|agent| agent.process_id.clone());
    let again = async move {
        // A connection does not survive the process that it was made to.
        if here.agent().map(|agent| agent.process_id.clone()) == process {
            drop(commands::answer(&there, &here, &late, pinned.as_deref()));
        }
    };
    let lost = !delivery.is_answered();
    let number = lost.then(|| world.happened(machine, &format!("a command's message is {delivery:?}")));
    world.carry(delivery, PATIENCE, 1..60, again).await;
    if let Some(number) = number {
        return Err(format!("no answer within {} s {number}", PATIENCE.as_secs()));
    }
    if !machine.state().power.on {
        sleep(CONNECT).await;
        return Err(format!(
            "no route: {}",
            world.happened(machine, "the agent of a node that is off is called")
        ));
    }
    commands::answer(world, machine, &call, certificate.as_deref())
}
