//! `docs/specs.md`: one row an id: `| ID | beginning of the sentence | verdict |`.
//!
//! ```text
//! tests: crate::path::name, machines:NAME, contract:NAME     executed tests that assert it
//! simulated: …                                               the same, about a machine, shown on simulated ones only
//! not normative: REASON                                      nothing in it could be tested here
//! superseded by ID: REASON          (or a file)              something else holds instead
//! differs: WHAT, decision NNNN                               both cannot be served: what is done instead
//! open: GROUP: WHAT                                          what is missing; `### GROUP` says what to build
//! ```
//!
//! The head of the table says how many sentences may be open: `Open sentences: at most N.`

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::sentences::is_id;

/// The table, from the root of the repository.
pub const FILE: &str = "docs/specs.md";

/// Ironic's measured defects, in rows of the same form.
pub const DEFECTS: &str = "docs/ironic-defects.md";

/// Begins the line with the number of sentences that may be open.
pub const CEILING: &str = "Open sentences: at most ";

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
    Tests {
        /// Their names.
        names: Vec<String>,
        /// The sentence is about a machine, and they run on simulated machines only.
        simulated: bool,
    },
    /// It asks for nothing.
    NotNormative,
    /// Something else holds instead.
    Superseded {
        /// An id, or a file.
        by: String,
    },
    /// It cannot be served together with what is done instead.
    Differs {
        /// Number of the decision: `0029`.
        decision: String,
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

/// How many sentences may be open, as the head of a text says.
pub fn ceiling(text: &str) -> Option<usize> {
    let rest = text.lines().find_map(|line| line.strip_prefix(CEILING))?;
    rest.trim_end().strip_suffix('.')?.parse().ok()
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
        "tests" | "simulated" => {
            let names: Vec<_> = rest.split(',').map(|name| name.trim().to_owned()).collect();
            ensure!(names.iter().all(|name| !name.is_empty()), "an empty name in {text:?}");
            Verdict::Tests { names, simulated: kind == "simulated" }
        }
        "differs" => {
            let number = rest.rsplit_once(", decision ").map(|(_, number)| number);
            let number =
                number.filter(|number| number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()));
            let number = number.with_context(|| format!("{text:?} does not end with \", decision NNNN\""))?;
            Verdict::Differs { decision: number.to_owned() }
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
                    | AA-003 | x | superseded by docs/a.md: f |\n\
                    | AA-004 | x | simulated: a::b |\n| AA-005 | x | differs: a, b, decision 0029 |\n";
        let (rows, sections) = parse(text).unwrap();
        assert_eq!(sections, BTreeSet::from(["deploy".to_owned()]));
        assert_eq!((rows[0].id.as_str(), rows[0].excerpt.as_str()), ("AA-001", "One \\| two"));
        let tests = |names: &[&str], simulated| Verdict::Tests {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            simulated,
        };
        assert_eq!(rows[0].verdict, tests(&["a::b", "machines:c"], false));
        assert_eq!(rows[1].verdict, Verdict::Open { group: "deploy".into(), what: "d: e".into() });
        assert_eq!(rows[2].verdict, Verdict::Superseded { by: "docs/a.md".into() });
        assert_eq!(rows[3].verdict, tests(&["a::b"], true));
        assert_eq!(rows[4].verdict, Verdict::Differs { decision: "0029".into() });
    }

    #[test]
    fn the_head_says_how_many_sentences_may_be_open() {
        assert_eq!(ceiling("# T\n\nOpen sentences: at most 12.\n"), Some(12));
        for text in
            ["", "Open sentences: at most many.", "  Open sentences: at most 1.", "Open sentences: at most 1"]
        {
            assert_eq!(ceiling(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (row, word) in [
            ("| AA-001 | x | tests: |", "no names"),
            ("| AA-001 | x | tests: a,, b |", "empty name"),
            ("| AA-001 | x | not normative |", "no reason"),
            ("| AA-001 | x | open: deploy |", "no group"),
            ("| AA-001 | x | done: y |", "is no verdict"),
            ("| AA-001 | x | differs: y |", "does not end with"),
            ("| AA-001 | x | differs: y, decision 29 |", "does not end with"),
            ("| AA-1 | x | not normative: y |", "is no id"),
            ("| AA-001 | x |", "not three cells"),
            ("|AA-001|x|not normative: y|", "not a row"),
        ] {
            let error = format!("{:#}", parse(row).unwrap_err());
            assert!(error.contains(word), "{row}: {error}");
        }
    }
}
