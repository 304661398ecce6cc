//! `cargo xtask specs`: every sentence of the five specifications has one verdict, and what a verdict names exists.
//!
//! ```text
//! docs/specs/*.txt ◄── every byte ── docs/specs/sentences.tsv ── one row an id ──► docs/specs.md ── tests ──► the sources
//! ```
//!
//! An open row is no inconsistency: it is work. The check rejects a lost sentence, and a claim with a
//! test that does not exist.

mod named;
mod sentences;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::sh;
use named::Tests;
use sentences::Sentence;
use table::{Row, Verdict};

/// How many sentences got which verdict.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    tested: usize,
    not_normative: usize,
    superseded: usize,
    open: BTreeMap<String, usize>,
}

/// `cargo xtask specs [--open [GROUP]]`
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let list = args.flag("--open");
    let groups = args.words();
    args.finish()?;
    let root = sh::root();
    let texts = sentences::read(&root)?;
    let (rows, sections) = table::read(&root)?;
    let tests = Tests::of_workspace(&root)?;
    let counts = check(&texts, &rows, &sections, &tests)?;
    let defects = table::read_defects(&root)?;
    check_defects(&defects, &tests)?;
    if list {
        print_open(&rows, &groups);
    }
    let open: usize = counts.open.values().sum();
    println!(
        "specs: {} sentences: {} tested, {} not normative, {} superseded, {open} open",
        rows.len(),
        counts.tested,
        counts.not_normative,
        counts.superseded
    );
    println!("specs: {} defects of the real Ironic, each with its tests", defects.len());
    if open > 0 {
        let groups: Vec<_> = counts.open.iter().map(|(group, count)| format!("{group} {count}")).collect();
        println!("specs: open: {}", groups.join(", "));
    }
    Ok(())
}

/// What the table promises.
#[derive(Debug, Default, PartialEq)]
pub struct Named {
    /// The sentences that each named test asserts, by the test's name.
    pub tests: BTreeMap<String, Vec<String>>,
    /// Sentences that are open.
    pub open: usize,
}

/// The tests that the table names.
pub fn named() -> Result<Named> {
    let root = sh::root();
    let mut rows = table::read(&root)?.0;
    rows.extend(table::read_defects(&root)?);
    Ok(promises(&rows))
}

fn promises(rows: &[Row]) -> Named {
    let mut named = Named::default();
    for row in rows {
        match &row.verdict {
            Verdict::Tests(names) => {
                for name in names {
                    named.tests.entry(name.clone()).or_default().push(row.id.clone());
                }
            }
            Verdict::Open { .. } => named.open += 1,
            Verdict::NotNormative | Verdict::Superseded { .. } => {}
        }
    }
    named
}

fn print_open(rows: &[Row], groups: &[String]) {
    for row in rows {
        if let Verdict::Open { group, what } = &row.verdict
            && (groups.is_empty() || groups.contains(group))
        {
            println!("{} {group}: {what}", row.id);
        }
    }
}

/// Every defect has tests, and they exist.
fn check_defects(rows: &[Row], tests: &Tests) -> Result<()> {
    for row in rows {
        let Verdict::Tests(names) = &row.verdict else { bail!("{} has no tests", row.id) };
        for name in names {
            tests.find(name).with_context(|| row.id.clone())?;
        }
    }
    Ok(())
}

