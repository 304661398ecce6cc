//! What became of mutants, as cargo-mutants reports it, and which survivors are explained.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::choose::Mutant;

/// A test failed with it.
const CAUGHT: &str = "CaughtMutant";
/// The tests did not end with it.
const TIMEOUT: &str = "Timeout";
/// The tests passed with it.
pub const MISSED: &str = "MissedMutant";
/// It does not compile.
const UNVIABLE: &str = "Unviable";

/// The results of `outcomes.json`, by the names of the mutants.
pub fn parse(json: &str) -> Result<BTreeMap<String, String>> {
    let report: Value = serde_json::from_str(json).context("the report of cargo mutants")?;
    let mut outcomes = BTreeMap::new();
    for outcome in report["outcomes"].as_array().context("the report of cargo mutants has no outcomes")? {
        let summary = outcome["summary"].as_str().context("an outcome without a summary")?;
        match outcome["scenario"]["Mutant"]["name"].as_str() {
            Some(name) => drop(outcomes.insert(name.to_owned(), summary.to_owned())),
            None => ensure!(summary == "Success", "the tests do not pass without a mutant: {summary}"),
        }
    }
    Ok(outcomes)
}

/// Why survivors cannot be caught, by their names without the place: lines `NAME => WHY`; `#` begins a comment.
pub fn explanations(text: &str) -> Result<BTreeMap<String, String>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let (name, why) = line.split_once(" => ").with_context(|| format!("not NAME => WHY: {line}"))?;
        ensure!(!why.trim().is_empty(), "no reason: {line}");
        Ok((name.to_owned(), why.to_owned()))
    });
    pairs.collect()
}

/// How many mutants had which end.
#[derive(Debug, Default, PartialEq)]
pub struct Summary {
    caught: usize,
    missed: usize,
    unviable: usize,
    untried: usize,
}

impl Summary {
    /// Of these mutants.
    pub fn of(mutants: &[Mutant], outcomes: &BTreeMap<String, String>) -> Self {
        let mut summary = Self::default();
        for mutant in mutants {
            match outcomes.get(&mutant.name).map(String::as_str) {
                Some(CAUGHT | TIMEOUT) => summary.caught += 1,
                Some(MISSED) => summary.missed += 1,
                Some(UNVIABLE) => summary.unviable += 1,
                _ => summary.untried += 1,
            }
        }
        summary
    }

    /// Percent of what compiles that were caught, rounded down.
    pub fn percent(&self) -> usize {
        (100 * self.caught).checked_div(self.caught + self.missed).unwrap_or(0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caught, missed, unviable, untried } = self;
        write!(
            f,
            "{caught} caught, {missed} survived ({} % caught), {unviable} do not compile, {untried} not tried",
            self.percent()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(baseline: &str) -> String {
        let one = |name: &str, summary: &str| {
            format!(r#"{{"scenario": {{"Mutant": {{"name": "{name}"}}}}, "summary": "{summary}"}}"#)
        };
        let rows = [one("a", CAUGHT), one("b", MISSED), one("c", TIMEOUT), one("d", UNVIABLE)].join(",");
        format!(r#"{{"outcomes": [{{"scenario": "Baseline", "summary": "{baseline}"}}, {rows}]}}"#)
    }

    #[test]
    fn what_became_of_each_mutant_is_counted() {
        let outcomes = parse(&report("Success")).unwrap();
        let mutants = ["a", "b", "c", "d", "e"].map(|name| Mutant { name: name.into(), file: String::new() });
        let summary = Summary::of(&mutants, &outcomes);
        assert_eq!(summary, Summary { caught: 2, missed: 1, unviable: 1, untried: 1 });
        assert_eq!((summary.percent(), Summary::default().percent()), (66, 0));
        let error = parse(&report("Failure")).unwrap_err().to_string();
        assert!(error.contains("do not pass without a mutant"), "{error}");
    }

    #[test]
    fn an_explanation_has_a_name_and_a_reason() {
        let explained = explanations("# text\n\na.rs: replace a => it only logs\n").unwrap();
        assert_eq!(explained["a.rs: replace a"], "it only logs");
        for wrong in ["a.rs: replace a", "a.rs: replace a =>  "] {
            assert!(explanations(wrong).is_err(), "{wrong}");
        }
    }
}
