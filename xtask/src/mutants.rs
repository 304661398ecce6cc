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
mod pattern;
mod row;
pub mod runner;
mod tokens;
pub mod tree;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use fs_err as fs;

use crate::args::Args;
use crate::test_names::TestNames;
use crate::tracked::Workspace;
use crate::{deps, findings, sh};
use items::Items;
use judge::Verdict;
use row::Mutant;
use runner::Runner;

/// `cargo xtask mutants [NAME …] [--list] [--fast]`
///
/// A `NAME` takes every row whose name contains it. `--list` only prints them, `--fast` leaves out those
/// whose test boots machines.
pub fn run(mut args: Args) -> Result<()> {
    let list = args.flag("--list");
    let fast = args.flag("--fast");
    let names = args.words();
    args.finish()?;

    let mut mutants = row::read(&sh::root())?;
    let items = Items::of(Workspace::read(&sh::root())?);
    check(&items, &mutants)?;
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
            println!("{:44} {}\n{:44} {}", mutant.name, mutant.sentence, "", mutant.test);
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
    let verdicts = try_all(&runner, &mutants, &items)?;
    conclude(&mutants, &verdicts)
}

/// Every row applies and gives Rust that parses, the tests that they name exist, and every invariant has a row.
fn check(items: &Items, mutants: &[Mutant]) -> Result<()> {
    let tests = TestNames::of(&items.workspace);
    let read = |file: &str| fs::read_to_string(sh::root().join(file));
    let mapped = invariants::check(&read("ARCHITECTURE.md")?, &read(row::INVARIANTS)?, &row::names(mutants));
    let checked = mutants.iter().map(|mutant| check_row(items, &tests, mutant)).chain([mapped]);
    let wrong: Vec<String> = checked.filter_map(|checked| Some(format!("{:#}", checked.err()?))).collect();
    findings::none(&wrong, &format!("the rows of {} do not fit the code", row::DIR))
}

/// One row applies, gives Rust that parses, and names a test that exists.
fn check_row(items: &Items, tests: &TestNames, mutant: &Mutant) -> Result<()> {
    for (file, text) in mutant.files(items)? {
        parses(&file, &text).with_context(|| mutant.label())?;
    }
    mutant.test.ensure_exists(tests, &items.workspace).with_context(|| mutant.label())
}

fn parses(file: &str, text: &str) -> Result<()> {
    syn::parse_file(text).map(drop).map_err(|error| anyhow!("the mutant of {file} is no Rust: {error}"))
}

/// Every named test passes before anything is taken out.
fn are_green(runner: &Runner, mutants: &[Mutant]) -> Result<()> {
    // The last one's limits serve for all that name the same test: the longest.
    let mut tests: BTreeMap<String, &Mutant> = BTreeMap::new();
    for mutant in mutants {
        let known = tests.entry(mutant.test.to_string()).or_insert(mutant);
        if mutant.limit() > known.limit() {
            *known = mutant;
        }
    }
    let total = tests.len();
    let mut red = Vec::new();
    for (index, (test, mutant)) in (1..).zip(tests) {
        let begun = Instant::now();
        let verdict = runner.judge(&format!("unmutated-{index}"), &mutant.test, false, mutant.limit())?;
        let shown = match &verdict {
            Verdict::Passed => "green".to_owned(),
            Verdict::Failed(tests) => format!("RED: {}", tests.join(", ")),
            Verdict::Hung(seconds) => format!("RED: did not end within {seconds} s"),
            Verdict::Broken(why) => format!("RED: {why}"),
        };
        println!("unmutated {index}/{total}: {test}: {shown} ({} s)", begun.elapsed().as_secs());
        if verdict != Verdict::Passed {
            red.push(format!("{test}: {shown}"));
        }
    }
    findings::none(&red, "these tests are not green before anything is taken out")
}

/// Each mutant with what came of it and the seconds it took.
fn try_all(runner: &Runner, mutants: &[Mutant], items: &Items) -> Result<Vec<(Verdict, u64)>> {
    let mut verdicts = Vec::new();
    for (index, mutant) in mutants.iter().enumerate() {
        let begun = Instant::now();
        let tried = runner.tree().with(&mutant.files(items)?, &items.workspace.texts, || {
            runner.judge(&mutant.name, &mutant.test, mutant.image, mutant.limit())
        });
        let verdict = tried.flatten().with_context(|| format!("cannot try {}", mutant.name))?;
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
        println!("{word:8} {seconds:>5}  {:44} {}", mutant.name, mutant.sentence);
        match word {
            "caught" => caught += 1,
            "SURVIVED" => survived += 1,
            _ => errors += 1,
        }
        let why = match word {
            "caught" => format!("by {detail}"),
            _ => format!("{}: {detail}; see target/mutants/log/{}.log", mutant.test, mutant.name),
        };
        println!("{:15} {:44}   {why}", "", "");
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
        let items = Items::of(Workspace::read(&sh::root()).unwrap());
        check(&items, &row::read(&sh::root()).unwrap()).unwrap_or_else(|error| panic!("{error:#}"));
    }

    #[test]
    fn a_row_that_does_not_fit_is_named_with_what_was_looked_for() {
        let items = Items::of(Workspace::read(&sh::root()).unwrap());
        let tests = TestNames::of(&items.workspace);
        let test = "cargo test -p xtask a_row_that_does_not_fit_is_named_with_what_was_looked_for";
        let checked = |find: &str, replace: &str, test: &str| {
            let row = row::tests::row("xtask::mutants::try_all", find, replace, test);
            check_row(&items, &tests, &row).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(checked("verdicts.push($both)", "", test), Ok(()));
        assert_eq!(
            checked("no_such_token", "", test).unwrap_err(),
            "n (tests/mutants/a.toml) no longer applies: bring the row up to date: xtask::mutants::try_all: looked for \
             `no_such_token`: found 0 places, wanted 1"
        );
        for (replace, test, said) in
            [("fn fn", test.to_owned(), "is no Rust"), ("", format!("{test}_x"), "there is no test for")]
        {
            let error = checked("verdicts.push($both)", replace, &test).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn every_scenario_of_the_issue_has_a_mutant() {
        let mutants = row::read(&sh::root()).unwrap();
        let named: Vec<&str> = mutants.iter().filter_map(|mutant| mutant.scenario.as_deref()).collect();
        for scenario in SCENARIOS {
            assert!(named.contains(&scenario), "no mutant for {scenario:?}");
        }
        for name in named {
            assert!(SCENARIOS.contains(&name), "{name:?} is no scenario of the issue");
        }
    }
}
