//! How many controllers a world has, and what happens to them. Drawn from a stream of its own, so that the other stories of a
//! seed stay what they are.

use crate::held;
use crate::rng::SimRng;
use crate::world::World;
use std::sync::Arc;
use std::time::Duration;
use store::Clock;
use store::prelude::*;
use tokio::time::{Instant, sleep, sleep_until};

/// Makes the stream of a seed another than that of everything else.
const STREAM: u64 = 0x7365_7665_7261_6c00;
/// By how many milliseconds the clock of a machine is ahead when its controller starts, or behind.
const AHEAD: [i64; 4] = [0, 900, 70_000, 5 * 3_600_000];

/// What happens to a controller, or to what it works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// `kill -9`; it is started again later, or never.
    Kill,
    /// SIGTERM: it leaves its nodes to the others and ends; the same.
    Stop,
    /// It stands still wherever it is: SIGSTOP, later SIGCONT.
    Pause,
    /// The same inside the very call to a BMC or an agent: what the call sends leaves after the pause.
    PauseInCall,
    /// It does not reach the store.
    CutFromStore,
    /// It does not reach BMCs and agents, nor they it.
    CutFromNodes,
    /// Both.
    CutOff,
    /// No controller reaches the store.
    StoreGone,
}

/// For how long a machine asks for its boot script at least, before it boots its disk.
const NETWORK_BOOT: Duration = Duration::from_secs(50);

/// "PostgreSQL restarted, or gone for a minute: … everything goes on" (issue 18).
const GONE_FOR_A_MINUTE: Duration = Duration::from_secs(60);

/// A disturbance of one controller at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControllerFault {
    /// When, as a part of the storm.
    pub at: f64,
    /// Which controller.
    pub host: usize,
    /// What.
    pub what: Disturbance,
    /// For how long; `None`: for good.
    pub lasts: Option<Duration>,
}

/// The controllers of a world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Controllers {
    /// By how many microseconds the clock of each is ahead of the store's; none: one controller, with a store of its own.
    pub ahead: Vec<i64>,
    /// What happens to them, in order.
    pub faults: Vec<ControllerFault>,
}

impl Controllers {
    /// Of a seed, in every other world several.
    pub fn drawn(seed: u64) -> Self {
        Self::of_world(seed, false)
    }

    /// Of a seed, `several` in any case.
    pub fn of_world(seed: u64, several: bool) -> Self {
        let rng = SimRng::new(seed ^ STREAM);
        if rng.chance(0.5) && !several { Self::default() } else { Self::of(&rng) }
    }

    fn of(rng: &SimRng) -> Self {
        let count = if rng.chance(0.5) { 2 } else { 3 };
        let ahead = |_| {
            let ahead = *rng.pick(&AHEAD) * 1000;
            if rng.chance(0.5) { ahead } else { -ahead }
        };
        let ahead: Vec<_> = (0..count).map(ahead).collect();
        // The first is never gone for good.
        let mut stays = vec![true; ahead.len()];
        stays.iter_mut().skip(1).for_each(|stays| *stays = rng.chance(0.8));
        let mut faults: Vec<_> =
            (0..rng.number(3..14)).map(|_| ControllerFault::drawn(rng, ahead.len())).collect();
        faults.sort_by(|one, other| one.at.total_cmp(&other.at));
        for (host, _) in stays.iter().enumerate().filter(|(_, stays)| !**stays) {
            let ends = |fault: &&mut ControllerFault| fault.host == host && fault.what.ends();
            if let Some(last) = faults.iter_mut().rev().find(ends) {
                last.lasts = None;
            }
        }
        Self { ahead, faults }
    }

