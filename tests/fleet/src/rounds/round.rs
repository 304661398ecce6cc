//! One run: every node is asked to be cleaned, one controller is disturbed, and every node must arrive.

use super::judge::Record;
use super::place::{NAMES, Place};
use crate::behaviour::Chance;
use crate::journal::now;
use crate::operator;
use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// How long a controller is frozen or cut off: longer than any lease of it lasts.
const LASTS: Duration = Duration::from_secs(50);
/// How long one that is back is watched.
const WATCHED: Duration = Duration::from_secs(5);
/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(200);

/// What happens to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// SIGKILL.
    Killed,
    /// SIGSTOP, and SIGCONT later.
    Frozen,
    /// Every packet is dropped for a while.
    CutOff,
}

impl Mishap {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Killed, Self::Frozen, Self::CutOff];
}

/// What happens in a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What.
    pub mishap: Mishap,
    /// To which controller.
    pub victim: &'static str,
    /// How long after the begin, or as soon as half of the nodes have arrived, if this run is faster than the undisturbed one.
    pub after: Duration,
}

impl Plan {
    /// What this seed says: a controller, and a moment while most nodes are at work in an undisturbed run in which the median
    /// one arrives after `median`.
    pub fn of(mishap: Mishap, seed: u64, median: Duration) -> Self {
        let (chance, turn) = (Chance { seed, node: 0 }, mishap as u64);
        let victim = NAMES[chance.below(NAMES.len(), "victim", turn)];
        let share = 0.1 + 0.7 * chance.unit("moment", turn);
        Self { mishap, victim, after: median.mul_f64(share) }
    }

    fn begin(&self, place: &mut Place) -> Result<()> {
        let victim = place.controller(self.victim)?;
        match self.mishap {
            Mishap::Killed => victim.kill(),
            Mishap::Frozen => victim.signal(Signal::SIGSTOP)?,
            Mishap::CutOff => victim.cut()?,
        }
        Ok(())
    }

    fn end(&self, place: &mut Place) -> Result<()> {
        let victim = place.controller(self.victim)?;
        match self.mishap {
            // It is started again for the next run.
            Mishap::Killed => Ok(()),
            Mishap::Frozen => victim.signal(Signal::SIGCONT),
            Mishap::CutOff => victim.join(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.mishap {
            Mishap::Killed => "is killed",
            Mishap::Frozen => "is frozen",
            Mishap::CutOff => "is cut off",
        };
        write!(f, "{} {what} after at most {:.2} s", self.victim, self.after.as_secs_f64())
    }
}

/// When what of a plan happened.
#[derive(Default)]
struct Progress {
    begun: Option<(Instant, i64)>,
    ended: Option<Instant>,
}

impl Progress {
    /// Does what is due. True once the run may end.
    fn go_on(&mut self, plan: &Plan, is_time: bool, place: &mut Place) -> Result<bool> {
        match (self.begun, self.ended) {
            (None, _) if is_time => {
                plan.begin(place).with_context(|| plan.to_string())?;
                self.begun = Some((Instant::now(), now()));
            }
            (Some((begun, _)), None) if begun.elapsed() >= LASTS || plan.mishap == Mishap::Killed => {
                plan.end(place).with_context(|| format!("the end of: {plan}"))?;
                self.ended = Some(Instant::now());
            }
            _ => {}
        }
        let watched = if plan.mishap == Mishap::Killed { Duration::ZERO } else { WATCHED };
        Ok(self.ended.is_some_and(|ended| ended.elapsed() >= watched))
    }
}

/// One run of this seed.
///
/// # Errors
/// When a node fails, or does not arrive within ten minutes.
pub async fn run(place: &mut Place, seed: u64, plan: Option<&Plan>) -> Result<Record> {
    place.prepare().await?;
    place.fleet.begin(seed);
    let nodes = place.fleet.shared.setup.nodes;
    let begun = Instant::now();
    let asking = place.controllers.iter().enumerate().map(|(index, controller)| {
        let own = (0..nodes).filter(|number| *number as usize % NAMES.len() == index);
        (controller.operator.clone(), own.collect::<Vec<_>>())
    });
    for (operator, own) in asking.collect::<Vec<_>>() {
        operator::ask(&operator, own, "provide").await?;
    }
    // A controller that is not the victim reports where the nodes are.
    let other = place.controllers.iter().find(|one| plan.is_none_or(|plan| plan.victim != one.name));
    let operator = other.context("another controller")?.operator.clone();
    let (mut arrived, mut progress) = (BTreeMap::new(), Progress::default());
    loop {
        let may_end = match plan {
            Some(plan) => {
                let is_time = begun.elapsed() >= plan.after || arrived.len() * 2 >= nodes as usize;
                progress.go_on(plan, is_time, place)?
            }
            None => true,
        };
        for (number, state) in operator::states(&operator).await? {
            if state == "available" {
                arrived.entry(number).or_insert_with(|| begun.elapsed());
            }
        }
        if may_end && arrived.len() == nodes as usize {
            break;
        }
        ensure!(begun.elapsed() < LIMIT, "only {} of {nodes} nodes arrive within {LIMIT:?}", arrived.len());
        tokio::time::sleep(LOOK).await;
    }
    let asked = (0..nodes).map(|number| (number, 1)).collect();
    let disturbed_at = progress.begun.map(|(_, at)| at);
    Ok(Record { arrived, asked, disturbed_at, ..place.record()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_moment_and_controller() {
        let median = Duration::from_secs(10);
        let plans: Vec<_> = (0..60).map(|seed| Plan::of(Mishap::Frozen, seed, median)).collect();
        assert!(plans.iter().all(|plan| plan.after >= median / 10 && plan.after <= median * 8 / 10));
        assert!(NAMES.iter().all(|name| plans.iter().any(|plan| plan.victim == *name)), "{plans:?}");
        assert_eq!(plans[3].to_string(), Plan::of(Mishap::Frozen, 3, median).to_string());
    }
}
