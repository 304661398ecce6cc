//! `cargo xtask mutants`: takes each protection out of a copy of the tree and shows that a test turns red.
//!
//! ```text
//! git ls-files ──► target/mutants/tree ──► every named test, unmutated: must be green
//!                        │
//!                        └─ for each row of tests/mutants/*.toml: edit ─► build ─► test ─► take back
//!                                 not exactly one place: ERROR ◄──┘    │         ├─ the named test failed: caught
//!                                               does not compile: ERROR ◄┘       └─ it passed: SURVIVED
//! ```
//!
//! A protection is something that only shows when things go wrong: a comparison, a refusal, an order of two
//! writes. A test that stays green without it does not test it. Only the failure of the test that the row
//! names counts; a mutant that does not compile, a test that did not run and a hang are errors of the row.
//! An edit names an item and a few tokens in it, so that a row outlives most changes of the code around it.

mod command;
mod edit;
mod invariants;
mod items;
mod judge;
mod named;
mod pattern;
mod row;
mod runner;
mod tokens;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::args::Args;
use crate::{deps, sh};
use items::Sources;
use judge::Verdict;
use row::{Mutant, Rows};
use runner::Runner;

/// `cargo xtask mutants [NAME …] [--list] [--fast]`
///
/// A `NAME` takes every row whose name contains it. `--list` only prints them, `--fast` leaves out those
/// whose test boots machines.
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let list = args.flag("--list");
    let fast = args.flag("--fast");
    let names = args.words();
    args.finish()?;

    let rows = row::of_repository()?;
    check(&sh::root(), &rows)?;
    let mut mutants = rows.mutants;
    for name in &names {
        ensure!(mutants.iter().any(|mutant| mutant.name.contains(name)), "no mutant is called {name:?}");
    }
    mutants.retain(|mutant| names.is_empty() || names.iter().any(|name| mutant.name.contains(name)));
    let all = mutants.len();
    mutants.retain(|mutant| !(fast && mutant.test.boots_machines()));
    if fast && mutants.len() < all {
        println!("--fast: {} mutants whose test boots machines are left out", all - mutants.len());
    }
    if list {
        for mutant in &mutants {
            println!("{:44} {}\n{:44} {}", mutant.name, mutant.protects, "", mutant.test);
            if let Some(scenario) = &mutant.scenario {
                println!("{:44} scenario: {scenario}", "");
            }
        }
        println!("mutants: {} listed", mutants.len());
        return Ok(());
    }
    ensure!(!mutants.is_empty(), "there is no mutant to run");
    ensure!(
        deps::is_root(),
        "the tests make loop devices and network namespaces: run them as root (sudo -E cargo xtask mutants)"
    );
    deps::ensure(&[deps::BUILD, deps::UNIT])?;
    if mutants.iter().any(|mutant| mutant.test.boots_machines()) {
        deps::ensure(&[deps::IMAGE, deps::LAB, deps::JUDGES])?;
    }

    let runner = Runner::prepare()?;
    // One after the other through each crate: the compiler keeps what it can.
    mutants.sort_by(|a, b| a.test.to_string().cmp(&b.test.to_string()).then(a.name.cmp(&b.name)));
    are_green(&runner, &mutants)?;
    let verdicts = try_all(&runner, &mutants)?;
    conclude(&mutants, &verdicts)
}

/// Every row applies and gives Rust that parses, the tests that they name exist, and every invariant has a row.
fn check(root: &Path, rows: &Rows) -> Result<()> {
    let sources = Sources::of(root)?;
    let mut wrong = Vec::new();
    for mutant in &rows.mutants {
        wrong.extend(check_row(root, &sources, mutant).err().map(|error| format!("{error:#}")));
    }
    let names: BTreeSet<&str> = rows.mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    let read =
        |file: &str| fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"));
    let mapping = read(&format!("{}/invariants.toml", row::DIR))?;
    wrong.extend(
        invariants::check(&read("ARCHITECTURE.md")?, &mapping, &names)
            .err()
            .map(|error| format!("{error:#}")),
    );
    if !wrong.is_empty() {
        bail!("the rows of {} do not fit the code:\n{}", row::DIR, wrong.join("\n"));
    }
    Ok(())
}

/// One row applies, gives Rust that parses, and names a test that exists.
fn check_row(root: &Path, sources: &Sources, mutant: &Mutant) -> Result<()> {
    for (file, text) in mutant.files(root, sources)? {
        parses(&file, &text).with_context(|| mutant.label())?;
    }
    named::check(&mutant.test, sources).with_context(|| mutant.label())
}

fn parses(file: &Path, text: &str) -> Result<()> {
    if file.extension() != Some("rs".as_ref()) {
        return Ok(());
    }
    syn::parse_file(text)
        .map(drop)
        .map_err(|error| anyhow!("the mutant of {} is no Rust: {error}", file.display()))
}

/// Every named test passes before anything is taken out.
fn are_green(runner: &Runner, mutants: &[Mutant]) -> Result<()> {
    // The last one's limits serve for all that name the same test: the longest.
    let mut tests: BTreeMap<String, &Mutant> = BTreeMap::new();
    for mutant in mutants {
        let known = tests.entry(mutant.test.to_string()).or_insert(mutant);
        if mutant.limit > known.limit {
            *known = mutant;
        }
    }
    let total = tests.len();
    let mut red = Vec::new();
    for (index, (test, mutant)) in tests.into_iter().enumerate() {
        let begun = Instant::now();
        let verdict = runner.judge(&format!("unmutated-{}", index + 1), &mutant.test, false, mutant.limit)?;
        println!(
            "unmutated {}/{total}: {test}: {} ({} s)",
            index + 1,
            green(&verdict),
            begun.elapsed().as_secs()
        );
        if verdict != Verdict::Passed {
            red.push(format!("{test}: {}", green(&verdict)));
        }
    }
    if !red.is_empty() {
        bail!("these tests are not green before anything is taken out:\n  {}", red.join("\n  "));
    }
    Ok(())
}

