//! `cargo xtask mutants`: takes each protection out of a copy of the tree and shows that a test turns red.
//!
//! ```text
//! git ls-files ──► target/mutants/tree ──► every named test, unmutated: must be green
//!                        │
//!                        └─ for each tests/mutants/NAME.patch: apply ─► build ─► test ─► take back
//!                                          fails: ERROR ◄──┘    │         ├─ the named test failed: caught
//!                                        does not compile: ERROR ◄┘       └─ it passed: SURVIVED
//! ```
//!
//! A protection is something that only shows when things go wrong: a comparison, a refusal, an order of two
//! writes. A test that stays green without it does not test it. Only the failure of the test that the patch
//! names counts; a mutant that does not compile, a test that did not run and a hang are errors of the patch.

mod header;
mod judge;
mod runner;
mod tree;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::args::Args;
use crate::{deps, sh};
use header::Mutant;
use judge::Verdict;
use runner::Runner;

/// `cargo xtask mutants [NAME …] [--list] [--fast]`
///
/// A `NAME` takes every patch whose name contains it. `--list` only prints them, `--fast` leaves out those
/// whose test boots machines.
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let list = args.flag("--list");
    let fast = args.flag("--fast");
    let names = args.words();
    args.finish()?;

    let mut mutants = header::read_all(&sh::root().join(header::DIR))?;
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
        let applied = runner.tree().apply(&mutant.name)?;
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
        println!("errors: {errors} (a patch that does not compile, a test that did not run, or a hang)");
    }
    println!("mutants: {caught} caught, {survived} survived");
    ensure!(survived == 0 && errors == 0, "{survived} mutants survived and {errors} could not be judged");
    Ok(())
}

impl Mutant {
    /// `caught`, `SURVIVED` or `ERROR`, with what tells so.
    fn outcome(&self, verdict: &Verdict) -> (&'static str, String) {
        match verdict {
            Verdict::Failed(tests) => ("caught", tests.join(", ")),
            Verdict::Passed => ("SURVIVED", "passes without the protection".to_owned()),
            Verdict::Hung(seconds) if self.hang_is_caught => ("caught", format!("no end within {seconds} s")),
            Verdict::Hung(seconds) => ("ERROR", format!("did not end within {seconds} s")),
            Verdict::Broken(why) => ("ERROR", why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use header::TestCommand;
    use std::process::Command;

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

    fn git(args: &[&str]) -> bool {
        sh::succeeds(Command::new("git").current_dir(sh::root()).args(args))
    }

    /// Told here already, in a second, and not only by the long run.
    #[test]
    fn patches_fit_the_code_and_name_tests_that_exist() {
        for mutant in header::read_all(&sh::root().join(header::DIR)).unwrap() {
            let patch = format!("{}/{}.patch", header::DIR, mutant.name);
            assert!(
                git(&["apply", "--check", &patch]),
                "{patch} no longer fits the code: bring it up to date"
            );
            let name = mutant.test.filter();
            let wanted = match mutant.test {
                TestCommand::Cargo { .. } => format!("fn {}", name.rsplit("::").next().unwrap_or(name)),
                TestCommand::Machines { .. } | TestCommand::Kill { .. } => format!("name: \"{name}"),
            };
            assert!(git(&["grep", "--untracked", "-qF", &wanted, "--", "*.rs"]), "{patch}: no test {name}");
        }
    }

    #[test]
    fn every_scenario_of_the_issue_has_a_mutant() {
        let mutants = header::read_all(&sh::root().join(header::DIR)).unwrap();
        let named: Vec<&str> = mutants.iter().filter_map(|mutant| mutant.scenario.as_deref()).collect();
        for scenario in SCENARIOS {
            assert!(named.contains(&scenario), "no mutant for {scenario:?}");
        }
        for name in named {
            assert!(SCENARIOS.contains(&name), "{name:?} is no scenario of the issue");
        }
    }
}
