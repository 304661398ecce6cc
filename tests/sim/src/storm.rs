//! What strikes at random moments.

use crate::agent;
use crate::clock_jumps::ClockJump;
use crate::faults::{Faults, Strike};
use crate::held;
use crate::machine::Machine;
use crate::power;
use crate::world::{Fuse, World};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Let faults strike until their time is over.
pub async fn rage(world: &Arc<World>) {
    let faults = world.faults();
    let begin = Instant::now();
    let lasts = u64::try_from(faults.lasts.as_millis()).unwrap_or(u64::MAX).max(1);
    let mut jumping = JoinSet::new();
    jumping.spawn(jump(world.clone(), begin, faults.clock_jumps));
    jumping.spawn(world.clone().strike_controllers(begin, faults.lasts, faults.controllers.faults));
    let mut strikes = Vec::new();
    for (strike, times) in faults.strikes {
        for _ in 0..times {
            strikes.push((world.rng.millis(0..lasts), strike));
        }
    }
    strikes.sort_by_key(|(at, _)| *at);
    for (at, strike) in strikes {
        sleep_until(begin + at).await;
        let world = world.clone();
        // The controller comes back later, and the next strike does not wait for it.
        tokio::spawn(async move { world.strike(strike).await });
    }
    sleep_until(begin + faults.lasts).await;
}

/// Sets the clock of the controller's machine.
async fn jump(world: Arc<World>, begin: Instant, jumps: Vec<ClockJump>) {
    for ClockJump { at, by } in jumps {
        sleep_until(begin + at).await;
        world.set_clock(by);
    }
}

/// The end of all faults: every network cut and every freeze ends.
pub fn calm_down(world: &Arc<World>) {
    let lasts = held(&world.faults).lasts;
    *held(&world.faults) = Faults::calm(lasts);
    *held(&world.fuse) = None;
    for machine in &world.machines {
        let mut state = machine.state();
        state.bmc_down_until = None;
        state.cut_until = None;
    }
    for host in &world.hosts {
        if let Some(incarnation) = host.running() {
            incarnation.thaw();
        }
        host.heal();
        if host.may_start() {
            world.start_controller(host.index);
        }
    }
    world.changed();
    world.trace.note(|| "the storm is over".to_owned());
}

impl World {
    /// The machine that a fault strikes: preferably one with an agent.
    fn victim(&self) -> Arc<Machine> {
        let busy: Vec<_> = self.machines.iter().filter(|machine| machine.agent().is_some()).collect();
        if !busy.is_empty() && self.rng.chance(0.8) {
            return (*self.rng.pick(&busy)).clone();
        }
        self.rng.pick(&self.machines).clone()
    }

    /// The controller that a fault strikes.
    fn struck(&self) -> usize {
        let hosts = u32::try_from(self.hosts.len()).unwrap_or(1);
        if hosts == 1 { 0 } else { usize::try_from(self.rng.number(0..hosts)).unwrap_or_default() }
    }

    /// Let it strike now.
    pub async fn strike(self: &Arc<Self>, strike: Strike) {
        let machine = self.victim();
        match strike {
            Strike::Kill => self.kill_and_restart(self.struck()).await,
            Strike::Freeze => {
                let until = Instant::now() + self.rng.seconds(5..400);
                self.freeze_controller(self.struck(), until);
                self.change_lasts(until).await;
            }
            Strike::KillAgent => {
                held(&self.ground_truth).agent_kills += u32::from(machine.agent().is_some());
                agent::kill(self, &machine);
            }
            Strike::Reset => power::reset(self, &machine, "power off by a reset"),
            Strike::CutPower if machine.state().power.on => {
                power::off(self, &machine, "power off by a cut");
                if self.rng.chance(0.5) {
                    sleep(self.rng.seconds(1..120)).await;
                    power::on(self, &machine);
                }
            }
            Strike::CutPower => {}
            Strike::BmcOutage => {
                self.happened(&machine, "its BMC is gone");
                let until = self.clock_after(self.rng.seconds(5..900));
                machine.state().bmc_down_until = Some(until);
            }
            Strike::NetworkCut => {
                self.happened(&machine, "its network is gone");
                let until = self.clock_after(self.rng.seconds(5..900));
                machine.state().cut_until = Some(until);
            }
            Strike::ChangeManagers => {
                let mut state = machine.state();
                state.offers = Arc::new(state.offers.changed(&self.rng, machine.agent_kind));
                drop(state);
                self.happened(&machine, "hardware managers changed");
            }
        }
    }

    fn clock_after(&self, wait: Duration) -> model::Timestamp {
        self.now().after(wait)
    }

    /// `kill -9` of a controller: now, or at one of its next calls of the store.
    pub async fn kill_soon(self: &Arc<Self>, host: usize) {
        if self.rng.chance(0.7) {
            let fuse = Fuse { calls: self.rng.number(0..60), host, after: self.rng.chance(0.5) };
            *held(&self.fuse) = Some(fuse);
            for _ in 0..600 {
                if self.hosts[host].running().is_none() {
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            *held(&self.fuse) = None;
        }
        self.kill_controller(host, "where it stands");
    }

    /// The same; it is started again later.
    async fn kill_and_restart(self: &Arc<Self>, host: usize) {
        if self.hosts[host].running().is_none() {
            return;
        }
        self.kill_soon(host).await;
        let down = match self.rng.number(0..20) {
            0 => 3600..9000,
            1..5 => 60..900,
            _ => 0..20,
        };
        sleep(self.rng.seconds(down)).await;
        if self.hosts[host].may_start() {
            self.start_controller(host);
        }
    }
}
