//! BMCs: they are slow, they fail, and they may do what was requested although the answer was lost.

use crate::controller::Life;
use crate::ground_truth::Target;
use crate::held;
use crate::invariants;
use crate::machine::Machine;
use crate::out_of_band;
use crate::power;
use crate::world::World;
use async_trait::async_trait;
use bmc::{
    Bmc, BmcError, BootDevice, BootMode, BootSetting, Drivers, ErrorKind, PowerState, PowerTarget, StepCall,
    StepEnd,
};
use model::Abilities;
use model::abilities::{Inspect, Rescue};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;
use uuid::Uuid;

/// All BMCs, as a controller of one life reaches them.
pub struct SimDrivers {
    world: Arc<World>,
    life: Life,
}

impl SimDrivers {
    /// The drivers of a controller.
    pub fn new(world: Arc<World>, life: Life) -> Self {
        Self { world, life }
    }

    fn machine(&self, node_uuid: &str) -> Result<&Arc<Machine>, BmcError> {
        let machine = Uuid::parse_str(node_uuid).ok().and_then(|uuid| self.world.machine(uuid));
        let unknown = || BmcError::new(ErrorKind::Config, node_uuid, "find the node", "there is none");
        machine.ok_or_else(unknown)
    }

    fn bmc(&self, machine: &Arc<Machine>) -> SimBmc {
        SimBmc { world: self.world.clone(), life: self.life.clone(), machine: machine.clone() }
    }
}

/// What a node of the machine can do.
pub fn abilities(machine: &Machine) -> Abilities {
    let agent = machine.agent_kind.is_some();
    Abilities {
        agent,
        inspect: if agent { Inspect::Agent } else { Inspect::Bmc },
        rescue: if agent { Rescue::Agent } else { Rescue::Fake },
        steps: out_of_band::declared(machine),
    }
}

#[async_trait]
impl Drivers for SimDrivers {
    fn open(&self, _: &str, _: &Map<String, Value>, node_uuid: &str) -> Result<Arc<dyn Bmc>, BmcError> {
        Ok(Arc::new(self.bmc(self.machine(node_uuid)?)))
    }

    /// The interfaces name the machine: `sim-n1`.
    fn abilities(&self, _: &str, interfaces: &BTreeMap<String, String>) -> Result<Abilities, BmcError> {
        let name = interfaces.get("deploy_interface").map(String::as_str).unwrap_or_default();
        let machine = self.world.machines.iter().find(|machine| machine.name == name);
        let unknown = || BmcError::new(ErrorKind::Config, name, "know the interfaces", "there are none");
        machine.map(|machine| abilities(machine)).ok_or_else(unknown)
    }

    async fn run_step(&self, call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
        let machine = self.machine(call.node_uuid)?;
        out_of_band::run(&self.world, &self.bmc(machine), machine, call).await
    }

    async fn inspect(&self, _: &str, _: &Map<String, Value>, node_uuid: &str) -> Result<Value, BmcError> {
        let machine = self.machine(node_uuid)?;
        let inventory = json!({"inventory": {"cpu": {"count": 8}, "interfaces": []}, "plugin_data": {}});
        self.bmc(machine).request("inspect the node", move |_, _| inventory).await
    }
}

/// One BMC.
pub struct SimBmc {
    world: Arc<World>,
    life: Life,
    machine: Arc<Machine>,
}

