//! One server as it really is: power, what it boots, its disks, its agent. This is the only ground truth of it.

use crate::held;
use crate::offers::{Offer, Offers};
use crate::rng::SimRng;
use model::Timestamp;
use room::{Agent, Kind, Power};
use std::sync::{Arc, Mutex, MutexGuard};
use uuid::Uuid;

/// A disk. What is on it is what matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Serial number.
    pub serial: String,
    /// Data of this tenant is on it.
    pub tenant: Option<u32>,
    /// It can be booted.
    pub bootable: bool,
}

/// A machine that never changes, around what does.
pub struct Machine {
    /// Its place among the machines.
    pub index: usize,
    /// `n1`.
    pub name: String,
    /// The node it is.
    pub uuid: Uuid,
    /// MAC address.
    pub mac: String,
    /// IP address, of which its agent's URL is made.
    pub address: String,
    /// Its node is never powered off (`disable_power_off`).
    pub never_off: bool,
    /// The agent in its ramdisk; none: everything is done by the BMC.
    pub agent_kind: Option<Kind>,
    /// Firmware that cannot boot from the network retries without end, instead of booting the disk.
    pub stubborn: bool,
    /// Steps that run in the controller.
    pub out_of_band: Vec<Offer>,
    state: Mutex<MachineState>,
}

/// What changes.
pub struct MachineState {
    /// Its power, and the agent that runs now.
    pub power: Power<Option<Arc<Agent>>>,
    /// The next boot is from the network.
    pub network_once: bool,
    /// So is every other.
    pub network_first: bool,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// What its hardware managers offer.
    pub offers: Arc<Offers>,
    /// Its BMC has done by then what it was asked for.
    pub power_busy_until: Option<Timestamp>,
    /// Its BMC cannot be reached until then.
    pub bmc_down_until: Option<Timestamp>,
    /// It is cut off the network until then.
    pub cut_until: Option<Timestamp>,
    /// Out-of-band steps that go on outside, with when they are done.
    pub outside: Vec<(String, Timestamp)>,
    /// Tenants that it has had.
    pub tenants: u32,
    /// The controller that it speaks to, of those that it knows: it tries one after the other.
    pub controller: usize,
}

impl Machine {
    /// Machine number `index` of a world, switched off, with a tenant's data on every disk.
    pub fn drawn(rng: &SimRng, index: usize) -> Self {
        let agent_kind = match rng.number(0..10) {
            0..6 => Some(Kind::Anneal),
            6..9 => Some(Kind::Ipa),
            _ => None,
        };
        Self::of(rng, index, agent_kind)
    }

    /// The same, with this agent.
    pub fn of(rng: &SimRng, index: usize, agent_kind: Option<Kind>) -> Self {
        let disk =
            |number: u32| Disk { serial: format!("S{index}-{number}"), tenant: Some(0), bootable: true };
        let state = MachineState {
            power: Power { on: rng.chance(0.3), ..Power::default() },
            network_once: false,
            network_first: rng.chance(0.8),
            disks: (0..rng.number(1..4)).map(disk).collect(),
            offers: Arc::new(Offers::drawn(rng, agent_kind)),
            power_busy_until: None,
            bmc_down_until: None,
            cut_until: None,
            outside: Vec::new(),
            tenants: 0,
            controller: index,
        };
        Self {
            index,
            name: format!("n{}", index + 1),
            uuid: rng.uuid(),
            mac: format!("52:54:00:00:{:02x}:{:02x}", index / 256, index % 256),
            address: format!("10.0.{}.{}", index / 250, index % 250 + 1),
            agent_kind,
            never_off: index % 4 == 3,
            stubborn: rng.chance(0.5),
            out_of_band: Offer::out_of_band(rng, agent_kind),
            state: Mutex::new(state),
        }
    }

    /// What changes, held for a moment.
    pub fn state(&self) -> MutexGuard<'_, MachineState> {
        held(&self.state)
    }

    /// The agent that runs now.
    pub fn agent(&self) -> Option<Arc<Agent>> {
        self.state().power.runs.clone()
    }

    /// Whether this boot still goes on.
    pub fn is_in(&self, boot: u32) -> bool {
        self.state().power.is_in(boot)
    }
}

impl MachineState {
    /// Whether some disk holds data of a tenant.
    pub fn is_dirty(&self) -> bool {
        self.disks.iter().any(|disk| disk.tenant.is_some())
    }

    /// Erase every disk but `spared` of them.
    pub fn erase(&mut self, spared: usize) {
        for disk in self.disks.iter_mut().skip(spared) {
            disk.tenant = None;
            disk.bootable = false;
        }
    }

    /// Write an image to the first disk.
    pub fn deploy(&mut self) {
        if let Some(disk) = self.disks.first_mut() {
            disk.bootable = true;
        }
    }

    /// The workload runs, and writes to every disk.
    pub fn run_workload(&mut self) {
        self.tenants += 1;
        for disk in &mut self.disks {
            disk.tenant = Some(self.tenants);
        }
    }
}
