//! One build of the tests of all chosen mutants, each behind a switch, and the runs that throw them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;

use super::choose::Mutant;
use super::outcome::End;
use super::switch;
use crate::mutants::runner;
use crate::mutants::tree::Tree;
use crate::sh;

/// Crates that `Cargo.toml` optimizes: they are quicker built without than their tests are with.
const BUILT_PLAINLY: [&str; 2] = ["conductor", "model"];

/// The tests of the crates of the chosen mutants, built with their switches.
pub struct Board {
    home: PathBuf,
    tests: Vec<TestProgram>,
    /// Of the mutants that have a switch.
    numbers: BTreeMap<String, usize>,
}

struct TestProgram {
    package: String,
    is_lib: bool,
    dir: PathBuf,
    program: PathBuf,
}

impl Board {
    /// Puts the mutants into a copy of the tree, takes out those that do not compile there, and builds the tests.
    pub fn build(home: &Path, chosen: &[Mutant]) -> Result<Self> {
        fs::create_dir_all(home)?;
        let tree = Tree::sync(home.join("switched"))?;
        let packages: BTreeSet<&str> = chosen.iter().map(|mutant| mutant.package.as_str()).collect();
        let mut left_out = BTreeSet::new();
        let numbers = loop {
            let numbers = write(tree.dir(), chosen, &left_out)?;
            let wrong = check(home, tree.dir(), &packages)?;
            if wrong.is_empty() {
                break numbers;
            }
            println!("mutants: {} do not compile behind a switch", wrong.len());
            ensure!(!wrong.is_subset(&left_out), "the switches do not compile");
            left_out.extend(wrong);
        };
        let board = Self { home: home.to_owned(), tests: built(home, tree.dir(), &packages)?, numbers };
        println!("mutants: {} of {} are behind a switch", board.numbers.len(), chosen.len());
        for test in &board.tests {
            let end = board.run(test, 0, "")?;
            ensure!(end == End::Missed, "the tests do not pass without a mutant: {}", test.program.display());
        }
        Ok(board)
    }

    /// What becomes of a mutant; nothing when it has no switch.
    pub fn attempt(&self, mutant: &Mutant) -> Result<Option<End>> {
        let Some(&number) = self.numbers.get(&mutant.name) else { return Ok(None) };
        let own = |test: &&TestProgram| test.package == mutant.package;
        // The tests beside it are the quickest and see most.
        for test in self.tests.iter().filter(own).filter(|test| test.is_lib) {
            let end = self.run(test, number, &mutant.module())?;
            if end != End::Missed {
                return Ok(Some(end));
            }
        }
        for test in self.tests.iter().filter(own) {
            let end = self.run(test, number, "")?;
            if end != End::Missed {
                return Ok(Some(end));
            }
        }
        Ok(Some(End::Missed))
    }

    fn run(&self, test: &TestProgram, number: usize, filter: &str) -> Result<End> {
        let log = self.home.join("switched.log");
        fs::write(&log, "")?;
        let mut command = Command::new(&test.program);
        command.current_dir(&test.dir).env("CARGO_MANIFEST_DIR", &test.dir);
        command.env("MUTANT", number.to_string()).env("RUST_BACKTRACE", "0").arg(filter);
        Ok(match runner::bounded(&mut command, &log, Duration::from_secs(super::MUTANT_LIMIT_S))? {
            None => End::Timeout,
            Some(status) if status.success() => End::Missed,
            Some(_) => End::Caught,
        })
    }
}

/// Writes the files of all mutants but those; gives the numbers of what has a switch.
fn write(tree: &Path, chosen: &[Mutant], left_out: &BTreeSet<usize>) -> Result<BTreeMap<String, usize>> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in (1..).zip(chosen) {
        let of_file = files.entry(&mutant.file).or_default();
        if !left_out.contains(&number) {
            of_file.push((number, mutant));
        }
    }
    let mut numbers = BTreeMap::new();
    let mut roots = BTreeSet::new();
    for (file, mutants) in files {
        let text = fs::read_to_string(sh::root().join(file))?;
        let (text, switched) = switch::switched(&text, &mutants).with_context(|| file.to_owned())?;
        let of_file = mutants.iter().filter(|(number, _)| switched.contains(number));
        numbers.extend(of_file.map(|(number, mutant)| (mutant.name.clone(), *number)));
        let root = file.split_once("/src/").with_context(|| format!("{file} is not below src"))?.0;
        roots.insert(format!("{root}/src/lib.rs"));
        write_if_changed(&tree.join(file), &text)?;
    }
    for root in roots {
        let text = fs::read_to_string(tree.join(&root))?;
        if !text.ends_with(switch::SWITCHES) {
            fs::write(tree.join(&root), text + switch::SWITCHES)?;
        }
    }
    Ok(numbers)
}

fn write_if_changed(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file)? != text {
        fs::write(file, text)?;
    }
    Ok(())
}

/// The numbers of the mutants that do not compile, as far as the compiler came.
fn check(home: &Path, tree: &Path, packages: &BTreeSet<&str>) -> Result<BTreeSet<usize>> {
    let messages = cargo(home, tree, packages, &["check", "--lib", "--keep-going"])?;
    let mut wrong = BTreeSet::new();
    for message in messages.iter().map(|message| &message["message"]) {
        if message["level"] != "error" {
            continue;
        }
        let spans = message["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
        for span in spans.iter().filter(|span| span["is_primary"] == true) {
            let file = tree.join(span["file_name"].as_str().unwrap_or_default());
            let at = span["byte_start"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
            match switch::number_before(&fs::read_to_string(file)?, at) {
                Some(number) => wrong.insert(number),
                None => bail!("the copy does not compile: {}", message["rendered"]),
            };
        }
    }
    Ok(wrong)
}

/// Builds the tests.
fn built(home: &Path, tree: &Path, packages: &BTreeSet<&str>) -> Result<Vec<TestProgram>> {
    let mut tests = Vec::new();
    for message in cargo(home, tree, packages, &["test", "--no-run", "--lib", "--tests"])? {
        let (Some(program), Some(manifest)) =
            (message["executable"].as_str(), message["manifest_path"].as_str())
        else {
            continue;
        };
        if message["profile"]["test"] == true {
            let dir = Path::new(manifest).parent().context("a manifest in no directory")?;
            let package = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_lib = message["target"]["kind"][0] == "lib";
            tests.push(TestProgram { package, is_lib, dir: dir.to_owned(), program: program.into() });
        }
    }
    ensure!(!tests.is_empty(), "the tests with the switches do not build");
    tests.sort_by_key(|test| !test.is_lib);
    Ok(tests)
}

/// Runs cargo in the copy and gives its messages.
fn cargo(home: &Path, tree: &Path, packages: &BTreeSet<&str>, args: &[&str]) -> Result<Vec<Value>> {
    let mut command = sh::cargo();
    for package in BUILT_PLAINLY {
        command.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
    }
    command.args(args).arg("--message-format=json");
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command.current_dir(tree).env("CARGO_TARGET_DIR", home.join("target")).env("CARGO_INCREMENTAL", "1");
    let out = command.stderr(Stdio::inherit()).output()?;
    String::from_utf8(out.stdout)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