impl SimBmc {
    /// Ask the BMC; `does` is what it does, and changes nothing. Done or not, the answer may be an error.
    ///
    /// # Errors
    /// What the network or the BMC has to say.
    pub async fn request<T: Send + 'static>(
        &self,
        action: &'static str,
        does: impl FnOnce(&Arc<World>, &Arc<Machine>) -> T + Send + 'static,
    ) -> Result<T, BmcError> {
        self.life.goes_on().await;
        let call = invariants::begun(&self.world, &self.life, &self.machine, action, None);
        let answer = self.carry(action, does).await;
        call.ended();
        answer
    }

    /// The same for what changes something.
    ///
    /// # Errors
    /// What the network or the BMC has to say.
    pub async fn order<T: Send + 'static>(
        &self,
        action: &'static str,
        does: impl FnOnce(&Arc<World>, &Arc<Machine>) -> T + Send + 'static,
    ) -> Result<T, BmcError> {
        self.life.goes_on().await;
        let changes = Some(Target::Bmc);
        let call = invariants::begun(&self.world, &self.life, &self.machine, action, changes);
        let answer = self.carry(action, does).await;
        call.ended();
        answer
    }

    /// Which controller asks.
    pub fn host(&self) -> usize {
        self.life.host.index
    }

    /// Something that the controller does to the machine by itself.
    pub async fn acts(&self, what: &str) {
        self.life.goes_on().await;
        invariants::begun(&self.world, &self.life, &self.machine, what, None).ended();
    }

    async fn carry<T: Send + 'static>(
        &self,
        action: &'static str,
        does: impl FnOnce(&Arc<World>, &Arc<Machine>) -> T + Send + 'static,
    ) -> Result<T, BmcError> {
        let (world, machine) = (&self.world, &self.machine);
        let failed = |kind: ErrorKind, what: &str| {
            let number = world.happened(machine, &format!("its BMC {what}"));
            BmcError::new(kind, &machine.name, action, format!("{what} {number}"))
        };
        let is_down = machine.state().bmc_down_until.is_some_and(|until| until > world.now());
        if is_down || !self.life.host.reaches_nodes() {
            sleep(world.rng.seconds(1..10)).await;
            return Err(failed(ErrorKind::Unreachable, "cannot be reached"));
        }
        let chance = held(&world.faults).bmc;
        if world.rng.chance(chance / 2.0) {
            return Err(failed(ErrorKind::Unreachable, "refuses the connection"));
        }
        let silent = world.rng.chance(chance / 2.0);
        // What has been sent is done, even if the controller dies over it.
        let (sender, receiver) = oneshot::channel();
        let (there, here) = (world.clone(), machine.clone());
        let takes = if silent { world.rng.millis(100..15_000) } else { world.rng.millis(10..400) };
        let stops = self.life.stops_in_call(world);
        tokio::spawn(async move {
            sleep(stops + takes).await;
            let _ = sender.send(does(&there, &here));
        });
        if silent {
            sleep(Duration::from_secs(10)).await;
            return Err(failed(ErrorKind::Timeout, "does not answer in time"));
        }
        let answer = receiver.await;
        self.life.goes_on().await;
        if !self.life.host.reaches_nodes() {
            return Err(failed(ErrorKind::Timeout, "does not answer in time"));
        }
        answer.map_err(|_| failed(ErrorKind::Protocol, "broke"))
    }
}

#[async_trait]
impl Bmc for SimBmc {
    async fn power_state(&self) -> Result<PowerState, BmcError> {
        let read = |world: &Arc<World>, machine: &Arc<Machine>| {
            let on = machine.state().power.on;
            if !on {
                held(&world.ground_truth).machines[machine.index].seen_off = true;
            }
            on
        };
        let on = self.request("read the power state", read).await?;
        Ok(if on { PowerState::On } else { PowerState::Off })
    }

    async fn set_power(&self, action: PowerTarget) -> Result<(), BmcError> {
        self.order("set the power state", move |world, machine| {
            let (world, machine) = (world.clone(), machine.clone());
            if action == PowerTarget::Reboot {
                let chronicle = &mut held(&world.ground_truth).machines[machine.index];
                (chronicle.reset, chronicle.fetched_since_reset) = (true, false);
            }
            // Accepted now, done in a moment, and after what was accepted before.
            let done_at = {
                let mut state = machine.state();
                let after = state.power_busy_until.unwrap_or(world.now()).max(world.now());
                let done_at = after.after(world.rng.millis(1..4000));
                state.power_busy_until = Some(done_at);
                done_at
            };
            tokio::spawn(async move {
                sleep(done_at.since(world.now())).await;
                match action {
                    PowerTarget::On => power::on(&world, &machine),
                    PowerTarget::Off | PowerTarget::SoftOff => power::off(&world, &machine, "power off"),
                    PowerTarget::Reboot | PowerTarget::SoftReboot => {
                        power::reset(&world, &machine, "power off for a reboot");
                    }
                }
            });
        })
        .await
    }

    async fn boot_device(&self) -> Result<BootSetting, BmcError> {
        self.request("read the boot device", |_, _| BootSetting::default()).await
    }

    async fn set_boot_device(
        &self,
        device: BootDevice,
        _persistent: bool,
        _mode: Option<BootMode>,
    ) -> Result<(), BmcError> {
        self.order("set the boot device", move |_, machine| {
            if device == BootDevice::Pxe {
                machine.state().boot_from_network();
            }
        })
        .await
    }

    async fn verify(&self) -> Result<(), BmcError> {
        self.request("verify the credentials", |_, _| ()).await
    }

    fn supported_boot_devices(&self) -> &'static [BootDevice] {
        &[BootDevice::Pxe, BootDevice::Disk]
    }
}
