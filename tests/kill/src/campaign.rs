//! One story, killed at every write.
//!
//! The undisturbed run is played twice: two that differ would make every other comparison worthless. Then the
//! number of the write goes up until a controller lives through its story. Where a run takes long, some of the numbers are left
//! out.

use crate::compare::differences;
use crate::controller::{Fault, Setup};
use crate::play::{RunRecord, play};
use crate::story::Story;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How a campaign is led.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// What is killed.
    pub setup: Setup<'a>,
    /// Below it every run has a directory of its own.
    pub dir: &'a Path,
    /// Runs at once.
    pub jobs: usize,
    /// Leases and contact with agents are counted too.
    pub any: bool,
    /// Number of the first write to kill at, from 1.
    pub first: usize,
    /// The next is so many later, from 1.
    pub every: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Writes of the undisturbed run; where not every write is one to kill at, perhaps some more than there are.
    pub writes: usize,
    /// Controllers that were killed.
    pub kills: usize,
    /// Runs that failed because a step that may not be repeated was interrupted.
    pub interrupted: usize,
    /// Differences, and stories that did not end.
    pub wrong: Vec<String>,
}

/// What is still to be done.
#[derive(Default)]
struct Queue {
    next: usize,
    /// The number of the first write that was never reached.
    end: Option<usize>,
    outcome: Outcome,
}

/// Leads a campaign.
///
/// # Errors
/// When the undisturbed story does not end, or does not go the same way twice.
pub fn lead(story: &'static Story, plan: &Plan<'_>) -> Result<Outcome> {
    let undisturbed = one(story, plan, None, "undisturbed")?;
    let again = one(story, plan, None, "undisturbed-again")?;
    let differences = differences(&undisturbed, &again);
    ensure!(differences.is_empty(), "two undisturbed runs differ: {}", differences.join("; "));
    let queue = Mutex::new(Queue { next: plan.first, ..Queue::default() });
    thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(|| work(story, plan, &undisturbed, &queue));
        }
    });
    let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut outcome = queue.outcome;
    outcome.writes = queue.end.map_or(0, |end| end - 1);
    if outcome.kills == 0 {
        bail!("no controller was killed: was {} built with debug assertions?", plan.setup.program.display());
    }
    // Of some writes none may be that one.
    if plan.every == 1 && !story.fragile.is_empty() && outcome.interrupted == 0 {
        outcome.wrong.push(format!(
            "no kill was seen to have interrupted {}: no record shows that it had begun",
            story.fragile.join(", ")
        ));
    }
    Ok(outcome)
}

/// Both moments of one write after the other, until the end.
fn work(story: &'static Story, plan: &Plan<'_>, undisturbed: &RunRecord, queue: &Mutex<Queue>) {
    loop {
        let number = {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.end.is_some_and(|end| queue.next >= end) {
                return;
            }
            queue.next += plan.every;
            queue.next - plan.every
        };
        for before in [true, false] {
            let fault = Fault { before, any: plan.any, number };
            let played = one(story, plan, Some(fault), &fault.to_string().replace(':', "-"));
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            match played {
                Ok(record) => {
                    if record.died {
                        queue.outcome.kills += 1;
                        queue.outcome.interrupted += usize::from(record.interrupted.is_some());
                    } else {
                        queue.end = Some(queue.end.map_or(number, |end| end.min(number)));
                    }
                    let found = differences(undisturbed, &record);
                    queue
                        .outcome
                        .wrong
                        .extend(found.into_iter().map(|what| format!("killed {fault}: {what}")));
                }
                Err(error) => queue.outcome.wrong.push(format!("killed {fault}: {error:#}")),
            }
            // A fault of every write need not be reported for every write.
            if queue.outcome.wrong.len() >= 20 {
                queue.end = Some(queue.end.unwrap_or(number));
            }
        }
    }
}

/// One run in a directory of its own.
fn one(story: &Story, plan: &Plan<'_>, fault: Option<Fault>, name: &str) -> Result<RunRecord> {
    let dir = plan.dir.join(story.name).join(name);
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let record =
        runtime.block_on(play(story, plan.setup, &dir, fault)).with_context(|| dir.display().to_string())?;
    if fault.is_some() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(record)
}
