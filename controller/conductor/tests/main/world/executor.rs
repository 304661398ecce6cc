//! The actions of the conductor, performed on the world.

use super::agent::unreachable_agent;
use super::setup::World;
use agent_protocol::command::Status;
use agent_protocol::step::{AdvertisedSteps, Step};
use async_trait::async_trait;
use conductor::Executor;
use conductor::decision::{Action, ActionError, Outcome};
use model::request::RESCUE_HASH;
use model::run::PersistentBoot;
use model::{Abilities, Contact, Node, PowerState, RunKind, StepKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Clock, prelude::*};
use tokio::time::sleep;

/// Acts on the world.
pub struct SimExecutor(pub Arc<World>);

#[async_trait]
impl Executor for SimExecutor {
    fn abilities(&self, _node: &Node) -> Result<Arc<Abilities>, String> {
        assert!(!self.0.loading_panics.load(Ordering::Relaxed), "a defect of the driver");
        Ok(Arc::new(self.0.abilities.lock().unwrap().clone()))
    }

    async fn act(&self, node: &Node, contact: &Contact, action: &Action) -> Outcome {
        let world = &self.0;
        let name = format!("{action:?}");
        let name = name.split([' ', '{', '(']).next().unwrap_or_default().to_owned();
        world.actions.lock().unwrap().push(name.clone());
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
        if world.store.lease_holder(node.uuid, world.clock.now()).await.unwrap().is_none() {
            world.unleased.lock().unwrap().push(name);
        }
        match action {
            Action::RunStep { step, polling, .. } => world.run_step(step, *polling).await,
            Action::AskSteps(_)
            | Action::SendStep { .. }
            | Action::AskCommand { .. }
            | Action::CancelCommand { .. }
            | Action::CollectLogs(_) => on_agent(world, node, contact, action),
            _ => on_bmc(world, action),
        }
    }
}

fn on_bmc(world: &Arc<World>, action: &Action) -> Outcome {
    let power = || if world.is_on() { PowerState::On } else { PowerState::Off };
    match action {
        Action::VerifyBmc | Action::ReadPower => Outcome::Power(power()),
        Action::ReadState => Outcome::State(power(), None),
        Action::SetPower(_) if *world.bmc_stuck.lock().unwrap() => Outcome::Failed(ActionError {
            text: "the BMC is stuck".into(),
            retryable: true,
            unreachable: false,
        }),
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
        Action::RestoreBootDevice(before) => {
            *world.boots_from.lock().unwrap() = Some(before.device.clone());
            Outcome::Done
        }
        Action::InspectBmc => Outcome::Inventory(world.inventory("redfish")),
        other => unreachable!("{other:?} is no action on a BMC"),
    }
}

fn on_agent(world: &Arc<World>, node: &Node, contact: &Contact, action: &Action) -> Outcome {
    match action {
        Action::AskSteps(kind) => {
            let reachable = {
                let machine = world.machine.lock().unwrap();
                machine.on && machine.token.is_some() && machine.token == contact.token
            };
            if !reachable {
                return unreachable_agent();
            }
            let advertised = |steps: Vec<Step>| AdvertisedSteps {
                clean_steps: BTreeMap::from([("GenericHardwareManager".into(), steps)]),
                hardware_manager_version: BTreeMap::from([("generic".into(), "1".into())]),
            };
            let steps = match kind {
                StepKind::Clean => world.steps.lock().unwrap().clone(),
                other => world.other_steps.lock().unwrap().get(other).cloned().unwrap_or_default(),
            };
            Outcome::Steps(BTreeMap::from([(*kind, advertised(steps))]))
        }
        Action::SendStep { command_id, run, step } => {
            if *run == RunKind::Rescue {
                *world.rescued_with.lock().unwrap() = node.instance_info.get(RESCUE_HASH).cloned();
            }
            world.send(command_id, *run, step, contact)
        }
        Action::AskCommand { command_id } => {
            let machine = world.machine.lock().unwrap();
            if !machine.on || machine.token.is_none() || machine.token != contact.token {
                return unreachable_agent();
            }
            match machine.commands.iter().find(|(id, _)| id == command_id) {
                Some((_, status)) => Outcome::Command(status.clone()),
                None => Outcome::NoSuchCommand,
            }
        }
        Action::CollectLogs(_) if world.machine.lock().unwrap().on => Outcome::Done,
        Action::CollectLogs(_) => Outcome::Failed(ActionError {
            text: "the agent could not be reached to send its logs".into(),
            retryable: true,
            unreachable: true,
        }),
        Action::CancelCommand { command_id } => {
            let mut machine = world.machine.lock().unwrap();
            match machine.commands.iter_mut().find(|(id, _)| id == command_id) {
                Some((id, status)) => {
                    *status = World::status(id, Status::Failed, Value::Null, Some("cancelled"));
                    status.command_error.iter_mut().for_each(|error| error.kind = "Cancelled".into());
                    Outcome::Command(status.clone())
                }
                None => Outcome::NoSuchCommand,
            }
        }
        other => unreachable!("{other:?} is no action on an agent"),
    }
}
