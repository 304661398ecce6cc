//! What became of mutants, as cargo-mutants reports it, and which survivors are explained.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choose::Mutant;

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// A test failed with it.
    Caught,
    /// The tests did not end with it.
    Timeout,
    /// The tests passed with it.
    Missed,
    /// It does not compile.
    Unviable,
}

impl End {
    fn of(summary: &str) -> Result<Self> {
        Ok(match summary {
            "CaughtMutant" => Self::Caught,
            "Timeout" => Self::Timeout,
            "MissedMutant" => Self::Missed,
            "Unviable" => Self::Unviable,
            other => bail!("cargo mutants reports {other:?}"),
        })
    }
}

/// How each mutant ended, by its key, and on which commit: what is here is not tried again.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ends(BTreeMap<String, (End, String)>);

impl Ends {
    /// What earlier runs wrote; nothing when there was none.
    pub fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        serde_json::from_str(&fs::read_to_string(file)?).with_context(|| file.display().to_string())
    }

    /// Keeps one, and writes all.
    pub fn keep(&mut self, mutant: &Mutant, end: End, commit: &str, file: &Path) -> Result<()> {
        self.0.insert(mutant.key.clone(), (end, commit.to_owned()));
        Ok(fs::write(file, serde_json::to_string_pretty(&self.0)?)?)
    }

    /// Whether this one survived on this commit.
    pub fn survived_on(&self, mutant: &Mutant, commit: &str) -> bool {
        matches!(self.0.get(&mutant.key), Some((End::Missed, on)) if on == commit)
    }

    /// How this one ended.
    pub fn of(&self, mutant: &Mutant) -> Option<End> {
        self.0.get(&mutant.key).map(|(end, _)| *end)
    }
}

/// The results of `outcomes.json`, by the names of the mutants.
pub fn parse(json: &str) -> Result<BTreeMap<String, End>> {
    let report: Value = serde_json::from_str(json).context("the report of cargo mutants")?;
    let mut outcomes = BTreeMap::new();
    for outcome in report["outcomes"].as_array().context("the report of cargo mutants has no outcomes")? {
        let summary = outcome["summary"].as_str().context("an outcome without a summary")?;
        match outcome["scenario"]["Mutant"]["name"].as_str() {
            Some(name) => drop(outcomes.insert(name.to_owned(), End::of(summary)?)),
            None => ensure!(summary == "Success", "the tests do not pass without a mutant: {summary}"),
        }
    }
    Ok(outcomes)
}

/// Why survivors cannot be caught, by their keys: lines `NAME => WHY`; `#` begins a comment.
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
    timeouts: usize,
    missed: usize,
    unviable: usize,
    untried: usize,
}

impl Summary {
    /// Of these mutants.
    pub fn of(mutants: &[Mutant], ends: &Ends) -> Self {
        let mut summary = Self::default();
        for mutant in mutants {
            match ends.of(mutant) {
                Some(End::Caught) => summary.caught += 1,
                Some(End::Timeout) => summary.timeouts += 1,
                Some(End::Missed) => summary.missed += 1,
                Some(End::Unviable) => summary.unviable += 1,
                None => summary.untried += 1,
            }
        }
        summary
    }

    /// Percent of what compiles that were caught, rounded down.
    pub fn percent(&self) -> usize {
        let caught = self.caught + self.timeouts;
        (100 * caught).checked_div(caught + self.missed).unwrap_or(0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caught, timeouts, missed, unviable, untried } = self;
        write!(
            f,
            "{caught} caught, {timeouts} did not end, {missed} survived ({} % caught), {unviable} do not compile, {untried} not tried",
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
        let rows =
            [one("a", "CaughtMutant"), one("b", "MissedMutant"), one("c", "Timeout"), one("d", "Unviable")];
        let rows = rows.join(",");
        format!(r#"{{"outcomes": [{{"scenario": "Baseline", "summary": "{baseline}"}}, {rows}]}}"#)
    }

    #[test]
    fn what_cargo_mutants_reports_is_read() {
        let outcomes = parse(&report("Success")).unwrap();
        let expected = [("a", End::Caught), ("b", End::Missed), ("c", End::Timeout), ("d", End::Unviable)];
        assert_eq!(outcomes, expected.map(|(name, end)| (name.to_owned(), end)).into());
        let error = parse(&report("Failure")).unwrap_err().to_string();
        assert!(error.contains("do not pass without a mutant"), "{error}");
    }

    #[test]
    fn what_became_of_each_mutant_is_kept_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ends.json");
        let mut ends = Ends::read(&file).unwrap();
        let mutants = [1, 2, 3, 4, 5].map(|line| Mutant::at("a.rs", line, 1, "FnValue", ""));
        for (mutant, end) in mutants.iter().zip([End::Caught, End::Missed, End::Timeout, End::Unviable]) {
            ends.keep(mutant, end, "abc", &file).unwrap();
        }
        assert_eq!(Ends::read(&file).unwrap(), ends);
        let on = |commit| mutants.clone().map(|mutant| ends.survived_on(&mutant, commit));
        assert_eq!((on("abc"), on("abd")), ([false, true, false, false, false], [false; 5]));
        let summary = Summary::of(&mutants, &ends);
        assert_eq!(summary, Summary { caught: 1, timeouts: 1, missed: 1, unviable: 1, untried: 1 });
        assert_eq!((summary.percent(), Summary::default().percent()), (66, 0));
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
