//! Three real controllers on one PostgreSQL, with the nodes of a simulator at work. One controller is killed, frozen or cut off,
//! and what the nodes saw is judged.
//!
//! ```text
//!   namespace "room": simulator, PostgreSQL          place.rs     makes all of it
//!     ├── cable ── namespace "c1": controller c1     round.rs     one run: what is asked for, disturbed, awaited
//!     ├── cable ── namespace "c2": controller c2     audit.rs     leases and writes, as PostgreSQL itself notes them
//!     └── cable ── namespace "c3": controller c3     judge.rs     pure: what must hold, and what did not
//! ```
//!
//! Each controller has an address of its own, by which BMCs, agents and PostgreSQL know it. Operators use its Unix
//! socket, which no cut reaches.

pub mod audit;
pub mod judge;
pub mod place;
pub mod round;

use crate::behaviour::Behaviour;
use anyhow::{Context, Result};
use judge::{Disturbance, Verdict};
use lab::net::Netns;
use place::Place;
use round::{Mishap, Plan};
use std::path::Path;
use std::time::Duration;

/// A node whose controller died in a call to its BMC waits this long, so that it is late by less than [`judge::LATE`].
const SETTINGS: &str = "request_timeout_s = 10\n";

/// What rounds are made of.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Nodes.
    pub nodes: u32,
    /// Rounds. Three in a row, one of each mishap, have the same seed and one undisturbed run.
    pub rounds: usize,
    /// Seed of the first three.
    pub seed: u64,
}

/// What a round came to.
#[derive(Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What happened to which controller, and when after the begin.
    pub what: String,
    /// What was found.
    pub verdict: Verdict,
}

/// Runs all rounds with the `anneal-controller` at `program`. Needs root.
///
/// # Errors
/// When something cannot be started, or a node does not arrive.
pub fn run(program: &Path, shape: &Shape) -> Result<Vec<Outcome>> {
    place::inside(|room| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcomes = runtime.block_on(all(room, program, shape));
        runtime.shutdown_timeout(Duration::from_secs(5));
        outcomes
    })
}

async fn all(room: &Netns, program: &Path, shape: &Shape) -> Result<Vec<Outcome>> {
    let mut place = Place::start(room, program, SETTINGS, shape.nodes, Behaviour::default()).await?;
    let outcomes = several(&mut place, shape).await;
    let is_good = |outcomes: &Vec<Outcome>| outcomes.iter().all(|one| one.verdict.violations.is_empty());
    if !outcomes.as_ref().is_ok_and(is_good) {
        println!("the logs of the controllers are in {}", place.keep().display());
    }
    outcomes
}

async fn several(place: &mut Place, shape: &Shape) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut rounds = shape.rounds;
    for seed in shape.seed.. {
        if rounds == 0 {
            break;
        }
        let calm =
            round::run(place, seed, None).await.with_context(|| format!("seed {seed}, undisturbed"))?;
        let p99 = calm.p99();
        println!("seed {seed}: undisturbed, the median node arrives after {:?}, p99 {p99:?}", calm.median());
        let verdict = judge::judge(&calm, None, None);
        outcomes.push(Outcome { seed, what: "undisturbed".to_owned(), verdict });
        for mishap in Mishap::ALL.into_iter().take(rounds) {
            let plan = Plan::of(mishap, seed, calm.median());
            let what = || format!("seed {seed}: {plan}");
            let record = round::run(place, seed, Some(&plan)).await.with_context(what)?;
            let disturbance = record.disturbed_at.map(|at| Disturbance {
                at,
                victim: plan.victim.to_owned(),
                replaced_at: None,
            });
            let verdict = judge::judge(&record, disturbance.as_ref(), Some(p99));
            let outcome = Outcome { seed, what: plan.to_string(), verdict };
            println!("{outcome}");
            outcomes.push(outcome);
            rounds -= 1;
        }
    }
    Ok(outcomes)
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}: {}", self.seed, self.what, self.verdict)
    }
}
