//! The command that runs the test of a protection.
//!
//! It is `cargo test -p CRATE [--test FILE|--lib|--bin NAME] NAME [--ignored]` or `machines --filter NAME` or
//! `kill --filter NAME`.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::test_names::TestNames;
use crate::tracked::Workspace;

/// Limit of a cargo test: most take less than a second.
const CARGO_LIMIT: Duration = Duration::from_secs(180);
/// Limit of a scenario that boots nodes, on two shared cores without KVM.
const MACHINES_LIMIT: Duration = Duration::from_secs(900);
/// Limit of a story of `tests/kill`: in a mutant many of its runs wait until their own limit.
const KILL_LIMIT: Duration = Duration::from_secs(600);

/// A test that must turn red.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TestCommand {
    /// What runs it.
    pub suite: Suite,
    /// Part of its name.
    pub filter: String,
}

/// What runs a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suite {
    /// `cargo test SELECTION FILTER [-- --ignored]`
    Cargo {
        /// Arguments that choose what to build: `-p conductor --test cleaning`.
        selection: Vec<String>,
        /// The test is marked `#[ignore]`.
        ignored: bool,
    },
    /// A scenario of `tests/machines`.
    Machines,
    /// A story of `tests/kill`.
    Kill,
}

impl TryFrom<String> for TestCommand {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl TestCommand {
    /// It boots machines, and takes minutes.
    pub fn boots_machines(&self) -> bool {
        self.suite == Suite::Machines
    }

    /// Time for the test, without its build, where the row gives none.
    pub fn limit(&self) -> Duration {
        match self.suite {
            Suite::Cargo { .. } => CARGO_LIMIT,
            Suite::Machines => MACHINES_LIMIT,
            Suite::Kill => KILL_LIMIT,
        }
    }

    /// # Errors
    /// When there is no such test.
    pub fn ensure_exists(&self, names: &TestNames, workspace: &Workspace) -> Result<()> {
        let prefix = match &self.suite {
            Suite::Cargo { selection, .. } => {
                let value = |flag: &str| {
                    let at = selection.iter().position(|word| word == flag)?;
                    selection.get(at + 1)
                };
                let krate = value("-p").context("no crate")?;
                workspace.dir(krate)?;
                value("--test").map_or(format!("{krate}::"), |program| format!("{krate}::{program}::"))
            }
            Suite::Machines => "machines:".to_owned(),
            Suite::Kill => "kill:".to_owned(),
        };
        let exists = names.below(&prefix).any(|name| name.contains(&self.filter));
        ensure!(exists, "there is no test for `{self}`");
        Ok(())
    }

    /// # Errors
    /// When the text is none of the three commands.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let rest = match words[..] {
            ["machines", "--filter", filter] => {
                return Ok(Self { suite: Suite::Machines, filter: filter.to_owned() });
            }
            ["kill", "--filter", filter] => {
                return Ok(Self { suite: Suite::Kill, filter: filter.to_owned() });
            }
            ["cargo", "test", ..] => &words[2..],
            _ => bail!(
                "{text:?} is neither `cargo test …` nor `machines --filter NAME` nor `kill --filter NAME`"
            ),
        };
        let (mut selection, mut filter, mut ignored) = (Vec::new(), None, false);
        let mut rest = rest.iter();
        while let Some(&word) = rest.next() {
            match word {
                "-p" | "--test" | "--bin" => {
                    let value = rest.next().with_context(|| format!("{word} needs a value"))?;
                    selection.extend([word.to_owned(), (*value).to_owned()]);
                }
                "--lib" => selection.push(word.to_owned()),
                "--ignored" => ignored = true,
                _ if word.starts_with('-') || filter.is_some() => bail!("unexpected {word:?} in {text:?}"),
                _ => filter = Some(word.to_owned()),
            }
        }
        ensure!(selection.iter().any(|word| word == "-p"), "{text:?} names no crate");
        let filter = filter.with_context(|| format!("{text:?} names no test"))?;
        Ok(Self { suite: Suite::Cargo { selection, ignored }, filter })
    }
}

impl fmt::Display for TestCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filter = &self.filter;
        match &self.suite {
            Suite::Cargo { selection, ignored } => {
                let ignored = if *ignored { " --ignored" } else { "" };
                write!(f, "cargo test {} {filter}{ignored}", selection.join(" "))
            }
            Suite::Machines => write!(f, "machines --filter {filter}"),
            Suite::Kill => write!(f, "kill --filter {filter}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_and_written_alike() {
        for text in [
            "cargo test -p block --test engine a::b",
            "cargo test -p block --lib a --ignored",
            "machines --filter y",
            "kill --filter y",
        ] {
            assert_eq!(TestCommand::parse(text).unwrap().to_string(), text);
        }
        let machines = TestCommand::parse("machines --filter y").unwrap();
        assert!(machines.boots_machines() && machines.limit() == MACHINES_LIMIT && machines.filter == "y");
    }

    #[test]
    fn other_commands_are_rejected() {
        for (text, said) in [
            ("rm -rf /", "neither"),
            ("cargo test name", "names no crate"),
            ("cargo test -p block", "names no test"),
            ("cargo test -p block --workspace x", "unexpected \"--workspace\""),
            ("cargo test -p block one two", "unexpected \"two\""),
        ] {
            let error = format!("{:#}", TestCommand::parse(text).unwrap_err());
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_test_is_looked_for_in_its_crate() {
        let workspace = Workspace::read(&crate::sh::root()).unwrap();
        let names = TestNames::of(&workspace);
        let found = |text: &str| TestCommand::parse(text).unwrap().ensure_exists(&names, &workspace);
        found("cargo test -p xtask mutants::command::tests::a_test_is_looked_for_in_its_crate").unwrap();
        for text in [
            "cargo test -p model a_test_is_looked_for_in_its_crate",
            "cargo test -p xtask --test nosuch a_test_is_looked_for_in_its_crate",
            "cargo test -p nosuch a",
            "machines --filter nosuch",
            "kill --filter nosuch",
        ] {
            assert!(found(text).is_err(), "{text}");
        }
    }
}
