//! The real controller killed at every stored write, started again, and compared with one that lived.
//!
//! ```text
//!   story.rs ── verbs ──▶ operator.rs ──▶ anneal-controller ◀── lookup, heartbeat ── machine.rs (an agent each boot)
//!                                           │  ANNEAL_FAULT: dies at write N      ▲
//!                                           └── Redfish ──▶ machine.rs ───────────┘ power, journal of what ran
//!   play.rs: one run, the controller started again when it has died · campaign.rs: every N · compare.rs: the same?
//! ```
//!
//! `before` a write: what it stores has happened and is lost. `after` it: it is stored, but not yet answered.
//! One line each: `PASS name` or `FAIL name`, then every difference. Exit code 1 when any failed.

mod campaign;
mod compare;
mod controller;
mod lost_step;
mod machine;
mod operator;
mod play;
mod story;

use anyhow::{Context, Result, ensure};
use campaign::Plan;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Kill the controller at every write.
#[derive(Debug, Parser)]
struct Options {
    /// anneal-controller, built with the feature `fault-points`.
    #[arg(long, default_value = "target/debug/fault-points/anneal-controller")]
    program: PathBuf,
    /// Only what has this in its name.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Kill at leases and contact with agents too: many times as many writes.
    #[arg(long)]
    any: bool,
    /// Runs at once.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Print the names and run nothing.
    #[arg(long)]
    list: bool,
}

/// Whether it passed, and the lines to print.
type Verdict = (bool, Vec<String>);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("kill: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    let mut names: Vec<_> = story::ALL.iter().map(|story| (story.name, story.about)).collect();
    names.push((lost_step::NAME, lost_step::ABOUT));
    names.retain(|(name, _)| name.contains(&options.filter));
    ensure!(!names.is_empty(), "nothing has {:?} in its name", options.filter);
    if options.list {
        names.iter().for_each(|(name, about)| println!("{name:24} {about}"));
        return Ok(true);
    }
    let program = options.program.canonicalize().with_context(|| options.program.display().to_string())?;
    let dir = scratch()?;
    let (mut passed, mut failed) = (0, 0);
    for (name, _) in names {
        let begun = Instant::now();
        let (good, lines) = one(name, options, &program, dir.path());
        let word = if good { "PASS" } else { "FAIL" };
        println!("{word} {name} ({:.1} s)", begun.elapsed().as_secs_f64());
        lines.iter().for_each(|line| println!("     {line}"));
        if good { passed += 1 } else { failed += 1 }
    }
    if failed > 0 {
        println!("     databases and logs: {}", dir.keep().display());
    }
    println!("kill: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// In memory where there is such a place: a killed process loses nothing of it, and nothing waits for a disk.
fn scratch() -> Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("anneal-kill-");
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { builder.tempdir_in(memory) } else { builder.tempdir() }?)
}

fn one(name: &str, options: &Options, program: &Path, dir: &Path) -> Verdict {
    let Some(story) = story::ALL.iter().find(|story| story.name == name) else {
        return match lost_step::all(program, dir) {
            Ok(lines) => (true, lines),
            Err(error) => (false, vec![format!("{error:#}")]),
        };
    };
    let plan = Plan { program, dir, jobs: options.jobs, any: options.any };
    match campaign::lead(story, &plan) {
        Ok(outcome) => {
            let good = outcome.wrong.is_empty();
            let end = if good { ", all ended as the undisturbed run" } else { "" };
            let mut lines = vec![format!("{} writes, {} kills{end}", outcome.writes, outcome.kills)];
            if !story.fragile.is_empty() {
                let (steps, count) = (story.fragile.join(", "), outcome.interrupted);
                lines.push(format!("{count} kills in {steps}: failed with the true reason, begun anew"));
            }
            lines.extend(outcome.wrong);
            (good, lines)
        }
        Err(error) => (false, vec![format!("{error:#}")]),
    }
}
