//! Many seeds, on as many threads as there are processors.

use crate::controllers::Controllers;
use crate::run::{Outcome, run_with};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// The sum of the outcomes of many seeds.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    /// How many there were.
    pub seeds: u64,
    /// How many broke a rule.
    pub broken: u64,
    /// The rules, with how often each was broken.
    pub rules: BTreeMap<&'static str, u64>,
    /// Stored writes.
    pub writes: u64,
    /// Steps that really began.
    pub steps: usize,
    /// Kills of controllers.
    pub kills: usize,
    /// Leases that a controller took over from another one.
    pub takeovers: usize,
    /// Seconds of the worlds.
    pub seconds: u64,
}

impl Sum {
    /// Add an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.writes += outcome.writes;
        self.steps += outcome.steps;
        self.kills += outcome.kills;
        self.takeovers += outcome.takeovers;
        self.seconds += outcome.seconds;
        if let Some(violation) = &outcome.violation {
            self.broken += 1;
            *self.rules.entry(violation.rule).or_default() += 1;
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "simulation: {} seeds, {} broke a rule; {} stored writes, {} steps, {} kills of controllers, {} leases \
             taken over, {} h of simulated time",
            self.seeds,
            self.broken,
            self.writes,
            self.steps,
            self.kills,
            self.takeovers,
            self.seconds / 3600
        )?;
        for (rule, times) in &self.rules {
            write!(f, "\n    {rule}: {times}")?;
        }
        Ok(())
    }
}

/// How to see again what a seed does.
fn replay(seed: u64, nodes: Option<usize>, several: bool) -> String {
    let nodes = nodes.map(|nodes| format!(" --nodes {nodes}")).unwrap_or_default();
    let several = if several { " --several" } else { "" };
    format!("cargo xtask soak --part sim --seed {seed}{nodes}{several}")
}

/// How many broken seeds are printed before the run stops.
const ENOUGH: u64 = 3;

/// Run the seeds, and print each that broke a rule, until [`ENOUGH`] have.
pub fn run_all(seeds: Range<u64>, nodes: Option<usize>, several: bool) -> Sum {
    let mut sum = Sum::default();
    visit(seeds, nodes, several, |outcome| {
        if let Some(violation) = &outcome.violation {
            println!("seed {} {}: {}", outcome.seed, violation.rule, violation.what);
            println!("    {}", replay(outcome.seed, nodes, several));
        }
        sum.add(&outcome);
        sum.broken < ENOUGH
    });
    sum
}

/// Run the seeds; `visitor` gets each outcome, in no particular order, and returns whether to continue.
fn visit(seeds: Range<u64>, nodes: Option<usize>, several: bool, mut visitor: impl FnMut(Outcome) -> bool) {
    let next = AtomicU64::new(seeds.start);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (sender, outcomes) = mpsc::channel();
    let of = |seed| run_with(seed, Controllers::of_world(seed, several), nodes, false);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (next, of, sender, end) = (&next, &of, sender.clone(), seeds.end);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || sender.send(of(seed)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for outcome in outcomes {
            if !visitor(outcome) {
                break;
            }
        }
    });
}

/// Let the log of the real code be seen, too. It has no time of its own: the lines around it do.
pub fn listen() {
    let to_stdout = tracing_subscriber::fmt().with_writer(std::io::stdout).without_time().with_ansi(false);
    // If a subscriber is installed already, it gets the log.
    let _ = to_stdout.try_init();
}
