//! The machines of the fake driver: what the process keeps of each node.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::{BootSetting, PowerState, PowerTarget};

/// Events that a slow subscriber may lag behind before it loses the oldest.
const EVENTS: usize = 1024;

/// A power action that a fake node has carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerEvent {
    /// Node, as given to [`crate::open`].
    pub node_uuid: String,
    /// What was asked.
    pub action: PowerTarget,
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

pub(super) struct Machine {
    pub power: PowerState,
    pub boot: BootSetting,
    pub configuration: Configuration,
    /// The last `fake_slow`: its command, and when it began.
    pub slow: Option<(String, Instant)>,
    /// How often `fake_reset` ran.
    pub resets: u64,
}

/// The configuration of a fake node; it outlives the runs.
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
            configuration: Configuration { raid: Vec::new(), bios: factory_bios() },
            slow: None,
            resets: 0,
        }
    }
}

impl Machine {
    /// Does a power action and rings the bell.
    pub fn power(&mut self, node_uuid: &str, action: PowerTarget) {
        let before = self.power;
        let after = action.resulting_state();
        self.power = after;
        let starts = after == PowerState::On && (before == PowerState::Off || action != PowerTarget::On);
        let boot = if starts { self.boot } else { BootSetting::default() };
        if starts && self.boot.persistent == Some(false) {
            self.boot = BootSetting { mode: self.boot.mode, ..BootSetting::default() };
        }
        // Sent under the lock, so that events of a node come in the order of its changes. Having
        // no receiver is no error: subscribing is optional.
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

/// Runs `action` on the machine of a node. A node seen for the first time is off and not configured.
pub(super) fn machine<T>(node_uuid: &str, action: impl FnOnce(&mut Machine) -> T) -> T {
    action(world().nodes.entry(node_uuid.to_owned()).or_default())
}

/// The BIOS settings of a machine that nothing has configured.
pub(super) fn factory_bios() -> Map<String, Value> {
    let factory = [("BootMode", "Uefi"), ("ProcTurboMode", "Enabled"), ("EmbeddedSata", "Ahci")];
    factory.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}
