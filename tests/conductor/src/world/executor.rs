//! The actions of the conductor, performed on the world.

use super::agent::Network;
use super::setup::World;
use async_trait::async_trait;
use bmc::Builtin;
use conductor::agent_client::AgentClient;
use conductor::decision::{Action, ActionError, Outcome};
use conductor::{Executor, LiveExecutor, Settings};
use model::run::PersistentBoot;
use model::{Abilities, Contact, Node, PowerState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{Clock, prelude::*};
use tokio::time::sleep;

/// Longest call of an agent, as in a real controller.
const AGENT_CALL: Duration = Duration::from_secs(60);

/// Acts on the world; calls its agents as the real executor does.
pub struct SimExecutor {
    world: Arc<World>,
    name: String,
    agents: LiveExecutor,
}

impl SimExecutor {
    /// That of the conductor with this name.
    pub fn new(world: &Arc<World>, name: &str) -> Self {
        let agents = AgentClient::over(Arc::new(Network(world.clone()))).within(AGENT_CALL);
        let agents = agents.serving(world.images.lock().unwrap().clone()).hearing_at("http://192.0.2.7:8089");
        let mut of_bmcs = bmc::Settings::default();
        if let Some(seconds) = world.request_timeouts.lock().unwrap().get(name) {
            of_bmcs.request_timeout_s = *seconds;
        }
        let drivers = Arc::new(Builtin::new(of_bmcs));
        let agents = LiveExecutor::new(drivers, agents, world.clock.clone(), Settings::default());
        Self { world: world.clone(), name: name.to_owned(), agents }
    }
}

#[async_trait]
impl Executor for SimExecutor {
    fn abilities(&self, _node: &Node) -> Result<Arc<Abilities>, String> {
        assert!(!self.world.loading_panics.load(Ordering::Relaxed), "a defect of the driver");
        Ok(Arc::new(self.world.abilities.lock().unwrap().clone()))
    }

    fn unfenced_call(&self, contact: &Contact, action: &Action) -> Duration {
        self.agents.unfenced_call(contact, action)
    }

    async fn act(&self, epoch: u64, node: &Node, contact: &Contact, action: &Action) -> Outcome {
        let world = &self.world;
        let name = format!("{action:?}");
        let name = name.split([' ', '{', '(']).next().unwrap_or_default().to_owned();
        world.actions.lock().unwrap().push(name.clone());
        world.epochs.lock().unwrap().push(epoch);
        world.actors.lock().unwrap().push(self.name.clone());
        let panics = {
            let mut left = world.panics.lock().unwrap();
            let panics = *left > 0;
            *left = left.saturating_sub(1);
            panics
        };
        assert!(!panics, "a defect of the driver");
        // Every action takes time, so that it can be interrupted.
        let time = *world.action_time.lock().unwrap();
        sleep(time).await;
        // It is done now.
        if world.store.lease_holder(node.uuid, world.clock.now()).await.unwrap().as_ref() != Some(&self.name)
        {
            world.unleased.lock().unwrap().push(name);
        }
        match action {
            // As a real executor does it: no driver takes part.
            Action::RunStep { step, .. } if step.step.provider == "direct" && step.step.step == "deploy" => {
                world.ran.lock().unwrap().push(step.step.step.clone());
                self.agents.act(epoch, node, contact, action).await
            }
            Action::RunStep { step, polling, .. } => world.run_step(step, *polling).await,
            Action::AskSteps(_)
            | Action::SendStep { .. }
            | Action::AskCommand { .. }
            | Action::CancelCommand { .. } => self.agents.act(epoch, node, contact, action).await,
            _ => on_bmc(world, action),
        }
    }
}

fn on_bmc(world: &Arc<World>, action: &Action) -> Outcome {
    let power = || if world.is_on() { PowerState::On } else { PowerState::Off };
    match action {
        Action::VerifyBmc | Action::ReadPower => Outcome::Power(power()),
        Action::ReadState => Outcome::State(power(), None),
        Action::SetPower(_) if *world.bmc_stuck.lock().unwrap() => failed("the BMC is stuck"),
        Action::SetPower(target) => {
            world.switch(target.resulting_state() == PowerState::On);
            Outcome::Power(power())
        }
        Action::ReadBootDevice => {
            let persistent = |device: &String| PersistentBoot { device: device.clone(), mode: None };
            Outcome::BootDevice(world.boots_from.lock().unwrap().as_ref().map(persistent))
        }
        // As BMCs do: the setting for one boot replaces the persistent one.
        Action::SetBootDevice => {
            *world.boots_from.lock().unwrap() = None;
            Outcome::Done
        }
        Action::InsertMedium => {
            *world.boots_from.lock().unwrap() = None;
            *world.medium.lock().unwrap() = true;
            Outcome::Done
        }
        Action::EjectMedium => {
            *world.medium.lock().unwrap() = false;
            Outcome::Done
        }
        Action::RestoreBootDevice(before) => {
            *world.boots_from.lock().unwrap() = Some(before.device.clone());
            Outcome::Done
        }
        Action::InspectBmc => Outcome::Inventory(world.inventory("redfish")),
        Action::CollectLogs(_) if world.is_on() => Outcome::Done,
        Action::CollectLogs(_) => failed("the agent could not be reached to send its logs"),
        other => unreachable!("{other:?} is no action of this machine"),
    }
}

fn failed(text: &str) -> Outcome {
    Outcome::Failed(ActionError { text: text.into(), retryable: true, unreachable: false })
}
