//! What strikes at random moments.

use crate::agent;
use crate::held;
use crate::machine::Machine;
use crate::power;
use crate::world::{Fuse, World};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Something that strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strike {
    Kill,
    Freeze,
    KillAgent,
    Reset,
    CutPower,
    BmcOutage,
    NetworkCut,
    ChangeManagers,
}

/// Let the weather of the world rage as long as it lasts.
pub async fn rage(world: &Arc<World>) {
    let weather = world.weather();
    let begin = Instant::now();
    let lasts = u64::try_from(weather.lasts.as_millis()).unwrap_or(u64::MAX).max(1);
    let mut strikes = Vec::new();
    for (times, strike) in [
        (weather.controller_kills, Strike::Kill),
        (weather.freezes, Strike::Freeze),
        (weather.agent_kills, Strike::KillAgent),
        (weather.resets, Strike::Reset),
        (weather.power_cuts, Strike::CutPower),
        (weather.bmc_outages, Strike::BmcOutage),
        (weather.network_cuts, Strike::NetworkCut),
        (weather.manager_changes, Strike::ChangeManagers),
    ] {
        for _ in 0..times {
            strikes.push((world.dice.millis(0..lasts), strike));
        }
    }
    strikes.sort_by_key(|(at, _)| *at);
    for (at, strike) in strikes {
        sleep_until(begin + at).await;
        let world = world.clone();
        // The controller comes back later, and the next strike does not wait for it.
        tokio::spawn(async move { world.strike(strike).await });
    }
    sleep_until(begin + weather.lasts).await;
}

/// The end of all weather: whatever is cut off or stands still comes back.
pub fn calm_down(world: &Arc<World>) {
    let lasts = held(&world.weather).lasts;
    *held(&world.weather) = crate::weather::Weather::calm(lasts);
    *held(&world.fuse) = None;
    for machine in &world.machines {
        let mut state = machine.state();
        state.bmc_down_until = None;
        state.cut_until = None;
    }
    world.freeze_controller(Instant::now());
    if !world.is_conducted() {
        world.start_controller();
    }
    world.trace.note(|| "the storm is over".to_owned());
}

impl World {
    /// Whom it strikes: rather a machine where something goes on.
    fn victim(&self) -> Arc<Machine> {
        let busy: Vec<_> = self.machines.iter().filter(|machine| machine.agent().is_some()).collect();
        if !busy.is_empty() && self.dice.chance(0.8) {
            return (*self.dice.pick(&busy)).clone();
        }
        self.dice.pick(&self.machines).clone()
    }

    async fn strike(self: &Arc<Self>, strike: Strike) {
        let machine = self.victim();
        match strike {
            Strike::Kill => self.kill_and_restart().await,
            Strike::Freeze => self.freeze_controller(Instant::now() + self.dice.seconds(5..400)),
            Strike::KillAgent => {
                held(&self.truth).agent_kills += u32::from(machine.agent().is_some());
                agent::kill(self, &machine);
            }
            Strike::Reset => power::reset(self, &machine, "power off by a reset"),
            Strike::CutPower if machine.state().on => {
                power::off(self, &machine, "power off by a cut");
                if self.dice.chance(0.5) {
                    sleep(self.dice.seconds(1..120)).await;
                    power::on(self, &machine);
                }
            }
            Strike::CutPower => {}
            Strike::BmcOutage => {
                self.happened(&machine, "its BMC is gone");
                let until = self.clock_after(self.dice.seconds(5..900));
                machine.state().bmc_down_until = Some(until);
            }
            Strike::NetworkCut => {
                self.happened(&machine, "its network is gone");
                let until = self.clock_after(self.dice.seconds(5..900));
                machine.state().cut_until = Some(until);
            }
            Strike::ChangeManagers => {
                let mut state = machine.state();
                state.offers = Arc::new(state.offers.changed(&self.dice, machine.flavour));
                drop(state);
                self.happened(&machine, "hardware managers changed");
            }
        }
    }

    fn clock_after(&self, wait: Duration) -> model::Timestamp {
        self.now().after(wait)
    }

    /// `kill -9` of the controller: now, or at one of its next calls of the store. It is started again later.
    pub async fn kill_and_restart(self: &Arc<Self>) {
        if !self.is_conducted() {
            return;
        }
        if self.dice.chance(0.7) {
            let fuse = Fuse { calls: self.dice.number(0..60), after: self.dice.chance(0.5) };
            *held(&self.fuse) = Some(fuse);
            for _ in 0..600 {
                if !self.is_conducted() {
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            *held(&self.fuse) = None;
        }
        self.kill_controller("where it stands");
        let down = match self.dice.number(0..20) {
            0 => 3600..9000,
            1..5 => 60..900,
            _ => 0..20,
        };
        sleep(self.dice.seconds(down)).await;
        if !self.is_conducted() {
            self.start_controller();
        }
    }
}
