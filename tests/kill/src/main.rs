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
mod database;
mod lost_step;
mod machine;
mod operator;
mod play;
mod story;

use anyhow::{Context, Result, ensure};
use campaign::Plan;
use clap::{Parser, ValueEnum};
use controller::Setup;
use database::Database;
use postgres_server::{Durability, Server};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Kill the controller at every write.
#[derive(Debug, Parser)]
struct Options {
    /// anneal-controller, built with debug assertions.
    #[arg(long, default_value = "target/debug/anneal-controller")]
    program: PathBuf,
    /// Only what has this in its name.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Kill at leases and contact with agents too: many times as many writes.
    #[arg(long)]
    any: bool,
    /// What the controllers store in.
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    store: StoreKind,
    /// Kill at one of so many writes, from 1. Which ones the seed says.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    every: u16,
    /// Drawn if it is not given, and printed.
    #[arg(long)]
    seed: Option<u16>,
    /// Runs at once.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Print the names and run nothing.
    #[arg(long)]
    list: bool,
}

/// What the controllers store in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoreKind {
    /// A file each.
    Sqlite,
    /// A database each, of one server that the suite starts.
    Postgres,
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
    let database = match options.store {
        StoreKind::Sqlite => Database::Sqlite,
        // Controllers are killed, never the server.
        StoreKind::Postgres => Database::Postgres(Arc::new(Server::start(Durability::None))),
    };
    let setup = Setup { program: &program, database: &database };
    let seed = options.seed.map_or_else(drawn, Ok)?;
    let first = usize::from(seed % options.every) + 1;
    let every = usize::from(options.every);
    let plan = Plan { setup, dir: dir.path(), jobs: options.jobs, any: options.any, first, every };
    if every > 1 {
        println!("kill: one of {every} writes, --seed {seed}");
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, _) in names {
        let begun = Instant::now();
        let (good, lines) = one(name, &plan);
        let word = if good { "PASS" } else { "FAIL" };
        let on = if options.store == StoreKind::Postgres { "-postgres" } else { "" };
        println!("{word} {name}{on} ({:.1} s)", begun.elapsed().as_secs_f64());
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

fn drawn() -> Result<u16> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("random bytes: {error}"))?;
    Ok(u16::from_le_bytes(bytes))
}

fn one(name: &str, plan: &Plan<'_>) -> Verdict {
    let Some(story) = story::ALL.iter().find(|story| story.name == name) else {
        return match lost_step::all(plan.setup, plan.dir) {
            Ok(lines) => (true, lines),
            Err(error) => (false, vec![format!("{error:#}")]),
        };
    };
    match campaign::lead(story, plan) {
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
