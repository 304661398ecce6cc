//! The rows of `tests/mutants/*.toml`, one for each protection; `tests/mutants/README.md` explains the fields.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::command::TestCommand;
use super::edit::{self, Edit};
use super::items::Items;
use super::judge::Verdict;
use crate::tracked::{self, Texts};

/// Where the rows are, from the root of the repository.
pub const DIR: &str = "tests/mutants";

/// What does not hold rows of protections: see [`super::invariants`].
pub const INVARIANTS: &str = "tests/mutants/invariants.toml";

/// One protection, and the mutant that lacks it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Unique among all files.
    pub name: String,
    /// What is protected.
    pub sentence: String,
    place: String,
    find: String,
    replace: String,
    /// Further edits.
    #[serde(default)]
    also: Vec<Edit>,
    /// The test that must turn red.
    pub test: TestCommand,
    /// The scenario of issue 2 that it belongs to.
    pub scenario: Option<String>,
    /// The agent in the ramdisk must be built again.
    #[serde(default)]
    pub image: bool,
    /// The test may hang instead of failing.
    #[serde(default)]
    hang: bool,
    /// Seconds for the test.
    limit: Option<u64>,
    /// The name of its file.
    #[serde(skip)]
    pub file: String,
}

/// A protection that has no row of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Duplicate {
    /// Its name.
    name: String,
    /// The row that has it.
    of: String,
    /// Why the two are the same.
    #[expect(dead_code, reason = "for the reader; a duplicate without one is rejected")]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    protection: Vec<Mutant>,
    #[serde(default)]
    duplicate: Vec<Duplicate>,
}

/// All rows of a checkout, by name.
///
/// # Errors
/// When a file is not understood or two rows have one name.
pub fn read(root: &Path) -> Result<Vec<Mutant>> {
    let is_rows = |path: &str| path.starts_with(DIR) && path.ends_with(".toml") && path != INVARIANTS;
    parse(&tracked::texts(root, is_rows)?)
}

fn parse(texts: &Texts) -> Result<Vec<Mutant>> {
    let mut mutants = BTreeMap::new();
    let mut duplicates = Vec::new();
    for (path, text) in texts {
        let File { protection, duplicate } = toml::from_str(text).with_context(|| path.clone())?;
        duplicates.extend(duplicate);
        for mutant in protection {
            let mutant = Mutant { file: path.clone(), ..mutant };
            let before = mutants.insert(mutant.name.clone(), mutant);
            ensure!(before.is_none(), "two rows are called {}", before.map_or(String::new(), |row| row.name));
        }
    }
    for Duplicate { name, of, .. } in &duplicates {
        ensure!(mutants.contains_key(of), "{name} is a duplicate of {of}, which is no row");
        ensure!(!mutants.contains_key(name), "{name} is a duplicate and a row");
    }
    Ok(mutants.into_values().collect())
}

impl Mutant {
    /// The files that the mutant changes, with their texts in it.
    ///
    /// # Errors
    /// When a place is not found, or found more than once.
    pub fn files(&self, items: &Items) -> Result<Texts> {
        let first = Edit { place: None, find: self.find.clone(), replace: self.replace.clone() };
        let edits = [&first].into_iter().chain(&self.also);
        let changes = edits.map(|edit| edit.locate(&self.place, items)).collect::<Result<_>>();
        changes
            .and_then(|changes| edit::changed(changes, &items.workspace.texts))
            .with_context(|| format!("{} no longer applies: bring the row up to date", self.label()))
    }

    /// The name with the file that it is in.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.file)
    }

    /// Time for the test, without its build.
    pub fn limit(&self) -> Duration {
        self.limit.map_or(self.test.limit(), Duration::from_secs)
    }

    /// `caught`, `SURVIVED` or `ERROR`, with the reason.
    pub fn outcome(&self, verdict: &Verdict) -> (&'static str, String) {
        match verdict {
            Verdict::Failed(tests) => ("caught", tests.join(", ")),
            Verdict::Passed => ("SURVIVED", "passes without the protection".to_owned()),
            Verdict::Hung(seconds) if self.hang => ("caught", format!("no end within {seconds} s")),
            Verdict::Hung(seconds) => ("ERROR", format!("did not end within {seconds} s")),
            Verdict::Broken(why) => ("ERROR", why.clone()),
        }
    }
}

/// The names of rows.
pub fn names(mutants: &[Mutant]) -> BTreeSet<&str> {
    mutants.iter().map(|mutant| mutant.name.as_str()).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A row that removes `find` from an item.
    pub fn row(place: &str, find: &str, replace: &str, test: &str) -> Mutant {
        let text = format!(
            "[[protection]]\nname = 'n'\nsentence = 's'\nplace = '{place}'\nfind = '{find}'\nreplace = '{replace}'\ntest = \
             '{test}'\n"
        );
        parse(&Texts::from([("tests/mutants/a.toml".to_owned(), text)])).unwrap().remove(0)
    }

    const ROW: &str = "[[protection]]\nname = 'n'\nsentence = 's'\nplace = 'api::a'\nfind = 'x'\nreplace = ''\ntest = 'cargo \
                       test -p api --lib a'\n";

    fn parsed(text: &str) -> Result<Vec<Mutant>> {
        parse(&Texts::from([("api.toml".to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_row_is_read() {
        let text = format!("{ROW}hang = true\nlimit = 5\nalso = [{{ find = 'y', replace = 'z' }}]\n");
        let mutant = parsed(&text).unwrap().remove(0);
        assert_eq!((mutant.name.as_str(), mutant.sentence.as_str()), ("n", "s"));
        assert_eq!(mutant.label(), "n (api.toml)");
        assert!(mutant.hang && !mutant.image && mutant.limit() == Duration::from_secs(5));
        assert_eq!((mutant.place.as_str(), mutant.also.len()), ("api::a", 1));
    }

    #[test]
    fn what_is_not_understood_is_rejected() {
        let duplicate = |name: &str, of: &str| {
            format!("{ROW}[[duplicate]]\nname = '{name}'\nof = '{of}'\nreason = 'r'\n")
        };
        for (text, said) in [
            (ROW.replace("sentence", "sentense"), "sentense"),
            (ROW.replace("name = 'n'\n", ""), "name"),
            (ROW.replace("cargo test", "rm"), "neither"),
            (format!("{ROW}{ROW}"), "two rows are called n"),
            (duplicate("d", "m"), "which is no row"),
            (duplicate("n", "n"), "a duplicate and a row"),
            (duplicate("d", "n").replace("reason", "reasons"), "reason"),
        ] {
            let error = format!("{:#}", parsed(&text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(parsed(&duplicate("d", "n")).unwrap().len(), 1);
    }
}
