//! `cargo xtask soak --part mutants`: cargo-mutants on what decides about destruction and proof.
//!
//! ```text
//! cargo mutants --list ─▶ choose.rs: all of WHOLE, and SAMPLE more of SAMPLED by a seed ─▶ shards
//!                                                                                           │ at most an hour each
//!       board.rs: one build with all mutants behind switches (switch.rs), the tests with each thrown ◀──┘
//!           │ those that cannot be behind a switch
//!           ▼
//!     cargo mutants, one build each ─▶ outcome.rs: caught, missed, explained ◀─ tests/mutants/survivors.txt
//! ```
//!
//! `cargo xtask mutants` takes out protections that someone thought of; this changes whatever a program finds to change.

mod board;
mod choose;
mod outcome;
mod switch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::args::Args;
use crate::{deps, sh};
use board::Board;
use choose::Mutant;
use outcome::{End, Ends, Summary};

use crate::mutants::tree::Tree;

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
const MUTANT_LIMIT_S: u64 = 300;

/// Survivors that were looked at one by one: lines `NAME => why no test can see it`.
const EXPLAINED: &str = "tests/mutants/survivors.txt";

/// Of what compiles, at least this share is caught, in percent.
const GOAL: usize = 95;

/// `cargo xtask soak --part mutants [--seed N] [--shard K] [--quick] [--list]`
///
/// What has ended is not tried again with the same seed: remove `target/soak-mutants` to begin anew. `--shard` runs one
/// shard, `--quick` leaves open what the slow tests or a build of its own must decide, `--list` only prints them.
pub fn run(mut args: Args) -> Result<()> {
    let seed = args.option("--seed")?;
    let only =
        args.option("--shard")?.map(|number| number.parse::<usize>()).transpose().context("--shard")?;
    let list = args.flag("--list");
    let quick = args.flag("--quick");
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
    let home = sh::target_dir().join("soak-mutants");
    let place = home.join(seed.to_string());
    fs::create_dir_all(&place)?;
    let mut run = Run {
        explained: outcome::explanations(&fs::read_to_string(sh::root().join(EXPLAINED))?)?,
        ends: Ends::read(&place.join("ends.json"))?,
        commit: sh::output(Command::new("git").args(["rev-parse", "--short", "HEAD"]))?.trim().to_owned(),
        board: None,
        quick,
        home,
        place,
    };
    let mut tried = Vec::new();
    for (number, shard) in
        shards.iter().enumerate().filter(|(number, _)| only.is_none_or(|only| only == *number))
    {
        run.shard(shard, &chosen).with_context(|| format!("shard {number}"))?;
        println!("mutants: shard {number}: {}", Summary::of(shard, &run.ends));
        tried.extend_from_slice(shard);
    }
    run.conclude(&tried)
}

/// What is tried with one seed, and what came of it.
struct Run {
    explained: BTreeMap<String, String>,
    ends: Ends,
    commit: String,
    board: Option<Board>,
    /// Whether only what is soon decided is tried.
    quick: bool,
    home: PathBuf,
    place: PathBuf,
}

impl Run {
    /// Tries what has not ended: a survivor of an earlier commit has not unless it is explained, since there may be a
    /// test now.
    fn shard(&mut self, shard: &[Mutant], chosen: &[Mutant]) -> Result<()> {
        let begun = Instant::now();
        let is_open = |mutant: &&Mutant| match self.ends.of(mutant) {
            None => true,
            Some(End::Missed) => {
                !self.ends.survived_on(mutant, &self.commit) && !self.explained.contains_key(&mutant.key)
            }
            Some(_) => false,
        };
        let open: Vec<&Mutant> = shard.iter().filter(is_open).collect();
        if open.is_empty() {
            return Ok(());
        }
        let board = match &mut self.board {
            Some(board) => board,
            None => self.board.insert(Board::build(&self.home, chosen)?),
        };
        let mut left = Vec::new();
        for mutant in open {
            if begun.elapsed() >= SHARD_LIMIT {
                println!("mutants: stopped after {} minutes", SHARD_LIMIT.as_secs() / 60);
                return Ok(());
            }
            match board.attempt(mutant, self.quick)? {
                Some(End::Missed) if self.quick => println!("mutants: open: {}", mutant.name),
                Some(end) => {
                    println!("mutants: {end:?}: {}", mutant.name);
                    self.ends.keep(mutant, end, &self.commit, &self.place.join("ends.json"))?;
                }
                None => left.push(mutant),
            }
        }
        if self.quick {
            return Ok(());
        }
        for (mutant, end) in one_by_one(&left, &self.home, SHARD_LIMIT.saturating_sub(begun.elapsed()))? {
            println!("mutants: {end:?}: {}", mutant.name);
            self.ends.keep(mutant, end, &self.commit, &self.place.join("ends.json"))?;
        }
        Ok(())
    }

    /// Prints the survivors; fails when too many are left, or one is not explained.
    fn conclude(&self, tried: &[Mutant]) -> Result<()> {
        let summary = Summary::of(tried, &self.ends);
        let mut left = 0;
        for mutant in tried.iter().filter(|mutant| self.ends.of(mutant) == Some(End::Missed)) {
            let why = self.explained.get(&mutant.key);
            left += usize::from(why.is_none());
            println!("SURVIVED {}: {}", mutant.key, why.map_or("not explained", String::as_str));
        }
        println!("mutants: {summary}");
        ensure!(left == 0, "{left} survivors are not explained in {EXPLAINED}");
        ensure!(summary.percent() >= GOAL, "fewer than {GOAL} % of the viable mutants were caught");
        Ok(())
    }
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

/// Has cargo-mutants try these, in a copy of the tree that keeps what was built.
fn one_by_one<'a>(mutants: &[&'a Mutant], home: &Path, limit: Duration) -> Result<Vec<(&'a Mutant, End)>> {
    if mutants.is_empty() {
        return Ok(Vec::new());
    }
    let tree = Tree::sync(home.join("tree"))?;
    let mut command = sh::cargo();
    command.args(["mutants", "--in-place", "--no-shuffle", "--colors", "never", "--output"]).arg(home);
    let seconds = MUTANT_LIMIT_S.to_string();
    command.args(["--timeout", &seconds, "--build-timeout", &seconds]);
    for mutant in mutants {
        command.args(["--file", &mutant.file, "--re"]).arg(mutant.pattern());
    }
    command
        .current_dir(tree.dir())
        .env("CARGO_TARGET_DIR", home.join("target"))
        .env("CARGO_INCREMENTAL", "1");
    let report = home.join("mutants.out/outcomes.json");
    if report.exists() {
        fs::remove_file(&report)?;
    }
    within(&mut command, limit)?;
    ensure!(report.exists(), "cargo mutants wrote no {}", report.display());
    let ends = outcome::parse(&fs::read_to_string(report)?)?;
    Ok(mutants.iter().filter_map(|mutant| Some((*mutant, *ends.get(&mutant.name)?))).collect())
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