    /// Whether several share one store.
    pub fn share(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether no run need fail of what happens to them.
    pub fn are_harmless(&self) -> bool {
        self.faults.iter().all(|fault| match fault.what {
            Disturbance::PauseInCall | Disturbance::CutFromNodes | Disturbance::CutOff => false,
            // A machine whose boot no server answers meanwhile boots its disk.
            Disturbance::StoreGone => fault.lasts.is_some_and(|lasts| lasts < NETWORK_BOOT),
            Disturbance::Kill | Disturbance::Stop | Disturbance::Pause | Disturbance::CutFromStore => true,
        })
    }
}

impl Disturbance {
    fn ends(self) -> bool {
        matches!(self, Self::Kill | Self::Stop)
    }
}

impl ControllerFault {
    fn drawn(rng: &SimRng, hosts: usize) -> Self {
        use Disturbance::*;
        const ALL: [Disturbance; 12] = [
            Kill,
            Kill,
            Kill,
            Stop,
            Pause,
            Pause,
            PauseInCall,
            CutFromStore,
            CutFromStore,
            CutFromNodes,
            CutOff,
            StoreGone,
        ];
        let what = *rng.pick(&ALL);
        let long = rng.chance(0.2);
        let lasts = match what {
            Kill | Stop if long => 60..900,
            Kill | Stop => 0..60,
            StoreGone if long => 60..200,
            StoreGone => 2..60,
            _ if long => 60..400,
            _ => 3..60,
        };
        let hosts = u32::try_from(hosts).unwrap_or(1);
        Self {
            at: rng.unit(),
            host: usize::try_from(rng.number(0..hosts)).unwrap_or_default(),
            what,
            lasts: Some(rng.seconds(lasts)),
        }
    }
}

impl World {
    /// Let the faults of the controllers strike.
    pub async fn strike_controllers(
        self: Arc<Self>,
        begin: Instant,
        storm: Duration,
        faults: Vec<ControllerFault>,
    ) {
        for fault in faults {
            sleep_until(begin + storm.mul_f64(fault.at)).await;
            let world = self.clone();
            tokio::spawn(async move { world.strike_controller(fault).await });
        }
    }

    async fn strike_controller(self: &Arc<Self>, fault: ControllerFault) {
        let host = &self.hosts[fault.host];
        let lasts = fault.lasts.unwrap_or_default();
        let until = Instant::now() + lasts;
        self.trace.note(|| format!("{}: {:?} for {:?}", host.name, fault.what, fault.lasts));
        match fault.what {
            Disturbance::Kill => self.kill_soon(fault.host).await,
            Disturbance::Stop => self.stop_controller(fault.host).await,
            Disturbance::Pause => self.freeze_controller(fault.host, until),
            Disturbance::PauseInCall => host.stop_in_call(lasts),
            Disturbance::CutFromStore => host.cut_store(until),
            Disturbance::CutFromNodes => host.cut_nodes(until),
            Disturbance::CutOff => {
                host.cut_store(until);
                host.cut_nodes(until);
            }
            Disturbance::StoreGone => {
                let is_gone_already = self.hosts.iter().any(|host| !host.reaches_store());
                match &self.hosts[..] {
                    [alone] => alone.cut_store_in_a_write(until),
                    all => all.iter().for_each(|host| host.cut_store(until)),
                }
                if !is_gone_already && lasts <= GONE_FOR_A_MINUTE {
                    return self.store_returns(until).await;
                }
            }
        }
        if !fault.what.ends() {
            self.change_lasts(until).await;
            return self.catch_up();
        }
        match fault.lasts {
            Some(down) => sleep(down).await,
            None => host.leaves_for_good(),
        }
        if host.may_start() {
            self.start_controller(fault.host);
        }
    }

    /// The store has gone for so short a time that it costs no controller what it does.
    async fn store_returns(&self, until: Instant) {
        *held(&self.settled_since) = Instant::now();
        sleep_until(until).await;
        *held(&self.settled_since) = Instant::now();
        self.catch_up();
    }

    /// A controller that hears of the store again learns of every node at which something is under way (`store-postgres::listen`).
    fn catch_up(&self) {
        let rows: Vec<_> = {
            let ground_truth = held(&self.ground_truth);
            let rows = ground_truth.machines.iter().filter_map(|machine| machine.row.as_ref());
            rows.filter(|row| !row.provision_state.is_stable()).map(|row| row.uuid).collect()
        };
        for incarnation in self.hosts.iter().filter_map(|host| host.running()) {
            rows.iter().for_each(|node| incarnation.bell.ring(*node));
        }
    }

    /// Something has changed for the controllers.
    pub fn changed(&self) {
        *held(&self.settled_since) = Instant::now();
        if self.disk.is_shared() {
            held(&self.ground_truth).interruptions.push(self.clock.now());
        }
    }

    /// The same, and again when it is over.
    pub async fn change_lasts(&self, until: Instant) {
        self.changed();
        sleep_until(until).await;
        self.changed();
    }
}
