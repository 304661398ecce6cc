//! `docs/specs.md`: one row an id: `| ID | beginning of the sentence | verdict |`.
//!
//! ```text
//! tests: crate::path::name, machines:NAME, contract:NAME     executed tests that assert it
//! not normative: REASON                                      nothing in it could be tested here
//! superseded by ID: REASON          (or `issue N`)           something else holds instead
//! open: GROUP: WHAT                                          what is missing; `### GROUP` says what to build
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::sentences::is_id;

/// The table, from the root of the repository.
pub const FILE: &str = "docs/specs.md";

/// Ironic's measured defects, in rows of the same form.
pub const DEFECTS: &str = "docs/ironic-defects.md";

/// One row.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// The sentence's id.
    pub id: String,
    /// Its beginning.
    pub excerpt: String,
    /// What is said of it.
    pub verdict: Verdict,
}

/// What is said of a sentence.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// These tests assert it.
    Tests(Vec<String>),
    /// It asks for nothing.
    NotNormative,
    /// Something else holds instead.
    Superseded {
        /// An id, or `issue N`.
        by: String,
    },
    /// It does not hold yet, or no test shows it.
    Open {
        /// Which part of the work.
        group: String,
        /// What is missing.
        what: String,
    },
}

/// The rows of [`FILE`] or [`DEFECTS`], and the groups that have a section.
pub fn read(root: &Path, file: &str) -> Result<(Vec<Row>, BTreeSet<String>)> {
    parse(&fs::read_to_string(root.join(file))?).with_context(|| file.to_owned())
}

/// The same of a text.
pub fn parse(text: &str) -> Result<(Vec<Row>, BTreeSet<String>)> {
    let (mut rows, mut sections) = (Vec::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate() {
        let context = || format!("line {}", index + 1);
        if let Some(section) = line.strip_prefix("### ") {
            ensure!(sections.insert(section.trim().to_owned()), "{}: {section} is there twice", context());
        }
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            ensure!(!line.starts_with('|') || line.starts_with("|-"), "{}: not a row: {line}", context());
            continue;
        };
        let cells: Vec<_> = cells.split(" | ").collect();
        if cells[0] == "id" {
            continue;
        }
        let [id, excerpt, verdict] = cells[..] else { bail!("{}: not three cells", context()) };
        ensure!(is_id(id), "{}: {id:?} is no id", context());
        let verdict = verdict_of(verdict).with_context(context)?;
        rows.push(Row { id: id.to_owned(), excerpt: excerpt.to_owned(), verdict });
    }
    Ok((rows, sections))
}

fn verdict_of(text: &str) -> Result<Verdict> {
    let (kind, rest) = text.split_once(": ").unwrap_or((text, ""));
    let rest = rest.trim();
    ensure!(!rest.is_empty(), "{text:?} gives no names or no reason");
    Ok(match kind {
        "tests" => {
            let names: Vec<_> = rest.split(',').map(|name| name.trim().to_owned()).collect();
            ensure!(names.iter().all(|name| !name.is_empty()), "an empty name in {text:?}");
            Verdict::Tests(names)
        }
        "not normative" => Verdict::NotNormative,
        "open" => {
            let (group, what) = rest.split_once(": ").with_context(|| format!("{text:?} has no group"))?;
            Verdict::Open { group: group.to_owned(), what: what.to_owned() }
        }
        _ => match kind.strip_prefix("superseded by ") {
            Some(by) => Verdict::Superseded { by: by.to_owned() },
            None => bail!("{text:?} is no verdict"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_sections_are_read() {
        let text = "# T\n\n### deploy\n| id | sentence | verdict |\n|--|--|--|\n\
                    | AA-001 | One \\| two | tests: a::b, machines:c |\n| AA-002 | x | open: deploy: d: e |\n\
                    | AA-003 | x | superseded by issue 3: f |\n";
        let (rows, sections) = parse(text).unwrap();
        assert_eq!(sections, BTreeSet::from(["deploy".to_owned()]));
        assert_eq!((rows[0].id.as_str(), rows[0].excerpt.as_str()), ("AA-001", "One \\| two"));
        assert_eq!(rows[0].verdict, Verdict::Tests(vec!["a::b".into(), "machines:c".into()]));
        assert_eq!(rows[1].verdict, Verdict::Open { group: "deploy".into(), what: "d: e".into() });
        assert_eq!(rows[2].verdict, Verdict::Superseded { by: "issue 3".into() });
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (row, word) in [
            ("| AA-001 | x | tests: |", "no names"),
            ("| AA-001 | x | tests: a,, b |", "empty name"),
            ("| AA-001 | x | not normative |", "no reason"),
            ("| AA-001 | x | open: deploy |", "no group"),
            ("| AA-001 | x | done: y |", "is no verdict"),
            ("| AA-1 | x | not normative: y |", "is no id"),
            ("| AA-001 | x |", "not three cells"),
            ("|AA-001|x|not normative: y|", "not a row"),
        ] {
            let error = format!("{:#}", parse(row).unwrap_err());
            assert!(error.contains(word), "{row}: {error}");
        }
    }
}
