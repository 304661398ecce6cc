//! One machine: its power, and what runs with it. The state is here, so every controller sees the same machine.

use crate::agent::Agent;
use crate::behaviour::{Behaviour, Chance};
use crate::fleet::Shared;
use crate::journal::{What, now};
use crate::{agent, firmware, network};
use room::{Power, held};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio_util::task::AbortOnDropHandle;

/// A machine.
pub struct Machine {
    /// Its number.
    pub number: u32,
    /// Of its BMC and of its network interface.
    pub address: Ipv4Addr,
    /// Of its network interface.
    pub mac: String,
    /// What all machines share.
    pub shared: Arc<Shared>,
    state: Mutex<State>,
    turn: AtomicU64,
}

#[derive(Default)]
struct State {
    power: Power<Runs>,
    setting: BootSetting,
    /// The URL of what is in the virtual CD drive.
    medium: Option<String>,
}

/// Where a machine boots from, if not from its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootSource {
    /// The network.
    Network,
    /// The medium at this URL.
    Medium(String),
}

/// What runs while there is power.
#[derive(Default)]
struct Runs {
    life: Option<AbortOnDropHandle<()>>,
    agent: Option<Arc<Agent>>,
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.agent.iter().for_each(|agent| agent.process.died.cancel());
    }
}

/// The boot override of Redfish, in its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootSetting {
    /// `BootSourceOverrideTarget`: `None`, `Pxe`, `Hdd`, `Cd`.
    pub target: String,
    /// `BootSourceOverrideEnabled`: `Disabled`, `Once`, `Continuous`.
    pub enabled: String,
}

impl Default for BootSetting {
    fn default() -> Self {
        Self { target: "None".to_owned(), enabled: "Disabled".to_owned() }
    }
}

impl BootSetting {
    /// Where the next boot is from, with this medium in the drive; `Once` is used up by it.
    fn take(&mut self, medium: Option<&str>) -> Option<BootSource> {
        let source = match self.target.as_str() {
            _ if self.enabled == "Disabled" => None,
            "Pxe" => Some(BootSource::Network),
            "Cd" => medium.map(|url| BootSource::Medium(url.to_owned())),
            _ => None,
        };
        if self.enabled == "Once" {
            *self = Self::default();
        }
        source
    }
}

impl Machine {
    /// A machine that is off.
    pub fn new(number: u32, shared: Arc<Shared>) -> Self {
        Self {
            number,
            address: shared.setup.network.address(number),
            mac: network::mac(number),
            shared,
            state: Mutex::default(),
            turn: AtomicU64::new(0),
        }
    }

    /// How it behaves.
    pub fn behaviour(&self) -> &Behaviour {
        &self.shared.setup.behaviour
    }

    /// What happens to it by chance.
    pub fn chance(&self) -> Chance {
        Chance { seed: self.shared.seed.load(Ordering::Relaxed), node: self.number }
    }

    /// The number of this event among those of the machine in this run.
    pub fn turn(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a run: what happens by chance begins anew.
    pub fn begin(&self) {
        self.turn.store(0, Ordering::Relaxed);
    }

    /// Notes what happens to it now.
    pub fn note(&self, what: What) {
        self.shared.journal.note(now(), self.number, what);
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        held(&self.state).power.on
    }

    /// Switches it on or off; nothing happens where it is so already.
    pub fn switch(self: &Arc<Self>, on: bool) {
        let mut state = held(&self.state);
        if !on {
            let runs = state.power.switch_off();
            if runs.is_some() {
                self.note(What::Off);
            }
            drop(state);
            return drop(runs);
        }
        if !state.power.switch_on() {
            return;
        }
        let State { setting, medium, .. } = &mut *state;
        let source = setting.take(medium.as_deref());
        self.note(What::On { network: source == Some(BootSource::Network) });
        if let Some(source) = source {
            let life = live(self.clone(), state.power.boot, source);
            state.power.runs.life = Some(AbortOnDropHandle::new(tokio::spawn(life)));
        }
    }

    /// The boot override in force.
    pub fn boot_setting(&self) -> BootSetting {
        held(&self.state).setting.clone()
    }

    /// Changes the boot override.
    pub fn set_boot(&self, setting: BootSetting) {
        held(&self.state).setting = setting;
    }

    /// The URL of what is in the virtual CD drive.
    pub fn medium(&self) -> Option<String> {
        held(&self.state).medium.clone()
    }

    /// Changes what is in the virtual CD drive.
    pub fn insert(&self, medium: Option<String>) {
        held(&self.state).medium = medium;
    }

    /// The agent that runs.
    pub fn agent(&self) -> Option<Arc<Agent>> {
        held(&self.state).power.runs.agent.clone()
    }

    /// An agent runs from here on, if that boot still goes on.
    pub fn start(&self, boot: u32, agent: Arc<Agent>) -> bool {
        let mut state = held(&self.state);
        let is_same = state.power.is_in(boot);
        if is_same {
            state.power.runs.agent = Some(agent);
        }
        is_same
    }

    /// Its agent has died; the machine stays on.
    pub fn lose_agent(&self) {
        let agent = held(&self.state).power.runs.agent.take();
        agent.iter().for_each(|agent| agent.process.died.cancel());
    }
}

/// From power-on to power-off.
async fn live(machine: Arc<Machine>, boot: u32, source: BootSource) {
    let Some(script) = firmware::boot(&machine, &source).await else { return };
    if let Err(error) = agent::live(&machine, boot, &script).await {
        eprintln!("anneal-fleet: node {}: {error:#}", machine.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_for_one_boot_is_used_up_by_it() {
        let set =
            |target: &str, enabled: &str| BootSetting { target: target.into(), enabled: enabled.into() };
        let mut once = set("Pxe", "Once");
        assert_eq!([once.take(None), once.take(None)], [Some(BootSource::Network), None]);
        let mut always = set("Pxe", "Continuous");
        assert_eq!(
            [always.take(None), always.take(None)],
            [Some(BootSource::Network), Some(BootSource::Network)]
        );
        let mut medium = set("Cd", "Once");
        assert_eq!(medium.take(Some("http://h/m")), Some(BootSource::Medium("http://h/m".into())));
        for mut disk in [medium, set("Cd", "Once"), set("Pxe", "Disabled"), set("Hdd", "Once")] {
            assert_eq!(disk.take(None), None);
        }
    }
}
