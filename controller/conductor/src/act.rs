//! The only effects on the world: BMCs and agents. One deed in, one outcome out, nothing decided.

use crate::agent_client::AgentClient;
use crate::decision::{Deed, Outcome, Trouble};
use async_trait::async_trait;
use bmc::{BmcError, BootDevice, Drivers, PowerAction};
use model::{Contact, Node, PowerState, PowerTarget};
use std::sync::Arc;

/// Does deeds. A simulation has its own.
#[async_trait]
pub trait Hands: Send + Sync {
    /// Do one deed for a node.
    async fn act(&self, node: &Node, contact: &Contact, deed: &Deed) -> Outcome;
}

/// Hands that reach real BMCs and real agents.
pub struct RealHands {
    drivers: Arc<dyn Drivers>,
    agents: AgentClient,
}

impl RealHands {
    /// Hands that open BMCs with `drivers`.
    pub fn new(drivers: Arc<dyn Drivers>, agents: AgentClient) -> Self {
        Self { drivers, agents }
    }

    async fn bmc(&self, node: &Node, deed: &Deed) -> Result<Outcome, BmcError> {
        let bmc = self.drivers.open(&node.driver, &node.driver_info, &node.uuid.to_string())?;
        match deed {
            Deed::VerifyBmc => bmc.verify().await?,
            Deed::SetBootDevice => {
                bmc.set_boot_device(BootDevice::Pxe, false, None).await?;
                return Ok(Outcome::Done);
            }
            Deed::SetPower(target) => {
                let reboots = matches!(target, PowerTarget::Reboot | PowerTarget::SoftReboot);
                if reboots || power(bmc.power_state().await?) != target.resulting_state() {
                    bmc.set_power(action(*target)).await?;
                }
            }
            _ => {}
        }
        Ok(Outcome::Power(power(bmc.power_state().await?)))
    }
}

fn power(state: bmc::PowerState) -> PowerState {
    match state {
        bmc::PowerState::On => PowerState::On,
        bmc::PowerState::Off => PowerState::Off,
    }
}

fn action(target: PowerTarget) -> PowerAction {
    match target {
        PowerTarget::On => PowerAction::On,
        PowerTarget::Off => PowerAction::Off,
        PowerTarget::Reboot => PowerAction::Reboot,
        PowerTarget::SoftOff => PowerAction::SoftOff,
        PowerTarget::SoftReboot => PowerAction::SoftReboot,
    }
}

#[async_trait]
impl Hands for RealHands {
    async fn act(&self, node: &Node, contact: &Contact, deed: &Deed) -> Outcome {
        match deed {
            Deed::VerifyBmc | Deed::ReadPower | Deed::SetPower(_) | Deed::SetBootDevice => {
                self.bmc(node, deed).await.unwrap_or_else(|error| {
                    Outcome::Failed(Trouble {
                        retryable: error.is_retryable(),
                        unreachable: matches!(
                            error.kind(),
                            bmc::ErrorKind::Unreachable | bmc::ErrorKind::Timeout
                        ),
                        text: error.to_string(),
                    })
                })
            }
            Deed::AskSteps => self.agents.ask_steps(node, contact).await,
            Deed::SendStep { command_id, step } => {
                let known = node.run.as_ref().map(|run| run.results.as_slice()).unwrap_or_default();
                let versions = node.run.as_ref().map(|run| &run.hardware_manager_version);
                self.agents.send_step(node, contact, command_id, step, versions, known).await
            }
            Deed::AskCommand { command_id } => self.agents.ask_command(contact, command_id).await,
            Deed::CancelCommand { command_id } => self.agents.cancel(contact, command_id).await,
        }
    }
}
