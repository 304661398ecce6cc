//! The faults of one world: rates of spontaneous faults, and numbers of faults at random moments.

use crate::clock_jumps::ClockJump;
use crate::controllers::Controllers;
use crate::rng::SimRng;
use std::time::Duration;

/// Something that strikes at a random moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// The controller is killed.
    Kill,
    /// The controller stands still for a while.
    Freeze,
    /// Some agent's process is killed.
    KillAgent,
    /// Some node is reset.
    Reset,
    /// Some node loses power.
    CutPower,
    /// Some BMC cannot be reached for a while.
    BmcOutage,
    /// Some node is cut off the network for a while.
    NetworkCut,
    /// The hardware managers of some node change.
    ChangeManagers,
}

/// How often each kind of fault strikes in one world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// How long faults strike and users send requests.
    pub lasts: Duration,
    /// Chances that a message is slow, lost, delivered without its answer, delivered twice, or delivered after its
    /// sender gave up.
    pub slow: f64,
    /// See [`Self::slow`].
    pub lost: f64,
    /// See [`Self::slow`].
    pub unanswered: f64,
    /// See [`Self::slow`].
    pub twice: f64,
    /// See [`Self::slow`].
    pub late: f64,
    /// Chance that a call of a BMC fails.
    pub bmc: f64,
    /// Chances that a step fails, hangs, or reports a success that its record contradicts.
    pub step_fails: f64,
    /// See [`Self::step_fails`].
    pub step_hangs: f64,
    /// See [`Self::step_fails`].
    pub step_lies: f64,
    /// Chance that a ramdisk does not come up.
    pub boot_fails: f64,
    /// What strikes at random moments, and how often.
    pub strikes: Vec<(Strike, u32)>,
    /// When the clock of the controller's machine is set. No reason for anything to go wrong.
    pub clock_jumps: Vec<ClockJump>,
    /// The controllers that share a store, and what happens to them.
    pub controllers: Controllers,
    /// Users abort, ask for the impossible, and touch power and flags.
    pub impatience: f64,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn calm(lasts: Duration) -> Self {
        Self { lasts, ..Self::default() }
    }

    /// Whether nothing goes wrong but what users ask for.
    pub fn is_calm(&self) -> bool {
        let (clock_jumps, controllers) = (self.clock_jumps.clone(), self.controllers.clone());
        let is_harmless = controllers.are_harmless();
        let calm = Self { impatience: self.impatience, clock_jumps, controllers, ..Self::calm(self.lasts) };
        *self == calm && is_harmless
    }

    /// The faults of a seed: none, one kind of fault, frequently, a little of everything, or all at once.
    pub fn drawn(rng: &SimRng) -> Self {
        let calm = Self { impatience: 0.3 * rng.unit(), ..Self::calm(rng.seconds(2400..7200)) };
        match rng.number(0..10) {
            0 => calm,
            1..4 => Self::one_kind(rng, calm),
            4..8 => calm.mixed(rng, 1),
            _ => calm.mixed(rng, 3),
        }
    }

    fn one_kind(rng: &SimRng, calm: Self) -> Self {
        use Strike::*;
        match rng.number(0..9) {
            0 => Self { strikes: vec![(Kill, 12)], ..calm },
            1 => Self { strikes: vec![(KillAgent, 10)], ..calm },
            2 => Self { strikes: vec![(Reset, 5), (CutPower, 5)], ..calm },
            3 => Self { lost: 0.15, unanswered: 0.15, ..calm },
            4 => Self { twice: 0.2, late: 0.1, slow: 0.2, ..calm },
            5 => Self { bmc: 0.15, strikes: vec![(BmcOutage, 5)], ..calm },
            6 => Self { step_fails: 0.1, step_hangs: 0.05, step_lies: 0.1, boot_fails: 0.1, ..calm },
            7 => Self { strikes: vec![(ChangeManagers, 12)], ..calm },
            _ => Self { strikes: vec![(Freeze, 4), (NetworkCut, 6)], ..calm },
        }
    }

    fn mixed(self, rng: &SimRng, much: u32) -> Self {
        use Strike::*;
        const MOST: [(Strike, u32); 8] = [
            (Kill, 3),
            (Freeze, 1),
            (KillAgent, 2),
            (Reset, 2),
            (CutPower, 2),
            (BmcOutage, 1),
            (NetworkCut, 1),
            (ChangeManagers, 2),
        ];
        let rate = |most: f64| rng.unit() * most * f64::from(much);
        let times = |(strike, most): (Strike, u32)| (strike, rng.number(0..most * much + 1));
        Self {
            slow: rate(0.05),
            lost: rate(0.03),
            unanswered: rate(0.03),
            twice: rate(0.05),
            late: rate(0.03),
            bmc: rate(0.03),
            step_fails: rate(0.03),
            step_hangs: rate(0.02),
            step_lies: rate(0.02),
            boot_fails: rate(0.03),
            strikes: MOST.map(times).into(),
            ..self
        }
    }
}
