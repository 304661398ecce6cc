//! One build of the tests of all chosen mutants, each behind a switch, and the runs that throw them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;

use super::choose::Mutant;
use super::outcome::End;
use super::switch;
use crate::mutants::runner;
use crate::mutants::tree::Tree;
use crate::sh;

/// How crates are optimized where `Cargo.toml` has it otherwise: two are quicker built without than their tests are with,
/// and block's tests, which write disks, run 500 times for each build.
const OPTIMIZED: [(&str, u8); 3] = [("conductor", 0), ("model", 0), ("block", 1)];

/// Tests that wait for the kernel to make and remove devices: what the others catch need not wait for them.
const LAST: [&str; 2] = ["loop_devices::", "signatures::"];

/// Files of which no mutant has a switch: their code runs in a process that is started without an environment.
const WITHOUT_ENVIRONMENT: [&str; 1] = ["agent/block/src/signatures/child.rs"];

/// The signals that stop a program from outside (signal(7)).
const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// What takes three times as long as without a mutant, and this long, does not end.
const HANG: Duration = Duration::from_secs(60);

/// The tests of the crates of the chosen mutants, built with their switches.
pub struct Board {
    home: PathBuf,
    tests: Vec<TestProgram>,
    /// Of the mutants that have a switch.
    numbers: BTreeMap<String, usize>,
    /// Tests, and their arguments, that were seen to pass without a mutant, and how long a mutant may take there.
    green: BTreeMap<(usize, Vec<String>), Duration>,
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
        // What did not compile in an earlier run is not built again to see it.
        let list = home.join("unswitched.json");
        let known: BTreeSet<String> = match list.exists() {
            true => serde_json::from_str(&fs::read_to_string(&list)?)?,
            false => BTreeSet::new(),
        };
        let name = |number: usize| &chosen[number - 1].name;
        let mut left_out: BTreeSet<usize> =
            (1..=chosen.len()).filter(|number| known.contains(name(*number))).collect();
        let (numbers, tests) = loop {
            let numbers = write(tree.dir(), chosen, &left_out)?;
            let messages = build_tests(home, tree.dir(), &packages)?;
            let wrong = wrong(tree.dir(), &messages)?;
            if wrong.is_empty() {
                break (numbers, built(&messages)?);
            }
            println!("mutants: {} do not compile behind a switch", wrong.len());
            ensure!(!wrong.is_subset(&left_out), "the switches do not compile");
            left_out.extend(wrong);
            let names: Vec<&String> = left_out.iter().map(|number| name(*number)).collect();
            fs::write(&list, serde_json::to_string_pretty(&names)?)?;
        };
        println!("mutants: {} of {} are behind a switch", numbers.len(), chosen.len());
        Ok(Self { home: home.to_owned(), tests, numbers, green: BTreeMap::new() })
    }

    /// What becomes of a mutant; nothing when it has no switch. `quick`: without the last tests, which may still see it.
    pub fn attempt(&mut self, mutant: &Mutant, quick: bool) -> Result<Option<End>> {
        let Some(&number) = self.numbers.get(&mutant.name) else { return Ok(None) };
        let own = self.tests.iter().enumerate().filter(|(_, test)| test.package == mutant.package);
        let own: Vec<usize> = own.map(|(index, _)| index).collect();
        // The tests of its module are the quickest and see most.
        let nearest = own.iter().filter(|&&index| self.tests[index].is_lib);
        let nearest = nearest.map(|&index| (index, vec![mutant.module()]));
        let but_last = LAST.iter().flat_map(|name| ["--skip", name]).map(str::to_owned).collect::<Vec<_>>();
        let last = LAST.map(str::to_owned).to_vec();
        let but_last = own.iter().map(|&index| (index, but_last.clone()));
        let last = own.iter().filter(|_| !quick).map(|&index| (index, last.clone()));
        let runs: Vec<(usize, Vec<String>)> = nearest.chain(but_last).chain(last).collect();
        for (index, args) in runs {
            let test = &self.tests[index];
            let unmutated = (index, args.clone());
            let limit = match self.green.get(&unmutated) {
                Some(limit) => *limit,
                None => {
                    let begun = Instant::now();
                    let end = self.run(test, 0, &args, Duration::from_secs(super::MUTANT_LIMIT_S))?;
                    let program = test.program.display();
                    ensure!(end == End::Missed, "the tests do not pass without a mutant: {program} {args:?}");
                    let limit = HANG.max(begun.elapsed() * 3);
                    self.green.insert(unmutated, limit);
                    limit
                }
            };
            let end = self.run(test, number, &args, limit)?;
            if end != End::Missed {
                return Ok(Some(end));
            }
        }
        Ok(Some(End::Missed))
    }

    fn run(&self, test: &TestProgram, number: usize, args: &[String], limit: Duration) -> Result<End> {
        let log = self.home.join("switched.log");
        fs::write(&log, "")?;
        let mut command = Command::new(&test.program);
        command.current_dir(&test.dir).env("CARGO_MANIFEST_DIR", &test.dir);
        command.env("MUTANT", number.to_string()).env("RUST_BACKTRACE", "0").args(args);
        match runner::bounded(&mut command, &log, limit)? {
            None => Ok(End::Timeout),
            Some(status) => end_of(status).with_context(|| format!("{command:?}")),
        }
    }
}

