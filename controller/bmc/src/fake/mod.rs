//! The `fake-hardware` driver: a node whose power, BIOS and RAID are variables.
//!
//! The state is kept per node in the process and is lost with it: after a restart every fake node is
//! off. Tests start an agent when [`subscribe`] says that a node was switched on.

mod inventory;
mod steps;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::driver_info::Reader;
use crate::{
    Bmc, BmcError, BootDevice, BootMode, BootSetting, ErrorKind, Indicator, LampState, PowerAction,
    PowerState,
};
pub(crate) use inventory::inspect;
pub(crate) use steps::{BIOS_STEPS, DEPLOY_STEPS, MANAGEMENT_STEPS, RAID_STEPS, VENDOR_STEPS};

pub(crate) const NAME: &str = "fake-hardware";

pub(crate) const PROPERTIES: &[(&str, &str)] = &[(
    "fake_power_latency_ms",
    "Milliseconds each power or boot device call takes, 0 to 600000. Optional; default 0.",
)];

/// Events that a slow subscriber may lag behind before it loses the oldest.
const EVENTS: usize = 1024;

/// A power action that a fake node was given and has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerEvent {
    /// Node, as given to [`crate::open`].
    pub node_uuid: String,
    /// What was asked.
    pub action: PowerAction,
    /// The state before.
    pub before: PowerState,
    /// The state after.
    pub after: PowerState,
    /// The boot override that this boot uses, when the node was started or restarted.
    pub boot: BootSetting,
}

#[derive(Default)]
struct World {
    nodes: HashMap<String, Machine>,
}

struct Machine {
    power: PowerState,
    boot: BootSetting,
    configuration: Configuration,
    /// The last `fake_slow`: its command, and when it began.
    slow: Option<(String, Instant)>,
    /// How often `fake_reset` ran.
    resets: u64,
}

/// What of a fake node is configured, and outlives its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Logical disks, as `raid.create_configuration` was given them.
    pub raid: Vec<Value>,
    /// BIOS settings.
    pub bios: Map<String, Value>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            power: PowerState::Off,
            boot: BootSetting::default(),
            configuration: Configuration { raid: Vec::new(), bios: steps::factory_bios() },
            slow: None,
            resets: 0,
        }
    }
}

impl Machine {
    /// Does a power action and rings the bell.
    fn power(&mut self, node_uuid: &str, action: PowerAction) {
        let before = self.power;
        let after = action.target_state();
        self.power = after;
        let starts = after == PowerState::On && (before == PowerState::Off || action != PowerAction::On);
        let boot = if starts { self.boot } else { BootSetting::default() };
        if starts && self.boot.persistent == Some(false) {
            self.boot = BootSetting { mode: self.boot.mode, ..BootSetting::default() };
        }
        // Sent under the lock, so that events of a node come in the order of its changes. No
        // receiver is no error: nobody is obliged to listen.
        let _ = BELL.send(PowerEvent { node_uuid: node_uuid.to_owned(), action, before, after, boot });
    }
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(Mutex::default);
static BELL: LazyLock<broadcast::Sender<PowerEvent>> = LazyLock::new(|| broadcast::channel(EVENTS).0);

fn world() -> MutexGuard<'static, World> {
    // Every change below is one assignment, so a panic of another holder leaves nothing half done.
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Power events of all fake nodes of this process, from now on. A subscriber that lags behind by more
/// than 1024 events loses the oldest.
pub fn subscribe() -> broadcast::Receiver<PowerEvent> {
    BELL.subscribe()
}

/// Cut a fake node's power as a failing supply would: no event, no command.
pub fn cut_power(node_uuid: &str) {
    machine(node_uuid, |machine| machine.power = PowerState::Off);
}

/// How a fake node is configured now.
pub fn configuration(node_uuid: &str) -> Configuration {
    machine(node_uuid, |machine| machine.configuration.clone())
}

/// Does something with a node's machine; one that was never met is off and as from the factory.
fn machine<T>(node_uuid: &str, action: impl FnOnce(&mut Machine) -> T) -> T {
    action(world().nodes.entry(node_uuid.to_owned()).or_default())
}

pub(crate) fn latency(info: &Map<String, Value>) -> Result<Duration, BmcError> {
    let mut reader = Reader::new(NAME, info);
    let latency = reader.number("fake_power_latency_ms", 0..=600_000).unwrap_or(0);
    reader.finish(Duration::from_millis(latency))
}

pub(crate) fn open(info: &Map<String, Value>, node_uuid: &str) -> Result<Arc<dyn Bmc>, BmcError> {
    Ok(Arc::new(Fake { node_uuid: node_uuid.to_owned(), latency: latency(info)? }))
}

struct Fake {
    node_uuid: String,
    latency: Duration,
}

impl Fake {
    async fn with<T>(&self, action: impl FnOnce(&mut Machine) -> T + Send) -> T {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        machine(&self.node_uuid, action)
    }
}

#[async_trait]
impl Bmc for Fake {
    async fn power_state(&self) -> Result<PowerState, BmcError> {
        Ok(self.with(|machine| machine.power).await)
    }

