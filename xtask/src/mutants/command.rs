//! The command that runs the test of a protection.
//!
//! It is `cargo test -p CRATE [--test FILE|--lib|--bin NAME] NAME [--ignored]` or `machines --filter NAME` or
//! `kill --filter NAME`.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Limit of a cargo test: most take less than a second.
const CARGO_LIMIT: Duration = Duration::from_secs(180);
/// Limit of a scenario that boots nodes, on two shared cores without KVM.
const MACHINES_LIMIT: Duration = Duration::from_secs(900);
/// Limit of a story of `tests/kill`: in a mutant many of its runs wait until their own limit.
const KILL_LIMIT: Duration = Duration::from_secs(600);

/// A test that must turn red.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestCommand {
    /// `cargo test SELECTION FILTER [-- --ignored]`
    Cargo {
        /// Arguments that choose what to build: `-p conductor --test cleaning`.
        selection: Vec<String>,
        /// Part of the test's path.
        filter: String,
        /// The test is marked `#[ignore]`.
        ignored: bool,
    },
    /// A scenario of `tests/machines`.
    Machines {
        /// Part of the scenario's name.
        filter: String,
    },
    /// A story of `tests/kill`.
    Kill {
        /// Part of the story's name.
        filter: String,
    },
}

impl TestCommand {
    /// Part of the name of the test.
    pub fn filter(&self) -> &str {
        match self {
            Self::Cargo { filter, .. } | Self::Machines { filter } | Self::Kill { filter } => filter,
        }
    }

    /// It boots machines, and takes minutes.
    pub fn boots_machines(&self) -> bool {
        matches!(self, Self::Machines { .. })
    }

    /// Time for the test, without its build, where the row gives none.
    pub fn limit(&self) -> Duration {
        match self {
            Self::Cargo { .. } => CARGO_LIMIT,
            Self::Machines { .. } => MACHINES_LIMIT,
            Self::Kill { .. } => KILL_LIMIT,
        }
    }

    /// # Errors
    /// When the text is none of the three commands.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if let ["machines", "--filter", filter] = words[..] {
            return Ok(Self::Machines { filter: filter.to_owned() });
        }
        if let ["kill", "--filter", filter] = words[..] {
            return Ok(Self::Kill { filter: filter.to_owned() });
        }
        let ["cargo", "test", rest @ ..] = &words[..] else {
            bail!("{text:?} is neither `cargo test …` nor `machines --filter NAME` nor `kill --filter NAME`");
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
        ensure!(selection.iter().any(|word| word == "-p"), "{text:?} names no crate (-p)");
        Ok(Self::Cargo {
            selection,
            filter: filter.with_context(|| format!("{text:?} names no test"))?,
            ignored,
        })
    }
}

impl fmt::Display for TestCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cargo { selection, filter, ignored } => {
                write!(
                    f,
                    "cargo test {} {filter}{}",
                    selection.join(" "),
                    if *ignored { " --ignored" } else { "" }
                )
            }
            Self::Machines { filter } => write!(f, "machines --filter {filter}"),
            Self::Kill { filter } => write!(f, "kill --filter {filter}"),
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
        assert!(machines.boots_machines() && machines.limit() == MACHINES_LIMIT && machines.filter() == "y");
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
}