/// What an ended test program says of its mutant.
///
/// # Errors
/// When another process stopped it: then it says nothing. A crash of its own is seen.
fn end_of(status: ExitStatus) -> Result<End> {
    if let Some(signal @ (SIGHUP | SIGINT | SIGKILL | SIGTERM)) = status.signal() {
        bail!("the test was stopped from outside, by signal {signal}");
    }
    Ok(if status.success() { End::Missed } else { End::Caught })
}

/// Writes the files of all mutants but those; gives the numbers of what has a switch.
fn write(tree: &Path, chosen: &[Mutant], left_out: &BTreeSet<usize>) -> Result<BTreeMap<String, usize>> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in (1..).zip(chosen) {
        let of_file = files.entry(&mutant.file).or_default();
        if !left_out.contains(&number) && !WITHOUT_ENVIRONMENT.contains(&mutant.file.as_str()) {
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
fn wrong(tree: &Path, messages: &[Value]) -> Result<BTreeSet<usize>> {
    let mut wrong = BTreeSet::new();
    for message in messages.iter().map(|message| &message["message"]) {
        if message["level"] != "error" {
            continue;
        }
        let spans = message["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
        for span in spans.iter().filter(|span| span["is_primary"] == true) {
            let file = tree.join(span["file_name"].as_str().unwrap_or_default());
            let at = span["byte_start"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
            match switch::number_at(&fs::read_to_string(file)?, at) {
                Some(number) => wrong.insert(number),
                None => bail!("the copy does not compile: {}", message["rendered"]),
            };
        }
    }
    Ok(wrong)
}

/// The programs of the tests.
fn built(messages: &[Value]) -> Result<Vec<TestProgram>> {
    let mut tests = Vec::new();
    for message in messages {
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

/// Builds the tests in the copy, and gives cargo's messages.
fn build_tests(home: &Path, tree: &Path, packages: &BTreeSet<&str>) -> Result<Vec<Value>> {
    let mut command = sh::cargo();
    for (package, level) in OPTIMIZED {
        command.args(["--config", &format!("profile.dev.package.{package}.opt-level={level}")]);
    }
    command.args(["build", "--lib", "--tests", "--keep-going", "--message-format=json"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command.current_dir(tree).env("CARGO_TARGET_DIR", home.join("target")).env("CARGO_INCREMENTAL", "1");
    let out = command.stderr(Stdio::inherit()).output()?;
    String::from_utf8(out.stdout)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGABRT: i32 = 6;

    #[test]
    fn a_test_that_was_stopped_from_outside_says_nothing() {
        let end = |status: i32| end_of(ExitStatus::from_raw(status));
        let exited = |code: i32| end(code << 8);
        assert_eq!(exited(0).unwrap(), End::Missed);
        assert_eq!(exited(101).unwrap(), End::Caught);
        assert_eq!(end(SIGABRT).unwrap(), End::Caught);
        for signal in [SIGHUP, SIGINT, SIGKILL, SIGTERM] {
            let text = end(signal).unwrap_err().to_string();
            assert!(text.starts_with("the test was stopped from outside"), "{text}");
        }
    }
}
