//! The rows of `tests/mutants/*.toml`, one for each protection; `tests/mutants/README.md` explains the fields.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::command::TestCommand;
use super::edit::{self, Edit};
use super::items::Sources;
use crate::sh;

/// Where the rows are, from the root of the repository.
pub const DIR: &str = "tests/mutants";

/// What does not hold rows of protections: see [`super::invariants`].
const OTHERS: [&str; 1] = ["invariants.toml"];

/// One protection, and the mutant that lacks it.
#[derive(Debug, PartialEq)]
pub struct Mutant {
    /// Unique among all files.
    pub name: String,
    /// One sentence: what is protected.
    pub protects: String,
    /// The scenario of issue 2 that it belongs to.
    pub scenario: Option<String>,
    /// The test that must turn red.
    pub test: TestCommand,
    /// The agent in the ramdisk must be built again.
    pub image: bool,
    /// The test may hang instead of failing.
    pub hang_is_caught: bool,
    /// Time for the test.
    pub limit: Duration,
    /// What takes the protection out.
    pub edits: Vec<Edit>,
    /// The name of its file.
    pub file: String,
}

/// All rows.
#[derive(Debug, Default)]
pub struct Rows {
    /// By name.
    pub mutants: Vec<Mutant>,
    /// Protections that another row has, too.
    pub duplicates: Vec<Duplicate>,
}

/// A protection that has no row of its own.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duplicate {
    /// Its name.
    pub name: String,
    /// The row that has it.
    pub of: String,
    /// Why the two are the same.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    protection: Vec<Row>,
    #[serde(default)]
    duplicate: Vec<Duplicate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    sentence: String,
    place: Option<String>,
    file: Option<PathBuf>,
    find: String,
    replace: String,
    nth: Option<usize>,
    #[serde(default)]
    also: Vec<Edit>,
    test: String,
    scenario: Option<String>,
    #[serde(default)]
    image: bool,
    #[serde(default)]
    hang: bool,
    limit: Option<u64>,
}

/// All rows of a directory.
///
/// # Errors
/// When a file is not understood or two rows have one name.
pub fn read_all(dir: &Path) -> Result<Rows> {
    let mut rows = Rows::default();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_none_or(|extension| extension != "toml") || OTHERS.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        parse(&name, &text, &mut rows).with_context(|| format!("{DIR}/{name}"))?;
    }
    rows.mutants.sort_by(|a, b| a.name.cmp(&b.name));
    let twice = rows.mutants.windows(2).find(|two| two[0].name == two[1].name);
    ensure!(twice.is_none(), "two rows are called {}", twice.map_or("", |two| two[0].name.as_str()));
    for duplicate in &rows.duplicates {
        let known = |name: &str| rows.mutants.iter().any(|mutant| mutant.name == name);
        ensure!(
            known(&duplicate.of),
            "{} is a duplicate of {}, which is no row",
            duplicate.name,
            duplicate.of
        );
        ensure!(!known(&duplicate.name), "{} is a duplicate and a row", duplicate.name);
    }
    Ok(rows)
}

fn parse(file: &str, text: &str, rows: &mut Rows) -> Result<()> {
    let File { protection, duplicate } = toml::from_str(text)?;
    rows.duplicates.extend(duplicate);
    for row in protection {
        let test = TestCommand::parse(&row.test).with_context(|| row.name.clone())?;
        let first =
            Edit { place: row.place, file: row.file, find: row.find, replace: row.replace, nth: row.nth };
        let mut edits = row.also;
        for edit in edits.iter_mut().filter(|edit| edit.place.is_none() && edit.file.is_none()) {
            (edit.place, edit.file) = (first.place.clone(), first.file.clone());
        }
        edits.insert(0, first);
        rows.mutants.push(Mutant {
            name: row.name,
            protects: row.sentence,
            scenario: row.scenario,
            limit: row.limit.map_or(test.limit(), Duration::from_secs),
            test,
            image: row.image,
            hang_is_caught: row.hang,
            edits,
            file: file.to_owned(),
        });
    }
    Ok(())
}

impl Mutant {
    /// The files that the mutant changes, with their texts in it.
    ///
    /// # Errors
    /// When a place is not found, or found more than once.
    pub fn files(&self, root: &Path, sources: &Sources) -> Result<Vec<(PathBuf, String)>> {
        let changes = self.edits.iter().map(|edit| edit.locate(root, sources)).collect::<Result<_>>();
        changes
            .and_then(edit::changed)
            .with_context(|| format!("{} no longer applies: bring the row up to date", self.label()))
    }

    /// The name with the file that it is in.
    pub fn label(&self) -> String {
        format!("{} ({DIR}/{})", self.name, self.file)
    }

    /// `caught`, `SURVIVED` or `ERROR`, with the reason.
    pub fn outcome(&self, verdict: &super::judge::Verdict) -> (&'static str, String) {
        use super::judge::Verdict;
        match verdict {
            Verdict::Failed(tests) => ("caught", tests.join(", ")),
            Verdict::Passed => ("SURVIVED", "passes without the protection".to_owned()),
            Verdict::Hung(seconds) if self.hang_is_caught => ("caught", format!("no end within {seconds} s")),
            Verdict::Hung(seconds) => ("ERROR", format!("did not end within {seconds} s")),
            Verdict::Broken(why) => ("ERROR", why.clone()),
        }
    }
}

/// Those of the repository.
pub fn of_repository() -> Result<Rows> {
    read_all(&sh::root().join(DIR))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "[[protection]]\nname = 'n'\nsentence = 's'\nplace = 'api::a'\nfind = 'x'\nreplace = ''\ntest = 'cargo \
                       test -p api --lib a'\n";

    fn parsed(text: &str) -> Result<Rows> {
        let mut rows = Rows::default();
        parse("api.toml", text, &mut rows).map(|()| rows)
    }

    #[test]
    fn a_row_is_read() {
        let text = format!("{ROW}hang = true\nlimit = 5\nalso = [{{ find = 'y', replace = 'z' }}]\n");
        let rows = parsed(&text).unwrap();
        let mutant = &rows.mutants[0];
        assert_eq!(
            (mutant.name.as_str(), mutant.protects.as_str(), mutant.file.as_str()),
            ("n", "s", "api.toml")
        );
        assert!(mutant.hang_is_caught && !mutant.image && mutant.limit == Duration::from_secs(5));
        assert_eq!(mutant.edits.len(), 2);
        assert!(mutant.edits.iter().all(|edit| edit.place.as_deref() == Some("api::a")));
    }

    #[test]
    fn what_is_not_understood_is_rejected() {
        for (text, said) in [
            (ROW.replace("sentence", "sentense"), "sentense"),
            (ROW.replace("name = 'n'\n", ""), "name"),
            (ROW.replace("cargo test", "rm"), "neither"),
        ] {
            let error = format!("{:#}", parsed(&text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn names_are_unique_and_duplicates_name_a_row() {
        let dir = std::env::temp_dir().join(format!("anneal-rows-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let duplicate = |name: &str, of: &str| {
            format!("{ROW}[[duplicate]]\nname = '{name}'\nof = '{of}'\nreason = 'r'\n")
        };
        for (text, said) in [
            (format!("{ROW}{ROW}"), "two rows are called n"),
            (duplicate("d", "m"), "which is no row"),
            (duplicate("n", "n"), "a duplicate and a row"),
        ] {
            fs::write(dir.join("a.toml"), text).unwrap();
            let error = format!("{:#}", read_all(&dir).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        fs::write(dir.join("a.toml"), duplicate("d", "n")).unwrap();
        assert_eq!(read_all(&dir).unwrap().duplicates.len(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
