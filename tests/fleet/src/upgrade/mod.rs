//! A rolling upgrade: three real controllers of one build are replaced by another one, one after another, while half of the
//! nodes are cleaned and the others deployed. What the nodes and PostgreSQL noted is judged as in the rounds.
//!
//! ```text
//!   replacement.rs   which controller is replaced when, by SIGTERM or SIGKILL, and what was under way then
//!   next_schema.sql  the change of the schema where both builds have the same
//! ```

pub mod replacement;

use crate::behaviour::Behaviour;
use crate::operator;
use crate::rounds::judge::{self, Record, Verdict};
use crate::rounds::place::{self, Place};
use anyhow::{Context, Result, ensure};
use lab::net::Netns;
use replacement::{Plan, Replaced};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Steps are long, so that all controllers are replaced while nodes are at work.
const STEP_MS: [u64; 2] = [4000, 20_000];
/// How long all nodes may take.
const LIMIT: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_millis(200);
/// Digest of an image that no agent fetches.
const SHA256: &str = "d3abad4080be9a88d34baa01be43afc84f4720c2c262cea679e6da8c4673f0c3";

/// What an upgrade is made of.
#[derive(Debug, Clone)]
pub struct Shape<'a> {
    /// The `anneal-controller` that is replaced.
    pub old: &'a Path,
    /// The one that takes its place.
    pub new: &'a Path,
    /// Nodes: half of them are cleaned, half deployed.
    pub nodes: u32,
    /// What happens by chance.
    pub seed: u64,
}

/// What came of an upgrade.
#[derive(Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// How many migrations the database had before, and afterwards.
    pub schema: [u32; 2],
    /// The second of these is that of `next_schema.sql`.
    pub is_made_up: bool,
    /// Each controller that was replaced, and what was found of its nodes.
    pub replaced: Vec<(Replaced, Verdict)>,
    /// What was found in all.
    pub verdict: Verdict,
}

impl Outcome {
    /// What does not hold.
    pub fn violations(&self) -> Vec<String> {
        let of_one = self.replaced.iter().flat_map(|(replaced, verdict)| {
            let idle = replaced.idle().into_iter();
            let found = verdict.violations.iter().map(|found| format!("{}: {found}", replaced.plan));
            idle.chain(found)
        });
        of_one.chain(self.verdict.violations.iter().cloned()).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.schema;
        let how = if self.is_made_up { "made up: both builds have the same" } else { "of the new build" };
        writeln!(f, "seed {}: schema {before}, then {after} ({how})", self.seed)?;
        for (replaced, verdict) in &self.replaced {
            let takeover = match verdict.takeover {
                Some(takeover) => format!("{takeover:?} until the first is taken over"),
                None => "none is taken over".to_owned(),
            };
            writeln!(f, "{replaced}; {} nodes, {takeover}", verdict.bereft)?;
        }
        writeln!(f, "{}", self.verdict)?;
        let violations = self.violations();
        write!(f, "{} violations in all", violations.len())?;
        violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}

/// Upgrades three controllers. Needs root.
///
/// # Errors
/// When something cannot be started, or a node fails or does not arrive.
pub fn run(shape: &Shape<'_>) -> Result<Outcome> {
    place::inside(|room| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(one(room, shape));
        runtime.shutdown_timeout(Duration::from_secs(5));
        outcome
    })
}

async fn one(room: &Netns, shape: &Shape<'_>) -> Result<Outcome> {
    let mut behaviour = Behaviour::default();
    behaviour.agent.step_ms = STEP_MS;
    let mut place = Place::start(room, shape.old, "", shape.nodes, behaviour).await?;
    let outcome = upgrade(&mut place, shape).await;
    if !outcome.as_ref().is_ok_and(|outcome| outcome.violations().is_empty()) {
        println!("the logs of the controllers are in {}", place.keep().display());
    }
    outcome
}

/// Whether a node is deployed; the others are cleaned.
fn is_deployed(number: u32) -> bool {
    !number.is_multiple_of(2)
}

async fn upgrade(place: &mut Place, shape: &Shape<'_>) -> Result<Outcome> {
    let numbers = |deployed: bool| -> Vec<u32> {
        (0..shape.nodes).filter(|number| is_deployed(*number) == deployed).collect()
    };
    make_ready(place, numbers(true)).await?;
    let before = schema(place)?;
    place.fleet.begin(shape.seed);
    place.forget();
    let begun = Instant::now();
    let operator = place.controllers[0].operator.clone();
    operator::ask(&operator, numbers(false), "provide").await?;
    operator::ask(&operator, numbers(true), "active").await?;
    let (mut replaced, mut is_made_up) = (Vec::new(), false);
    for plan in Plan::all(shape.seed) {
        replaced.push(replacement::replace(place, plan, shape.new).await?);
        if replaced.len() == 1 && schema(place)? == before {
            place.sql(include_str!("next_schema.sql"));
            is_made_up = true;
        }
    }
    let arrived = arrivals(place, shape.nodes, begun).await?;
    let after = schema(place)?;
    ensure!(after > before, "the schema is {after} at the end, and was {before}");
    let asked = (0..shape.nodes).map(|number| (number, 1)).collect();
    let deployed = numbers(true).into_iter().collect();
    let record = Record { arrived, asked, deployed, ..place.record()? };
    let mut verdict = judge::judge(&record, None, None);
    verdict.violations.extend(judge::booted_again(&record));
    let judged = replaced.into_iter().map(|one| {
        let verdict = judge::judge_one(&record, &one.disturbance);
        (one, verdict)
    });
    let (seed, schema) = (shape.seed, [before, after]);
    Ok(Outcome { seed, schema, is_made_up, replaced: judged.collect(), verdict })
}

/// The nodes that are to be deployed get an image and become available: without a cleaning, whose steps would take long.
async fn make_ready(place: &Place, numbers: Vec<u32>) -> Result<()> {
    let operator = place.controllers[0].operator.clone();
    operator::give_image(&operator, numbers.clone(), "http://images.example/cloud.raw", SHA256).await?;
    operator::ask(&operator, numbers, "provide").await?;
    place.are("available", is_deployed).await
}

fn schema(place: &Place) -> Result<u32> {
    place.sql("SELECT version FROM anneal_schema").parse().context("the version of the schema")
}

/// When each node arrived, looked for from now on.
async fn arrivals(place: &Place, nodes: u32, begun: Instant) -> Result<BTreeMap<u32, Duration>> {
    let mut arrived = BTreeMap::new();
    loop {
        for (number, state) in operator::states(&place.controllers[0].operator).await? {
            if state == if is_deployed(number) { "active" } else { "available" } {
                arrived.entry(number).or_insert_with(|| begun.elapsed());
            }
        }
        if arrived.len() == nodes as usize {
            return Ok(arrived);
        }
        ensure!(begun.elapsed() < LIMIT, "only {} of {nodes} nodes arrive within {LIMIT:?}", arrived.len());
        tokio::time::sleep(LOOK).await;
    }
}
