//! Power, and what a machine does with it: firmware, ramdisk or workload.

use crate::agent::{self, BootScript};
use crate::held;
use crate::machine::{Machine, MachineState};
use crate::world::World;
use model::{Node, RunKind};
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;
use store::{FetchSource, ScriptFetch, ScriptGrant};
use tokio::time::sleep;

/// What the boot services answer.
enum Boots {
    Ramdisk { script: BootScript },
    Disk,
}

/// Switch a machine on, if it is off.
pub fn on(world: &Arc<World>, machine: &Arc<Machine>) {
    let boot = {
        let power = &mut machine.state().power;
        if !power.switch_on() {
            return;
        }
        power.boot
    };
    world.happened(machine, "power on");
    agent::impostor(world, machine, boot);
    let (world, machine) = (world.clone(), machine.clone());
    // A boot that is over does nothing more: it is asked after each wait.
    tokio::spawn(async move { boots(&world, &machine, boot).await });
}

/// Switch a machine off, if it is on.
pub fn off(world: &Arc<World>, machine: &Arc<Machine>, how: &str) {
    let Some(agent) = machine.state().power.switch_off() else { return };
    world.happened(machine, how);
    if let Some(agent) = agent {
        agent::end(world, machine, &agent, "agent gone with the power");
    }
}

/// Reset a machine that is on, switch it on otherwise.
pub fn reset(world: &Arc<World>, machine: &Arc<Machine>, how: &str) {
    if machine.state().power.on {
        off(world, machine, how);
    }
    on(world, machine);
}

async fn boots(world: &Arc<World>, machine: &Arc<Machine>, boot: u32) -> Option<()> {
    let goes_on = || machine.is_in(boot).then_some(());
    sleep(world.rng.seconds(3..40)).await;
    goes_on()?;
    let by_network = {
        let mut state = machine.state();
        std::mem::take(&mut state.network_once) || state.network_first
    };
    let answer = if by_network { network_boot(world, machine, boot).await? } else { Boots::Disk };
    if let Boots::Ramdisk { script } = answer {
        sleep(world.rng.seconds(10..120)).await;
        goes_on()?;
        let fails = held(&world.faults).boot_fails;
        if world.rng.chance(fails) {
            world.happened(machine, "ramdisk does not come up");
            return None;
        }
        let boot_id = world.rng.uuid().to_string();
        agent::start(world, machine, boot_id, script);
        return Some(());
    }
    sleep(world.rng.seconds(10..60)).await;
    goes_on()?;
    if machine.state().disks.iter().any(|disk| disk.bootable) {
        machine.state().run_workload();
        world.happened(machine, "workload started");
    } else {
        world.happened(machine, "nothing to boot");
    }
    Some(())
}

/// DHCP and iPXE: the controller's boot services say what the node boots (as `controllerd::directory` does).
async fn network_boot(world: &Arc<World>, machine: &Arc<Machine>, boot: u32) -> Option<Boots> {
    let mut tries = 0;
    loop {
        if world.boots_nodes() && !world.is_cut(machine) {
            let row = held(&world.ground_truth).machines[machine.index].row.clone();
            let inspects = |run: &model::Run| run.is_active() && run.kind == RunKind::Inspect;
            let Some(node) = row.filter(Node::boots_ramdisk) else { return Some(Boots::Disk) };
            let mac = machine.mac.parse().ok()?;
            let fetch = ScriptFetch {
                by: FetchSource::Nic(mac),
                from: machine.address.parse().ok()?,
                at: world.now(),
                medium: None,
            };
            let granted = world.disk.fetch_script(node.uuid, fetch).await.ok()?;
            if let ScriptGrant::Given(nonce) = granted {
                let chronicle = &mut held(&world.ground_truth).machines[machine.index];
                chronicle.nonce = Some(nonce.clone());
                chronicle.fetched_since_reset = chronicle.reset;
                let inspects = node.run.as_ref().is_some_and(inspects);
                return Some(Boots::Ramdisk { script: BootScript { nonce, inspects } });
            }
            // The script that it gets instead asks again.
            sleep(Duration::from_secs(5)).await;
            machine.is_in(boot).then_some(())?;
            continue;
        }
        tries += 1;
        if tries >= 6 && !machine.stubborn {
            world.happened(machine, "no server answers its network boot");
            return Some(Boots::Disk);
        }
        sleep(Duration::from_secs(10)).await;
        machine.is_in(boot).then_some(())?;
    }
}

impl MachineState {
    /// The next boot is from the network.
    pub fn boot_from_network(&mut self) {
        self.network_once = true;
    }
}