fn green(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "green".to_owned(),
        Verdict::Failed(tests) => format!("RED: {}", tests.join(", ")),
        Verdict::Hung(seconds) => format!("RED: did not end within {seconds} s"),
        Verdict::Broken(why) => format!("RED: {why}"),
    }
}

/// Each mutant with what came of it and the seconds it took.
fn try_all(runner: &Runner, mutants: &[Mutant]) -> Result<Vec<(Verdict, u64)>> {
    let mut verdicts = Vec::new();
    for (index, mutant) in mutants.iter().enumerate() {
        let begun = Instant::now();
        let applied = runner.tree().apply(mutant)?;
        let verdict = runner.judge(&mutant.name, &mutant.test, mutant.image, mutant.limit);
        applied.take_back().with_context(|| format!("cannot take {} back", mutant.name))?;
        let verdict = verdict.with_context(|| format!("cannot try {}", mutant.name))?;
        let seconds = begun.elapsed().as_secs();
        let (word, detail) = mutant.outcome(&verdict);
        println!("{}/{} {word:8} {} ({seconds} s): {detail}", index + 1, mutants.len(), mutant.name);
        verdicts.push((verdict, seconds));
    }
    Ok(verdicts)
}

/// The table, the last line, and whether the task succeeds.
fn conclude(mutants: &[Mutant], verdicts: &[(Verdict, u64)]) -> Result<()> {
    let (mut caught, mut survived, mut errors) = (0, 0, 0);
    println!("\n{:8} {:>5}  {:44} protects", "", "s", "mutant");
    for (mutant, (verdict, seconds)) in mutants.iter().zip(verdicts) {
        let (word, detail) = mutant.outcome(verdict);
        println!("{word:8} {seconds:>5}  {:44} {}", mutant.name, mutant.protects);
        match word {
            "caught" => caught += 1,
            "SURVIVED" => survived += 1,
            _ => errors += 1,
        }
        if word == "caught" {
            println!("{:15} {:44}   by {detail}", "", "");
        } else {
            println!(
                "{:15} {:44}   {}: {detail}; see target/mutants/log/{}.log",
                "", "", mutant.test, mutant.name
            );
        }
    }
    if errors > 0 {
        println!("errors: {errors} (a mutant that does not compile, a test that did not run, or a hang)");
    }
    println!("mutants: {caught} caught, {survived} survived");
    ensure!(survived == 0 && errors == 0, "{survived} mutants survived and {errors} could not be judged");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What issue 2 asks for by name.
    const SCENARIOS: [&str; 13] = [
        "controller killed in the middle of an erase",
        "node power-cut in the middle of an erase",
        "a disk that returns write errors",
        "a read-only disk",
        "wrong agent token",
        "heartbeat of an unknown node",
        "two agents claiming one node",
        "bad input: unknown node",
        "bad input: unknown verb",
        "bad input: malformed JSON",
        "bad input: wrong microversion",
        "bad input: patch of a read-only field",
        "bad input: duplicate MAC",
    ];

    /// Here too, in seconds, and not only in the long run.
    #[test]
    fn rows_fit_the_code_name_tests_that_exist_and_cover_the_invariants() {
        check(&sh::root(), &row::of_repository().unwrap()).unwrap_or_else(|error| panic!("{error:#}"));
    }

    #[test]
    fn a_row_that_does_not_fit_is_named_with_what_was_looked_for() {
        let row = |find: &str, replace: &str, test: &str| Mutant {
            name: "x".into(),
            protects: String::new(),
            scenario: None,
            test: command::TestCommand::parse(test).unwrap(),
            image: false,
            hang_is_caught: false,
            limit: std::time::Duration::ZERO,
            edits: vec![edit::Edit {
                place: Some("xtask::mutants::parses".into()),
                file: None,
                find: find.into(),
                replace: replace.into(),
                nth: None,
            }],
            file: "xtask.toml".into(),
        };
        let sources = Sources::of(&sh::root()).unwrap();
        let checked =
            |row: &Mutant| check_row(&sh::root(), &sources, row).map_err(|error| format!("{error:#}"));
        let test = "cargo test -p xtask a_row_that_does_not_fit_is_named_with_what_was_looked_for";
        assert_eq!(checked(&row("return Ok(())", "", test)), Ok(()));
        assert_eq!(
            checked(&row("no_such_token", "", test)).unwrap_err(),
            "x (tests/mutants/xtask.toml) no longer applies: bring the row up to date: xtask::mutants::parses: looked \
             for `no_such_token`: found 0 places, wanted 1"
        );
        assert!(checked(&row("return Ok(())", "fn fn", test)).unwrap_err().contains("is no Rust"));
        assert!(
            checked(&row("return Ok(())", "", &format!("{test}_x")))
                .unwrap_err()
                .contains("there is no `fn ")
        );
    }

    #[test]
    fn every_scenario_of_the_issue_has_a_mutant() {
        let mutants = row::of_repository().unwrap().mutants;
        let named: Vec<&str> = mutants.iter().filter_map(|mutant| mutant.scenario.as_deref()).collect();
        for scenario in SCENARIOS {
            assert!(named.contains(&scenario), "no mutant for {scenario:?}");
        }
        for name in named {
            assert!(SCENARIOS.contains(&name), "{name:?} is no scenario of the issue");
        }
    }
}
