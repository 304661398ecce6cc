//! `cargo xtask soak --part mutants`: cargo-mutants on what decides about destruction and proof.
//!
//! ```text
//! cargo mutants --list ─▶ choose.rs: all of WHOLE, and SAMPLE more of SAMPLED by a seed ─▶ shards
//!                                                                                           │ at most an hour each
//! tests/mutants/survivors.txt ─▶ outcome.rs: caught, missed, explained ◀── cargo mutants ◀──┘
//! ```
//!
//! `cargo xtask mutants` takes out protections that someone thought of; this changes whatever a program finds to change.

mod choose;
mod outcome;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::args::Args;
use crate::{deps, sh};
use choose::Mutant;
use outcome::Summary;

/// Files and directories whose mutants are all tried.
const WHOLE: [&str; 5] = [
    "agent/block/src/guard.rs",
    "agent/block/src/method/",
    "agent/block/src/verify.rs",
    "agent/block/src/plan/",
    "shared/certificate/src/evidence.rs",
];

/// Those from which more are drawn.
const SAMPLED: [&str; 5] = [
    "hardware-managers/hwm-generic/src/",
    "agent/block/src/",
    "controller/model/src/plan.rs",
    "controller/model/src/request.rs",
    "controller/conductor/src/stages/",
];

/// Where block builds bytes and makes system calls: what they mean is decided elsewhere.
const NOT_SAMPLED: [&str; 6] = [
    "agent/block/src/sys/",
    "agent/block/src/nvme/",
    "agent/block/src/ata/",
    "agent/block/src/scsi/",
    "agent/block/src/mmc/",
    "agent/block/src/fake.rs",
];

/// How many are drawn.
const SAMPLE: usize = 300;

/// Mutants of a shard. With the limits below, a shard is over within its hour.
const IN_A_SHARD: usize = 30;

/// A shard that is not over by then is stopped; what it has not tried is reported.
const SHARD_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Seconds for the tests of one mutant, and for its build.
const MUTANT_LIMIT_S: &str = "300";

/// Survivors that were looked at one by one: lines `NAME => why no test can see it`.
const EXPLAINED: &str = "tests/mutants/survivors.txt";

/// Of what compiles, at least this share is caught, in percent.
const GOAL: usize = 95;

/// `cargo xtask soak --part mutants [--seed N] [--shard K] [--list]`
///
/// A shard that has ended is not run again with the same seed: remove `target/soak-mutants` to begin anew. `--shard` runs
/// one, `--list` only prints them.
pub fn run(mut args: Args) -> Result<()> {
    let seed = args.option("--seed")?;
    let only =
        args.option("--shard")?.map(|number| number.parse::<usize>()).transpose().context("--shard")?;
    let list = args.flag("--list");
    args.finish()?;
    let seed = match seed {
        Some(seed) => seed.parse().context("--seed")?,
        None => SystemTime::UNIX_EPOCH.elapsed()?.as_secs(),
    };
    ensure!(
        list || deps::is_root(),
        "the tests make loop devices: run them as root (sudo -E cargo xtask soak --part mutants)"
    );
    install()?;
    let all = listed()?;
    let chosen = choose::choose(&all, seed)?;
    let shards: Vec<&[Mutant]> = chosen.chunks(IN_A_SHARD).collect();
    println!("mutants: --seed {seed}: {} of {} in {} shards", chosen.len(), all.len(), shards.len());
    if list {
        for (number, mutant) in shards.iter().enumerate().flat_map(|(n, s)| s.iter().map(move |m| (n, m))) {
            println!("{number:3} {}", mutant.name);
        }
        return Ok(());
    }
    if let Some(number) = only {
        ensure!(number < shards.len(), "there are shards 0 to {}", shards.len() - 1);
    }
    let dir = sh::target_dir().join("soak-mutants").join(seed.to_string());
    let mut outcomes = BTreeMap::new();
    for (number, shard) in
        shards.iter().enumerate().filter(|(number, _)| only.is_none_or(|only| only == *number))
    {
        let place = dir.join(format!("shard-{number}"));
        outcomes.extend(tried(shard, &place).with_context(|| format!("shard {number}"))?);
        println!("mutants: shard {number}: {}", Summary::of(shard, &outcomes));
    }
    let explained = outcome::explanations(&fs::read_to_string(sh::root().join(EXPLAINED))?)?;
    let tried: Vec<Mutant> =
        chosen.into_iter().filter(|mutant| outcomes.contains_key(&mutant.name)).collect();
    conclude(&tried, &outcomes, &explained)
}

/// Prints the survivors; fails when too many are left, or one is not explained.
fn conclude(
    tried: &[Mutant],
    outcomes: &BTreeMap<String, String>,
    explained: &BTreeMap<String, String>,
) -> Result<()> {
    let summary = Summary::of(tried, outcomes);
    let mut left = 0;
    for mutant in tried.iter().filter(|mutant| outcomes[&mutant.name] == outcome::MISSED) {
        let why = explained.get(&mutant.without_place());
        left += usize::from(why.is_none());
        println!("SURVIVED {}: {}", mutant.name, why.map_or("not explained", String::as_str));
    }
    println!("mutants: {summary}");
    ensure!(left == 0, "{left} survivors are not explained in {EXPLAINED}");
    ensure!(summary.percent() >= GOAL, "fewer than {GOAL} % of the viable mutants were caught");
    Ok(())
}

/// Installs cargo-mutants where it is not there.
fn install() -> Result<()> {
    if sh::succeeds(sh::cargo().args(["mutants", "--version"])) {
        return Ok(());
    }
    sh::run(sh::cargo().args(["install", "--locked", "cargo-mutants"]))
}

/// All mutants of the files.
fn listed() -> Result<Vec<Mutant>> {
    let mut command = sh::cargo();
    command.args(["mutants", "--list", "--json"]);
    for place in WHOLE.iter().chain(&SAMPLED) {
        let glob = if place.ends_with('/') { format!("{place}**") } else { (*place).to_owned() };
        command.args(["--file", &glob]);
    }
    choose::parse(&sh::output(&mut command)?)
}

/// Runs one shard, unless it has ended before; gives what became of each mutant, by its name.
fn tried(shard: &[Mutant], place: &Path) -> Result<BTreeMap<String, String>> {
    let report: PathBuf = place.join("mutants.out/outcomes.json");
    let over = place.join("over");
    if !over.exists() {
        fs::create_dir_all(place)?;
        let mut command = sh::cargo();
        command.args(["mutants", "--no-shuffle", "--colors", "never", "--output"]).arg(place);
        command.args(["--timeout", MUTANT_LIMIT_S, "--build-timeout", MUTANT_LIMIT_S]);
        for mutant in shard {
            command.args(["--file", &mutant.file, "--re"]).arg(mutant.pattern());
        }
        within(&mut command, SHARD_LIMIT)?;
        ensure!(report.exists(), "cargo mutants wrote no {}", report.display());
        fs::write(over, "")?;
    }
    outcome::parse(&fs::read_to_string(report)?)
}

/// Runs a command for this long at most. How it ends says what it found: that is read from its report.
fn within(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() >= limit {
            println!("mutants: stopped after {} minutes", limit.as_secs() / 60);
            // An interrupt, so that it stops the tests that it has started.
            sh::succeeds(Command::new("kill").args(["-INT", &child.id().to_string()]));
            child.wait()?;
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
