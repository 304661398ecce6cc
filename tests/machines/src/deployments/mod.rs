//! The table of deployments (`--table deployments`, `cargo xtask soak --part deploy`): every pair of firmware, bus and format; power
//! cuts and kills of the controller at random moments; mirrors that do not behave; boot entries without room for one
//! more; deployments that begin in the ramdisk of a cleaning.

mod cases;
mod deployment;
mod fast_track;
mod interrupted;
mod mirrors;
mod nvram;
mod written;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use lab::site::in_namespace;
use tokio::time::timeout;

use crate::options::Options;
use crate::run;
use crate::stage::Stage;
use cases::{Case, Story};

/// Many times what the longest takes on a quiet machine.
const LIMIT: Duration = Duration::from_secs(600);

/// One row of the table.
struct Row {
    number: usize,
    text: String,
    passed: bool,
}

/// Runs them all and prints the table; true when none failed.
///
/// # Errors
/// When they cannot even be begun: no root, no image, no binaries.
pub fn all(options: &Options) -> Result<bool> {
    let filter = options.filter.as_deref().unwrap_or_default();
    let chosen: Vec<(usize, Case)> = cases::all(options.times)
        .into_iter()
        .enumerate()
        .filter(|(_, case)| case.name.contains(filter))
        .collect();
    ensure!(!chosen.is_empty(), "no deployment has {filter:?} in its name");
    if options.list {
        chosen.iter().for_each(|(_, case)| println!("{}", case.row("", "")));
        return Ok(true);
    }
    let seed = run::prepare(options)?;
    println!("deployments: {} kills and power cuts, --seed {seed}", options.times);
    let queue = Mutex::new(chosen.into_iter());
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((number, case)) = next else { break };
                    let row = one(number, &case, seed, options.keep);
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|row| row.number);
    println!("{}", cases::HEAD);
    rows.iter().for_each(|row| println!("{}", row.text));
    let passed = rows.iter().filter(|row| row.passed).count();
    println!("deployments: {passed} passed, {} failed, --seed {seed}", rows.len() - passed);
    Ok(passed == rows.len())
}

/// One deployment in its namespace and directory.
fn one(number: usize, case: &Case, seed: u64, keep: bool) -> Row {
    let begun = Instant::now();
    // Each has moments of its own, and the same ones when it runs alone.
    let seed = seed.wrapping_add(number as u64);
    let (dir, outcome) = run::in_directory(|dir| {
        let namespace = format!("an-{}-{}", case.name, std::process::id());
        let stage = Stage { dir, times: 1, seed, long: true };
        in_namespace(&namespace, || async {
            let story = played(case, stage);
            timeout(LIMIT, story).await.unwrap_or_else(|_| bail!("not over within {} s", LIMIT.as_secs()))
        })
    });
    let seconds = format!("{:.0}", begun.elapsed().as_secs_f64());
    let (passed, said) = match outcome {
        Ok(said) => (true, said),
        Err(error) => (false, format!("FAILED: {error:#}")),
    };
    let text = case.row(&seconds, &said.replace('\n', " "));
    println!("{text}");
    if passed {
        run::put_away(dir, keep)
    } else {
        run::show_logs(dir)
    }
    Row { number, text, passed }
}

async fn played(case: &Case, stage: Stage) -> Result<String> {
    match case.story {
        Story::Written => written::story(case, &stage).await,
        Story::Cut => interrupted::cut(case, &stage).await,
        Story::CutInBoot => interrupted::cut_in_boot(case, &stage).await,
        Story::FastTrack => fast_track::story(case, &stage).await,
        Story::Killed => interrupted::killed(case, &stage).await,
        Story::MirrorDies => mirrors::dies(case, &stage).await,
        Story::MirrorStalls => mirrors::stalls(case, &stage).await,
        Story::MirrorLies => mirrors::lies(case, &stage).await,
        Story::MirrorChanges => mirrors::changes(case, &stage).await,
        Story::FullNvram => nvram::story(case, &stage).await,
    }
}
