//! The command that runs the test of a protection.
//!
//! It is `cargo test -p CRATE [--test FILE|--lib|--bin NAME] NAME [--ignored]` or `machines --filter NAME` or
//! `kill --filter NAME`.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;

use crate::args::Args;
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
    /// `cargo test -p PACKAGE TARGET FILTER [-- --ignored]`
    Cargo {
        package: String,
        /// Arguments that choose what to build of it: `--test cleaning`.
        target: Vec<String>,
        /// With `--ignored`: it runs only where it is asked for.
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

    /// It goes through thousands of simulated worlds or boots machines, and takes much longer when it is not optimized.
    pub fn wants_optimization(&self) -> bool {
        !matches!(&self.suite, Suite::Cargo { package, .. } if package != "explore" && package != "sim")
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
            Suite::Cargo { package, target, .. } => {
                workspace.dir(package)?;
                match &target[..] {
                    [flag, program] if flag == "--test" => format!("{package}::{program}::"),
                    _ => format!("{package}::"),
                }
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
        let suite = match words[..] {
            ["machines", "--filter", _] => Suite::Machines,
            ["kill", "--filter", _] => Suite::Kill,
            ["cargo", "test", ..] => return Self::parse_cargo(&words[2..]).context(text.to_owned()),
            _ => bail!(
                "{text:?} is neither `cargo test …` nor `machines --filter NAME` nor `kill --filter NAME`"
            ),
        };
        Ok(Self { suite, filter: words[2].to_owned() })
    }

    fn parse_cargo(words: &[&str]) -> Result<Self> {
        let mut args = Args::new(words.iter().map(|word| (*word).to_owned()).collect());
        let package = args.option("-p")?.context("names no crate")?;
        let ignored = args.flag("--ignored");
        let mut target: Vec<String> = args.flag("--lib").then(|| "--lib".to_owned()).into_iter().collect();
        for flag in ["--test", "--bin"] {
            target.extend(args.option(flag)?.into_iter().flat_map(|name| [flag.to_owned(), name]));
        }
        let filters = args.words();
        args.finish()?;
        let [filter] =
            <[String; 1]>::try_from(filters).map_err(|all| anyhow!("names {} tests", all.len()))?;
        Ok(Self { suite: Suite::Cargo { package, target, ignored }, filter })
    }
}

impl fmt::Display for TestCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filter = &self.filter;
        match &self.suite {
            Suite::Cargo { package, target, ignored } => {
                let target: String = target.iter().map(|word| format!("{word} ")).collect();
                let ignored = if *ignored { " --ignored" } else { "" };
                write!(f, "cargo test -p {package} {target}{filter}{ignored}")
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
            ("cargo test -p block", "names 0 tests"),
            ("cargo test -p block --workspace x", "unknown argument \"--workspace\""),
            ("cargo test -p block one two", "names 2 tests"),
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
