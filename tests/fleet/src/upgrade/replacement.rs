//! One controller after another is ended and started again with the new build.

use crate::behaviour::Chance;
use crate::journal::now;
use crate::operator;
use crate::rounds::judge::Disturbance;
use crate::rounds::place::{NAMES, Place};
use anyhow::{Context, Result};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// How long all controllers are left alone before each replacement.
const PAUSE_MS: [u64; 2] = [1000, 4000];
/// How long one that was killed is away: the others, of the old build and of the new one, have its nodes meanwhile.
const AWAY: Duration = Duration::from_secs(12);

/// How a controller is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// SIGKILL, and its successor starts after [`AWAY`]; else SIGTERM, and it starts at once when that has ended.
    pub is_killed: bool,
    /// How long all controllers are left alone before.
    pub after: Duration,
}

impl Plan {
    /// What this seed says: each controller once, in some order, one of them by SIGKILL.
    pub fn all(seed: u64) -> [Self; 3] {
        let chance = Chance { seed, node: 0 };
        let (first, killed) = (chance.below(3, "first", 0), chance.below(3, "killed", 0));
        [0, 1, 2].map(|turn| Self {
            name: NAMES[(first + turn) % NAMES.len()],
            is_killed: turn == killed,
            after: chance.time(PAUSE_MS, "pause", turn as u64),
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_killed { "SIGKILL" } else { "SIGTERM" };
        write!(f, "{} is replaced by {how}", self.name)
    }
}

/// A controller that was replaced.
#[derive(Debug)]
pub struct Replaced {
    /// How.
    pub plan: Plan,
    /// For the judge.
    pub disturbance: Disturbance,
    /// Nodes that were cleaned just before.
    pub cleaning: usize,
    /// Nodes that were deployed just before.
    pub deploying: usize,
    /// From the signal until the successor served.
    pub took: Duration,
}

impl Replaced {
    /// Why the replacement shows nothing, if it shows nothing.
    pub fn idle(&self) -> Option<String> {
        let nothing = [(self.cleaning, "cleaned"), (self.deploying, "deployed")];
        let missing = nothing.into_iter().find(|(count, _)| *count == 0)?;
        Some(format!("{}, and no node is being {} then", self.plan, missing.1))
    }
}

impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, cleaning, deploying, took, .. } = self;
        write!(
            f,
            "{plan} with {cleaning} nodes in cleaning and {deploying} in deployment; served again after {took:.1?}"
        )
    }
}

/// Replaces one controller by `program`; all are alive at the end.
///
/// # Errors
/// When a node has failed, or a controller does not end or start.
pub async fn replace(place: &mut Place, plan: Plan, program: &Path) -> Result<Replaced> {
    tokio::time::sleep(plan.after).await;
    let states = operator::states(&place.controllers[0].operator).await?;
    let count =
        |states_of: [&str; 2]| states.values().filter(|state| states_of.contains(&state.as_str())).count();
    let (cleaning, deploying) = (count(["cleaning", "clean wait"]), count(["deploying", "wait call-back"]));
    let at = now();
    let controller = place.controller(plan.name)?;
    if plan.is_killed {
        controller.kill();
        tokio::time::sleep(AWAY).await;
    } else {
        controller.stop().await?;
    }
    let replaced_at = Some(now());
    program.clone_into(&mut controller.program);
    controller.start().await.with_context(|| plan.to_string())?;
    let took = Duration::from_micros(now().abs_diff(at));
    place.all_alive().await?;
    let disturbance = Disturbance { at, victim: plan.name.to_owned(), replaced_at };
    Ok(Replaced { plan, disturbance, cleaning, deploying, took })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_controller_is_replaced_once_and_one_of_them_by_sigkill() {
        for seed in 0..20 {
            let plans = Plan::all(seed);
            let mut names = plans.each_ref().map(|plan| plan.name);
            names.sort_unstable();
            assert_eq!(
                (names, plans.iter().filter(|plan| plan.is_killed).count()),
                (NAMES, 1),
                "seed {seed}"
            );
            assert_eq!(plans, Plan::all(seed));
        }
        let killed = |turn: usize| (0..20).any(|seed| Plan::all(seed)[turn].is_killed);
        assert!(killed(0) && killed(1) && killed(2));
    }

    #[test]
    fn a_replacement_while_no_node_is_at_work_shows_nothing() {
        let replaced = |cleaning, deploying| Replaced {
            plan: Plan::all(1)[0].clone(),
            disturbance: Disturbance { at: 0, victim: "c1".to_owned(), replaced_at: None },
            cleaning,
            deploying,
            took: Duration::ZERO,
        };
        assert_eq!(replaced(1, 1).idle(), None);
        assert!(replaced(0, 1).idle().is_some_and(|why| why.ends_with("no node is being cleaned then")));
        assert!(replaced(1, 0).idle().is_some_and(|why| why.ends_with("no node is being deployed then")));
    }
}