/// Counts, or everything that does not fit together.
fn check(texts: &[Sentence], rows: &[Row], sections: &BTreeSet<String>, tests: &Tests) -> Result<Counts> {
    let mut wrong = Vec::new();
    let ids: BTreeSet<&str> = texts.iter().map(|sentence| sentence.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    for row in rows {
        if !ids.contains(row.id.as_str()) {
            wrong.push(format!("{} has a row but no sentence", row.id));
        }
        if !seen.insert(row.id.as_str()) {
            wrong.push(format!("{} has more than one row", row.id));
        }
    }
    for sentence in texts {
        match rows.iter().find(|row| row.id == sentence.id) {
            None => wrong.push(format!("{} has no row", sentence.id)),
            Some(row) if row.excerpt != sentence.excerpt() => {
                wrong.push(format!("the row of {} quotes something else: {}", row.id, sentence.excerpt()));
            }
            Some(_) => {}
        }
    }
    let mut counts = Counts::default();
    for row in rows {
        match &row.verdict {
            Verdict::Tests(names) => {
                counts.tested += 1;
                wrong.extend(
                    names.iter().filter_map(|name| {
                        tests.find(name).err().map(|error| format!("{}: {error:#}", row.id))
                    }),
                );
            }
            Verdict::NotNormative => counts.not_normative += 1,
            Verdict::Superseded { by } => {
                counts.superseded += 1;
                if !by.starts_with("issue ") && (!ids.contains(by.as_str()) || *by == row.id) {
                    wrong.push(format!(
                        "{} is superseded by {by}, which is neither a sentence nor an issue",
                        row.id
                    ));
                }
            }
            Verdict::Open { group, .. } => {
                *counts.open.entry(group.clone()).or_default() += 1;
                if !sections.contains(group) {
                    wrong.push(format!(
                        "{}: the group {group} has no section that says what to build",
                        row.id
                    ));
                }
            }
        }
    }
    for section in sections.iter().filter(|section| !counts.open.contains_key(*section)) {
        wrong.push(format!("the group {section} has no open sentence any more: take its section out"));
    }
    if !wrong.is_empty() {
        bail!("{} and the sources do not fit together:\n  {}", table::FILE, wrong.join("\n  "));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_has_one_verdict_and_every_named_test_exists() {
        let root = sh::root();
        let (rows, sections) = table::read(&root).unwrap();
        let tests = Tests::of_workspace(&root).unwrap();
        check(&sentences::read(&root).unwrap(), &rows, &sections, &tests).unwrap();
        check_defects(&table::read_defects(&root).unwrap(), &tests).unwrap();
    }

    #[test]
    fn tests_are_named_with_their_sentences() {
        let rows = "| XX-001 | One. | tests: a::b, machines:c |\n| XX-002 | Two. | tests: a::b |\n\
                    | XX-003 | Three. | open: deploy: build it |\n| XX-004 | Four. | not normative: heading |\n";
        let named = promises(&table::parse(rows).unwrap().0);
        assert_eq!(named.open, 1);
        assert_eq!(named.tests["a::b"], ["XX-001", "XX-002"]);
        assert_eq!(named.tests["machines:c"], ["XX-001"]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let tests = Tests::of_workspace(&sh::root()).unwrap();
        let sentence = |id: &str| Sentence { id: id.into(), file: "x.txt".into(), text: "One. ".into() };
        let table = |rows: &[&str]| {
            let lines: Vec<_> = rows.iter().map(|row| format!("| {row} |")).collect();
            table::parse(&format!("### deploy\n{}\n", lines.join("\n"))).unwrap()
        };
        let said = |rows: &[&str]| {
            let (rows, sections) = table(rows);
            format!(
                "{:#}",
                check(&[sentence("XX-001"), sentence("XX-002")], &rows, &sections, &tests).unwrap_err()
            )
        };
        let open = "XX-002 | One. | open: deploy: build it";
        let good = table(&["XX-001 | One. | not normative: why", open]);
        let counts = check(&[sentence("XX-001"), sentence("XX-002")], &good.0, &good.1, &tests).unwrap();
        assert_eq!((counts.not_normative, counts.open["deploy"]), (1, 1));
        for (first, word) in [
            ("XX-001 | Two. | not normative: why", "XX-001 quotes something else"),
            ("XX-009 | One. | not normative: why", "XX-001 has no row"),
            ("XX-009 | One. | not normative: why", "XX-009 has a row but no sentence"),
            ("XX-002 | One. | not normative: why", "XX-002 has more than one row"),
            ("XX-001 | One. | open: inspect: build it", "the group inspect has no section"),
            ("XX-001 | One. | superseded by XX-009: why", "superseded by XX-009"),
            ("XX-001 | One. | superseded by XX-001: why", "superseded by XX-001"),
            ("XX-001 | One. | tests: model::step::tests::nosuch", "no test model::step::tests::nosuch"),
            ("XX-001 | One. | tests: machines:nosuch", "no scenario machines:nosuch"),
        ] {
            let error = said(&[first, open]);
            assert!(error.contains(word), "{first}: {error}");
        }
        let error = said(&["XX-001 | One. | not normative: why", "XX-002 | One. | not normative: why"]);
        assert!(error.contains("deploy has no open sentence any more"), "{error}");
    }
}
