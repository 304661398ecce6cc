//! Runs scenarios, several at once, and prints their results.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::site::in_namespace;
use lab::wait;
use tokio::time::timeout;

use crate::ipa_ramdisk;
use crate::judges::{ironic, sushy};
use crate::options::{Options, Table};
use crate::scenarios::{Scenario, resumed, virtual_media_killed};
use crate::stage::Stage;

/// Many times what the longest takes on a quiet machine.
const LIMIT: Duration = Duration::from_secs(420);
/// A kill or power cut more, with what follows from it.
const LIMIT_EACH: Duration = Duration::from_secs(60);
/// Of each log of a failed scenario.
const TAIL: usize = 4000;

/// So many scenarios that failed run again, alone. When more fail, it is not the load.
const AGAIN: usize = 2;

/// Runs them all; true when none failed. With `--again`, what failed next to others runs again alone: a busy machine may miss a
/// deadline. That result counts, and the end names it.
///
/// # Errors
/// When they cannot even be begun: no root, no image, no binaries.
pub fn all(chosen: Vec<&'static Scenario>, options: &Options) -> Result<bool> {
    let seed = prepare(options)?;
    println!("machines: {} kills and power cuts each, --seed {seed}", options.times);
    let all = chosen.len();
    let queue = Mutex::new(chosen.into_iter());
    let lost = Mutex::new(Vec::new());
    let printing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(scenario) = next else { break };
                    if !passes(scenario, options, seed, &printing) {
                        lost.lock().unwrap_or_else(PoisonError::into_inner).push(scenario);
                    }
                }
            });
        }
    });
    let mut lost = lost.into_inner().unwrap_or_else(PoisonError::into_inner);
    if options.again && lost.len() <= AGAIN {
        lost.retain(|scenario| {
            println!("{}: failed next to other scenarios, runs again alone", scenario.0);
            let passed = passes(scenario, options, seed, &printing);
            if passed {
                println!("passed alone, failed next to other scenarios: {}", scenario.0);
            }
            !passed
        });
    }
    println!("machines: {} passed, {} failed", all - lost.len(), lost.len());
    Ok(lost.is_empty() && all > 0)
}

/// Runs a scenario and prints its result; whether it passed.
fn passes(scenario: &'static Scenario, options: &Options, seed: u64, printing: &Mutex<()>) -> bool {
    let begun = Instant::now();
    let (dir, outcome) = one(scenario, options, seed);
    let seconds = begun.elapsed().as_secs_f64();
    let _one_at_a_time = printing.lock().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(()) => {
            println!("PASS {} ({seconds:.1} s)", scenario.0);
            put_away(dir, options.keep);
            true
        }
        Err(error) => {
            println!("FAIL {}: {error:#} ({seconds:.1} s)", scenario.0);
            show_logs(dir);
            false
        }
    }
}

/// Everything that is needed is there. The seed of all moments: that of the options, or another one each time.
///
/// # Errors
/// When something is missing.
pub fn prepare(options: &Options) -> Result<u64> {
    if !nix::unistd::geteuid().is_root() {
        bail!("network namespaces and taps need root");
    }
    lab::binaries::use_dirs(options.bin_dir.clone(), options.image.clone());
    for name in ["anneal-controller", "anneal-agent"] {
        lab::binaries::binary(name)?;
    }
    lab::binaries::image_dir()?;
    let random =
        || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() % 1_000_000);
    Ok(options.seed.unwrap_or_else(random))
}

/// One scenario in its namespace and directory.
fn one(scenario: &'static Scenario, options: &Options, seed: u64) -> (Result<tempfile::TempDir>, Result<()>) {
    let (times, long) = (options.times, options.table == Table::Long);
    in_directory(|dir| play(scenario, Stage { dir, times, seed, long }))
}

/// What happens in a directory of its own, and the directory.
pub fn in_directory<T>(work: impl FnOnce(PathBuf) -> Result<T>) -> (Result<tempfile::TempDir>, Result<T>) {
    // Short: sockets are in there.
    let dir = tempfile::Builder::new().prefix("machines-").tempdir().context("no directory for the scenario");
    let outcome = match &dir {
        Ok(dir) => work(dir.path().to_owned()),
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    (dir, outcome)
}

fn play((name, _, story): &'static Scenario, stage: Stage) -> Result<()> {
    // What needs the network of this machine is installed before.
    match *name {
        "sushy" | "sushy_media" => sushy::install().context("preparing")?,
        "replace_ipa" | "ironic_deploys" | "ironic_deploys_uefi" | "ironic_iso" | "ironic_media" => {
            ironic::install().context("preparing")?
        }
        "ipa_media_uefi" | "ipa_media_bios" => ipa_ramdisk::install().context("preparing")?,
        _ => {}
    }
    let namespace = format!("an-{}-{}", name.replace('_', "-"), std::process::id());
    let repeats = match *name {
        name if name.ends_with("mid_erase") => stage.times,
        "resumed" => resumed::cuts(stage.times),
        // An interpreter in an emulator.
        name if name.starts_with("ipa_media") => 8,
        "virtual_media_killed" => virtual_media_killed::POINTS.into(),
        _ => 0,
    };
    let limit = LIMIT + LIMIT_EACH * u32::try_from(repeats)?;
    in_namespace(&namespace, || async move {
        timeout(limit, story(stage)).await.unwrap_or_else(|_| bail!("not over within {} s", limit.as_secs()))
    })
}

/// Removes the directory of a scenario that passed, or says where it is.
pub fn put_away(dir: Result<tempfile::TempDir>, keep: bool) {
    if let (Ok(dir), true) = (dir, keep) {
        println!("     kept: {}", dir.keep().display());
    }
}

/// Where everything of a failed scenario is, and the ends of its logs.
pub fn show_logs(dir: Result<tempfile::TempDir>) {
    let Ok(dir) = dir else { return };
    let dir = dir.keep();
    println!("     files of this scenario: {}", dir.display());
    for log in logs_below(&dir) {
        println!("----- {}", log.display());
        for line in wait::tail(&log, TAIL).lines() {
            println!("      {line}");
        }
    }
}

/// Files whose name ends in `.log`, at any depth.
fn logs_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(path),
                Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "log") => {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}
