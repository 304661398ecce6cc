//! What a patch file says before its first `diff` or `---` line.
//!
//! ```text
//! Protects: a success whose record says otherwise is not believed
//! Scenario: controller killed mid-erase             (those that issue 2 asks for by name)
//! Test: cargo test -p conductor --test cleaning a_success_whose_report_says_otherwise_is_not_believed
//! Image: yes                                        (the agent in the ramdisk is part of the mutant)
//! Hang: caught                                      (a test that does not end counts as red)
//! Limit: 300                                        (seconds for the test, without its build)
//! ```
//!
//! `Test:` is `cargo test -p CRATE [--test FILE|--lib|--bin NAME] NAME [--ignored]` or
//! `machines --filter NAME` or `kill --filter NAME`.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Where the patches are, from the root of the repository.
pub const DIR: &str = "tests/mutants";

/// Limit of a cargo test: most take less than a second.
const CARGO_LIMIT: Duration = Duration::from_secs(180);
/// Limit of a scenario that boots nodes, on two shared cores without KVM.
const MACHINES_LIMIT: Duration = Duration::from_secs(900);

/// Limit of a story of `tests/kill`: in a mutant many of its runs wait in vain.
const KILL_LIMIT: Duration = Duration::from_secs(600);

/// One patch.
#[derive(Debug, PartialEq)]
pub struct Mutant {
    /// The file's name without `.patch`.
    pub name: String,
    /// One sentence: what is lost with the patch.
    pub protects: String,
    /// The scenario of the issue that it belongs to.
    pub scenario: Option<String>,
    /// The test that must turn red.
    pub test: TestCommand,
    /// The agent in the ramdisk must be built again.
    pub image: bool,
    /// The test may hang instead of failing.
    pub hang_is_caught: bool,
    /// Time for the test.
    pub limit: Duration,
}

/// A test that a patch names.
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

    fn parse(text: &str) -> Result<Self> {
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

/// Every patch of a directory, by name. A file that is no patch or whose header is wrong is an error.
pub fn read_all(dir: &Path) -> Result<Vec<Mutant>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut mutants = Vec::new();
    for entry in entries {
        let patch = entry?.path();
        if patch.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let text = fs::read_to_string(&patch).with_context(|| format!("cannot read {}", patch.display()))?;
        mutants.push(parse(&patch, &text).with_context(|| format!("header of {}", patch.display()))?);
    }
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutants)
}

fn parse(patch: &Path, text: &str) -> Result<Mutant> {
    let name = patch.file_stem().and_then(|name| name.to_str()).context("no name")?.to_owned();
    let (mut protects, mut scenario, mut test, mut limit) = (None, None, None, None);
    let (mut image, mut hang_is_caught) = (false, false);
    let mut lines = text.lines();
    for line in lines.by_ref().take_while(|line| !line.starts_with("diff ") && !line.starts_with("--- ")) {
        if line.trim().is_empty() {
            continue;
        }
        let (key, value) = line.split_once(": ").with_context(|| format!("{line:?} is no `Key: value`"))?;
        match (key, value.trim()) {
            ("Protects", value) => protects = Some(value.to_owned()),
            ("Scenario", value) => scenario = Some(value.to_owned()),
            ("Test", value) => test = Some(TestCommand::parse(value)?),
            ("Limit", value) => limit = Some(Duration::from_secs(value.parse().context("Limit")?)),
            ("Image", "yes") => image = true,
            ("Hang", "caught") => hang_is_caught = true,
            _ => bail!("{line:?} is not understood"),
        }
    }
    ensure!(lines.next().is_some(), "no diff follows");
    let test = test.context("no Test:")?;
    let usual = match test {
        TestCommand::Cargo { .. } => CARGO_LIMIT,
        TestCommand::Machines { .. } => MACHINES_LIMIT,
        TestCommand::Kill { .. } => KILL_LIMIT,
    };
    Ok(Mutant {
        name,
        protects: protects.context("no Protects:")?,
        scenario,
        test,
        image,
        hang_is_caught,
        limit: limit.unwrap_or(usual),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Protects: something\nTest: cargo test -p block --test engine a::b\n";

    fn parsed(text: &str) -> Result<Mutant> {
        parse(Path::new("dir/name.patch"), text)
    }

    #[test]
    fn a_header_is_read() {
        let mutant = parsed(&format!("{HEAD}Hang: caught\n\ndiff --git a/x b/x\n--- a/x\n")).unwrap();
        assert_eq!((mutant.name.as_str(), mutant.protects.as_str()), ("name", "something"));
        assert_eq!(mutant.test.to_string(), "cargo test -p block --test engine a::b");
        assert_eq!(mutant.test.filter(), "a::b");
        assert!(mutant.hang_is_caught && !mutant.image && mutant.scenario.is_none());
        let machines = parsed("Protects: x\nTest: machines --filter y\nImage: yes\n--- a\n+++ b\n").unwrap();
        let kill = parsed("Protects: x\nTest: kill --filter y\n--- a\n+++ b\n").unwrap();
        assert!(!kill.test.boots_machines() && kill.test.to_string() == "kill --filter y");
        assert!(machines.image && machines.test.boots_machines() && machines.limit == MACHINES_LIMIT);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (text, said) in [
            ("Test: machines --filter x\n--- a\n+++ b\n", "no Protects:"),
            ("Protects: x\n--- a\n+++ b\n", "no Test:"),
            (HEAD, "no diff"),
            ("Protects: x\nImage: perhaps\n--- a\n+++ b\n", "\"Image: perhaps\" is not understood"),
            ("Protects: x\nTest: rm -rf /\n--- a\n+++ b\n", "neither"),
            ("Protects: x\nTest: cargo test name\n--- a\n+++ b\n", "names no crate"),
            ("Protects: x\nTest: cargo test -p block\n--- a\n+++ b\n", "names no test"),
            (
                "Protects: x\nTest: cargo test -p block --workspace x\n--- a\n+++ b\n",
                "unexpected \"--workspace\"",
            ),
            ("Protects: x\nTest: cargo test -p block one two\n--- a\n+++ b\n", "unexpected \"two\""),
        ] {
            let error = format!("{:#}", parsed(text).unwrap_err());
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