    async fn set_power(&self, action: PowerAction) -> Result<(), BmcError> {
        self.with(|machine| machine.power(&self.node_uuid, action)).await;
        Ok(())
    }

    async fn boot_device(&self) -> Result<BootSetting, BmcError> {
        Ok(self.with(|machine| machine.boot).await)
    }

    async fn set_boot_device(
        &self,
        device: BootDevice,
        persistent: bool,
        mode: Option<BootMode>,
    ) -> Result<(), BmcError> {
        if !self.supported_boot_devices().contains(&device) {
            return Err(BmcError::new(
                ErrorKind::Unsupported,
                NAME,
                "set the boot device",
                format!("the fake does not boot from {device}"),
            ));
        }
        self.with(|machine| {
            let mode = mode.or(machine.boot.mode);
            machine.boot = BootSetting { device: Some(device), persistent: Some(persistent), mode };
        })
        .await;
        Ok(())
    }

    async fn verify(&self) -> Result<(), BmcError> {
        self.with(|_| ()).await;
        Ok(())
    }

    async fn bios_settings(&self) -> Result<Map<String, Value>, BmcError> {
        Ok(self.with(|machine| machine.configuration.bios.clone()).await)
    }

    /// Those of Ironic's fake: always lit, and nobody can change that.
    async fn indicators(&self) -> Result<Vec<Indicator>, BmcError> {
        const STATES: &[LampState] = &[LampState::Blinking, LampState::Off, LampState::On];
        Ok(vec![
            Indicator {
                component: "chassis",
                name: "led-0".to_owned(),
                read_only: true,
                states: &[LampState::Off, LampState::On],
            },
            Indicator { component: "system", name: "led".to_owned(), read_only: false, states: STATES },
        ])
    }

    async fn indicator(&self, _component: &str, _name: &str) -> Result<LampState, BmcError> {
        Ok(LampState::On)
    }

    fn supported_boot_devices(&self) -> &'static [BootDevice] {
        &[BootDevice::Pxe, BootDevice::Disk, BootDevice::Cdrom, BootDevice::UefiHttp]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fake_node_keeps_its_power_between_openings_and_rings_the_bell() {
        let mut events = subscribe();
        let info = Map::new();
        let first = open(&info, "fake-1").unwrap();
        assert_eq!(first.power_state().await.unwrap(), PowerState::Off);
        first.set_boot_device(BootDevice::Pxe, false, None).await.unwrap();
        first.set_power(PowerAction::On).await.unwrap();

        let again = open(&info, "fake-1").unwrap();
        assert_eq!(again.power_state().await.unwrap(), PowerState::On);
        assert_eq!(again.boot_device().await.unwrap().device, None, "a one-time override is used up");
        let event = loop {
            let event = events.recv().await.unwrap();
            if event.node_uuid == "fake-1" {
                break event;
            }
        };
        assert_eq!((event.before, event.after), (PowerState::Off, PowerState::On));
        assert_eq!(event.boot.device, Some(BootDevice::Pxe));

        cut_power("fake-1");
        assert_eq!(again.power_state().await.unwrap(), PowerState::Off);
        again.set_power(PowerAction::Reboot).await.unwrap();
        assert_eq!(
            again.power_state().await.unwrap(),
            PowerState::On,
            "a reboot of a node that is off starts it"
        );
    }

    #[test]
    fn a_wrong_latency_is_named() {
        let info = serde_json::json!({"fake_power_latency_ms": "soon"});
        let error = latency(info.as_object().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("fake_power_latency_ms"), "{error}");
    }
}
