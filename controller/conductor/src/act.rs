//! The only effects outside the store: on BMCs and agents. One action in, one outcome out, no decisions.

use crate::agent_client::AgentClient;
use crate::boot_media::{BootMedia, NoBootMedia};
use crate::decision::{Action, ActionError, Outcome};
use crate::image_download;
use crate::log_archive::LogArchive;
use crate::settings::Settings;
use async_trait::async_trait;
use bmc::{Bmc, BmcError, BootDevice, BootSetting, Drivers, ErrorKind, StepCall, StepEnd};
use model::boot_medium::{self, MediumKind};
use model::image;
use model::run::PersistentBoot;
use model::{
    Abilities, CatalogueStep, Contact, Inventory, Node, PlannedStep, PowerState, PowerTarget, StepKind,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Clock;
use tokio::sync::Semaphore;

/// How many combinations of interfaces are cached; more than an installation has.
const COMBINATIONS: usize = 256;
/// Most archives of logs that are received at once.
const LOGS_AT_ONCE: usize = 4;

/// Performs actions. The simulation has its own implementation.
#[async_trait]
pub trait Executor: Send + Sync {
    /// What the interfaces of the node's driver support, with the out-of-band steps at their configured priorities.
    /// Contacts neither BMC nor agent.
    ///
    /// # Errors
    /// Why the interfaces cannot be used.
    fn abilities(&self, node: &Node) -> Result<Arc<Abilities>, String>;

    /// How long one call may take that changes something and that is not refused under a lost lease, because a BMC gets it, or
    /// an agent that knows of no epochs. Zero where this action makes none.
    fn unfenced_call(&self, contact: &Contact, action: &Action) -> Duration;

    /// Perform one action for a node, under the lease with this epoch. It may be dropped when the lease is lost.
    async fn act(&self, epoch: u64, node: &Node, contact: &Contact, action: &Action) -> Outcome;
}

/// Acts on real BMCs and real agents.
pub struct LiveExecutor {
    drivers: Arc<dyn Drivers>,
    agents: AgentClient,
    clock: Arc<dyn Clock>,
    media: Arc<dyn BootMedia>,
    settings: Settings,
    logs: LogArchive,
    /// Each writes to the disk while it runs.
    fetching_logs: Semaphore,
    /// By driver and interfaces, on which alone they depend. Every pass over a node needs them.
    abilities: Mutex<HashMap<Chosen, Arc<Abilities>>>,
}

/// A driver, and the interfaces chosen instead of its defaults.
type Chosen = (String, BTreeMap<String, String>);

impl LiveExecutor {
    /// Opens BMCs with `drivers`; stores logs of ramdisks as the settings require.
    pub fn new(
        drivers: Arc<dyn Drivers>,
        agents: AgentClient,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Self {
        let logs = LogArchive::of(&settings);
        Self {
            drivers,
            agents,
            clock,
            media: Arc::new(NoBootMedia),
            settings,
            logs,
            fetching_logs: Semaphore::new(LOGS_AT_ONCE),
            abilities: Mutex::default(),
        }
    }

    /// With boot media, for nodes that boot by virtual media.
    #[must_use]
    pub fn inserting(mut self, media: Arc<dyn BootMedia>) -> Self {
        self.media = media;
        self
    }

    /// Insert the medium of the boot that comes next, and boot from it once.
    async fn insert_medium(&self, bmc: &dyn Bmc, node: &Node, contact: &Contact) -> Result<(), BmcError> {
        let refused = |why: String| BmcError::new(ErrorKind::Config, "", "insert the boot medium", why);
        let boot = contact.boot.as_ref().ok_or_else(|| refused("no boot was ordered".to_owned()))?;
        let url = self.media.url(node, &boot.nonce).map_err(refused)?;
        let mark = boot_medium::mark(node.uuid);
        match boot_medium::way(node) {
            Some(MediumKind::HttpBoot) => bmc.set_http_boot(&url, &mark).await,
            Some(MediumKind::VirtualDrive) => {
                bmc.insert_boot_medium(&url, &mark).await?;
                bmc.set_boot_device(BootDevice::Cdrom, false, None).await
            }
            None => Err(refused("its boot interface has changed since".to_owned())),
        }
    }

    /// Take the medium away, by whichever way it was brought: the boot interface may have been changed since. The other way is
    /// tried too, where the BMC has it.
    async fn eject_medium(&self, bmc: &dyn Bmc, node: &Node) -> Result<(), BmcError> {
        let mark = boot_medium::mark(node.uuid);
        let drive = bmc.eject_boot_medium(&mark).await;
        let url = bmc.clear_http_boot(&mark).await;
        taken_back(boot_medium::way(node), drive, url)
    }

    /// Store the logs of the node's ramdisk in the file of this name.
    async fn collect_logs(
        &self,
        agents: &AgentClient,
        contact: &Contact,
        name: &str,
    ) -> Result<Outcome, ActionError> {
        // The semaphore is never closed.
        let _turn = self.fetching_logs.acquire().await;
        agents.collect_logs(contact, &self.logs, name).await.map(|()| Outcome::Done)
    }

    async fn bmc(&self, node: &Node, contact: &Contact, action: &Action) -> Result<Outcome, BmcError> {
        let bmc = self.drivers.open(&node.driver, &node.driver_info, &node.uuid.to_string())?;
        match action {
            Action::VerifyBmc => bmc.verify().await?,
            Action::ReadState => {
                let (state, health) = bmc.state().await?;
                return Ok(Outcome::State(state, health));
            }
            Action::ReadBootDevice => return Ok(Outcome::BootDevice(persistent(bmc.boot_device().await?))),
            Action::SetBootDevice => {
                bmc.set_boot_device(network(node), false, None).await?;
                return Ok(Outcome::Done);
            }
            Action::InsertMedium => {
                self.insert_medium(&*bmc, node, contact).await?;
                return Ok(Outcome::Done);
            }
            Action::EjectMedium => {
                self.eject_medium(&*bmc, node).await?;
                return Ok(Outcome::Done);
            }
            Action::RestoreBootDevice(before) => {
                let mode = before.mode.as_deref().map(str::parse).transpose().map_err(unknown)?;
                bmc.set_boot_device(before.device.parse().map_err(unknown)?, true, mode).await?;
                return Ok(Outcome::Done);
            }
            Action::SetPower(target) => {
                let reboots = matches!(target, PowerTarget::Reboot | PowerTarget::SoftReboot);
                if reboots || power_state(&*bmc).await? != Some(target.resulting_state()) {
                    bmc.set_power(*target).await?;
                }
            }
            _ => {}
        }
        Ok(power_state(&*bmc).await?.map_or(Outcome::PowerUnknown, Outcome::Power))
    }

    async fn run_step(
        &self,
        node: &Node,
        command_id: &str,
        kind: StepKind,
        step: &PlannedStep,
        polling: bool,
    ) -> Result<Outcome, BmcError> {
        let call = StepCall {
            driver: &node.driver,
            driver_info: &node.driver_info,
            interfaces: &node.interfaces,
            node_uuid: &node.uuid.to_string(),
            properties: &node.properties,
            kind,
            interface: &step.step.interface,
            step: &step.step.step,
            args: &step.given,
            command_id,
            polling,
        };
        match self.drivers.run_step(&call).await {
            Ok(StepEnd::Done(result)) => Ok(Outcome::StepDone(result)),
            Ok(StepEnd::Running(text)) => Ok(Outcome::StepRunning(text)),
            // The text of a failed step already begins with its name.
            Err(error) if error.kind() == bmc::ErrorKind::Step => {
                let text = error.to_string();
                let prefix = format!("{} step {} failed: ", kind.as_str(), step.label());
                let text = text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
                Ok(Outcome::Failed(ActionError { text, retryable: error.is_retryable(), unreachable: false }))
            }
            Err(error) => Err(error),
        }
    }

    async fn inspect(&self, node: &Node) -> Result<Outcome, BmcError> {
        let reported = self.drivers.inspect(&node.driver, &node.driver_info, &node.uuid.to_string()).await?;
        let part = |key: &str| reported.get(key).cloned().unwrap_or_default();
        Ok(Outcome::Inventory(Inventory {
            inventory: part("inventory"),
            plugin_data: part("plugin_data"),
            at: self.clock.now(),
            source: node.driver.clone(),
            ruled: false,
        }))
    }
}

/// The step that gets the image ready. `custom-agent` has it, too, but leaves images to the steps that the user names.
fn is_core_step_of_direct(step: &CatalogueStep) -> bool {
    step.provider == image::DIRECT && image::is_step(step, image::DEPLOY)
}

/// Whether the medium is taken back, of how both ways ended. What the BMC cannot do counts as done, except in the way that the
/// node boots by: without it the medium could not have been brought.
fn taken_back(
    way: Option<MediumKind>,
    drive: Result<(), BmcError>,
    url: Result<(), BmcError>,
) -> Result<(), BmcError> {
    let unless_unsupported = |result: Result<(), BmcError>| {
        result.or_else(|error| if error.kind() == ErrorKind::Unsupported { Ok(()) } else { Err(error) })
    };
    match way {
        Some(MediumKind::VirtualDrive) => drive.and(unless_unsupported(url)),
        Some(MediumKind::HttpBoot) => url.and(unless_unsupported(drive)),
        None => unless_unsupported(drive).and(unless_unsupported(url)),
    }
}

/// The power state; `None` where the BMC reports none.
async fn power_state(bmc: &dyn Bmc) -> Result<Option<PowerState>, BmcError> {
    match bmc.power_state().await {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.kind() == ErrorKind::NoPowerState => Ok(None),
        Err(error) => Err(error),
    }
}

/// The out-of-band steps of a node's driver at their configured priorities.
pub fn abilities(drivers: &dyn Drivers, settings: &Settings, node: &Node) -> Result<Abilities, BmcError> {
    let mut able = drivers.abilities(&node.driver, &node.interfaces)?;
    for (kind, steps) in &mut able.steps {
        *steps = settings.override_priorities(*kind, std::mem::take(steps));
    }
    Ok(able)
}

/// The persistent part of a boot setting.
fn persistent(setting: BootSetting) -> Option<PersistentBoot> {
    let device = setting.device.filter(|_| setting.persistent == Some(true))?;
    let mode = setting.mode.map(|mode| mode.as_str().to_owned());
    Some(PersistentBoot { device: device.as_str().to_owned(), mode })
}

/// What the firmware of a node that boots no medium boots from.
fn network(node: &Node) -> BootDevice {
    if boot_medium::is_http_ipxe(node) { BootDevice::UefiHttp } else { BootDevice::Pxe }
}

fn unknown(word: impl std::fmt::Display) -> BmcError {
    BmcError::new(ErrorKind::Unsupported, "", "set the boot device back", word.to_string())
}

fn failed(error: BmcError) -> Outcome {
    Outcome::Failed(ActionError {
        retryable: error.is_retryable(),
        unreachable: matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout),
        text: error.to_string(),
    })
}

#[async_trait]
impl Executor for LiveExecutor {
    fn abilities(&self, node: &Node) -> Result<Arc<Abilities>, String> {
        let chosen = (node.driver.clone(), node.interfaces.clone());
        let mut known = self.abilities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(able) = known.get(&chosen) {
            return Ok(able.clone());
        }
        let able = abilities(&*self.drivers, &self.settings, node).map_err(|error| error.to_string())?;
        if known.len() >= COMBINATIONS {
            known.clear();
        }
        Ok(known.entry(chosen).or_insert(Arc::new(able)).clone())
    }

    fn unfenced_call(&self, contact: &Contact, action: &Action) -> Duration {
        match action {
            // They only read.
            Action::VerifyBmc
            | Action::ReadPower
            | Action::ReadState
            | Action::ReadBootDevice
            | Action::InspectBmc
            | Action::RunStep { polling: true, .. }
            | Action::AskSteps(_)
            | Action::AskCommand { .. }
            | Action::CollectLogs(_) => Duration::ZERO,
            Action::SendStep { .. } | Action::CancelCommand { .. } => self.agents.unfenced_call(contact),
            Action::SetPower(_)
            | Action::SetBootDevice
            | Action::InsertMedium
            | Action::EjectMedium
            | Action::RestoreBootDevice(_)
            | Action::RunStep { polling: false, .. } => self.drivers.longest_request(),
        }
    }

    async fn act(&self, epoch: u64, node: &Node, contact: &Contact, action: &Action) -> Outcome {
        let agents = self.agents.under(epoch);
        match action {
            Action::VerifyBmc
            | Action::ReadPower
            | Action::ReadState
            | Action::SetPower(_)
            | Action::ReadBootDevice
            | Action::SetBootDevice
            | Action::InsertMedium
            | Action::EjectMedium
            | Action::RestoreBootDevice(_) => self.bmc(node, contact, action).await.unwrap_or_else(failed),
            Action::RunStep { step, polling, .. } if is_core_step_of_direct(&step.step) => {
                image_download::prepare(agents.images(), node, contact, *polling).await
            }
            Action::RunStep { command_id, kind, step, polling } => {
                self.run_step(node, command_id, *kind, step, *polling).await.unwrap_or_else(failed)
            }
            Action::InspectBmc => self.inspect(node).await.unwrap_or_else(failed),
            Action::AskSteps(kind) => agents.ask_steps(node, contact, *kind).await,
            Action::SendStep { command_id, run, step } => {
                agents.send_step(node, contact, command_id, *run, step).await
            }
            Action::AskCommand { command_id } => agents.ask_command(contact, command_id).await,
            Action::CancelCommand { command_id } => agents.cancel(contact, command_id).await,
            Action::CollectLogs(name) => {
                self.collect_logs(&agents, contact, name).await.unwrap_or_else(Outcome::Failed)
            }
        }
    }
}

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
