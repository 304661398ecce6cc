//! The machine's clock is set while the controller runs. Where and by how much is drawn from a stream of its own, so that the
//! other stories of a seed stay what they are.
//!
//! A clock that is set while no controller runs is none of these stories: nothing notices that (docs/operations.md).

use crate::ground_truth::GroundTruth;
use crate::held;
use crate::machine::MachineState;
use crate::rng::SimRng;
use crate::world::World;
use model::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;

/// Makes the stream of a seed another than that of everything else.
const STREAM: u64 = 0x636c_6f63_6b5f_7365;
/// By how many seconds a clock is set: by NTP, by hand, by a virtual machine that was moved. All together less than 90 days, after
/// which the history is pruned.
const SECONDS: [i64; 6] = [1, 3, 40, 31 * 60, 5 * 3600, 10 * 24 * 3600];
/// Most often in one world.
const MOST: u32 = 4;

/// When the clock is set, after the beginning of the storm, and by how many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockJump {
    /// When.
    pub at: Duration,
    /// By how many seconds; negative: back.
    pub by: i64,
}

/// The jumps of a seed, in every other world none, within this time.
pub fn drawn(seed: u64, lasts: Duration) -> Vec<ClockJump> {
    let rng = SimRng::new(seed ^ STREAM);
    if rng.chance(0.5) {
        return Vec::new();
    }
    let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX).max(1);
    let count = rng.number(1..MOST + 1);
    let mut jumps: Vec<_> = (0..count)
        .map(|_| {
            let by = *rng.pick(&SECONDS);
            ClockJump { at: rng.millis(0..lasts), by: if rng.chance(0.5) { by } else { -by } }
        })
        .collect();
    jumps.sort_by_key(|jump| jump.at);
    jumps
}

impl World {
    /// Set the clock of the controller's machine, if the controller is there to see it.
    pub fn set_clock(self: &Arc<Self>, by: i64) {
        use store::Clock;
        if self.disk.is_shared() {
            // No controller goes by it: the clock of the store counts.
            self.hosts[0].clock.set_forward(by);
        } else if self.is_conducted() && self.clock.jump() == 0 {
            *held(&self.unfollowed) = 0;
            self.trace.note(|| format!("the clock is set by {by} s"));
            self.clock.set_forward(by);
        }
    }

    /// The store has moved with the clock: the ground truth moves, too.
    pub fn shifted(&self, by: i64) {
        held(&self.ground_truth).shift(by);
        for machine in &self.machines {
            machine.state().shift(by);
        }
        let calm = &mut *held(&self.calm_since);
        *calm = calm.map(|at| at.shifted(by));
        *held(&self.unfollowed) += by;
    }

    /// The controller dies: what its store has moved with is the time that goes on.
    pub fn forget_jump(&self) {
        use store::Clock;
        if self.clock.jump() != 0 {
            self.clock.follow(std::mem::take(&mut *held(&self.unfollowed)));
        }
        self.clock.forget_jump();
    }
}

impl GroundTruth {
    fn shift(&mut self, by: i64) {
        let shift = |at: &mut Timestamp| *at = at.shifted(by);
        self.kills.iter_mut().for_each(shift);
        self.interruptions.iter_mut().for_each(shift);
        for machine in &mut self.machines {
            for execution in &mut machine.executions {
                shift(&mut execution.began);
                execution.ended.iter_mut().for_each(|(at, _)| shift(at));
            }
            machine.facts.iter_mut().for_each(|fact| shift(&mut fact.at));
            machine.advertised.iter_mut().for_each(|offered| shift(&mut offered.at));
            machine.heard.iter_mut().for_each(shift);
            machine.lease.iter_mut().for_each(|lease| shift(&mut lease.until));
            machine.changed_at.iter_mut().for_each(shift);
            if let Some(row) = &mut machine.row
                && model::clock_jump::shift_node(row, by)
            {
                row.version += 1;
            }
        }
    }
}

impl MachineState {
    fn shift(&mut self, by: i64) {
        let until = [&mut self.power_busy_until, &mut self.bmc_down_until, &mut self.cut_until];
        let outside = self.outside.iter_mut().map(|(_, at)| at);
        for at in until.into_iter().flatten().chain(outside) {
            *at = at.shifted(by);
        }
    }
}
