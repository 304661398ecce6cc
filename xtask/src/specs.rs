//! `cargo xtask specs`: every sentence of the five specifications has one verdict, and what a verdict names exists.
//!
//! ```text
//! docs/specs/*.txt ◄── every byte ── docs/specs/sentences.tsv ── one row an id ──► docs/specs.md ── tests ──► the sources
//! ```
//!
//! An open row is no inconsistency: it is work. The check rejects a lost sentence, and a claim with a
//! test that does not exist.

mod sentences;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::args::Args;
use crate::test_names::TestNames;
use crate::tracked::Workspace;
use crate::{findings, sh};
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
pub fn run(mut args: Args) -> Result<()> {
    let list = args.flag("--open");
    let groups = args.words();
    args.finish()?;
    let root = sh::root();
    let texts = sentences::read(&root)?;
    let (rows, sections) = table::read(&root, table::FILE)?;
    let tests = TestNames::of(&Workspace::read(&root)?);
    let counts = check(&texts, &rows, &sections, &tests)?;
    let defects = table::read(&root, table::DEFECTS)?.0;
    check_defects(&defects, &tests)?;
    for Row { id, verdict, .. } in rows.iter().filter(|_| list) {
        if let Verdict::Open { group, what } = verdict
            && (groups.is_empty() || groups.contains(group))
        {
            println!("{id} {group}: {what}");
        }
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
    let mut rows = table::read(&root, table::FILE)?.0;
    rows.extend(table::read(&root, table::DEFECTS)?.0);
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

/// Every defect has tests, and they exist.
fn check_defects(rows: &[Row], tests: &TestNames) -> Result<()> {
    let wrong = rows.iter().flat_map(|row| match &row.verdict {
        Verdict::Tests(names) => without_test(&row.id, names, tests),
        _ => vec![format!("{} has no tests", row.id)],
    });
    findings::none(&wrong.collect::<Vec<_>>(), table::DEFECTS)
}

/// The named tests that do not exist.
fn without_test(id: &str, names: &[String], tests: &TestNames) -> Vec<String> {
    let errors = names.iter().filter_map(|name| tests.ensure_runs(name).err());
    errors.map(|error| format!("{id}: {error}")).collect()
}

/// Counts, or everything that does not fit together.
fn check(texts: &[Sentence], rows: &[Row], sections: &BTreeSet<String>, tests: &TestNames) -> Result<Counts> {
    let mut wrong = Vec::new();
    let sentences: BTreeMap<&str, &Sentence> = texts.iter().map(|text| (text.id.as_str(), text)).collect();
    let mut seen = BTreeSet::new();
    let mut counts = Counts::default();
    for Row { id, excerpt, verdict } in rows {
        if !seen.insert(id.as_str()) {
            wrong.push(format!("{id} has more than one row"));
        }
        match sentences.get(id.as_str()).map(|sentence| sentence.excerpt()) {
            None => wrong.push(format!("{id} has a row but no sentence")),
            Some(text) if text != *excerpt => {
                wrong.push(format!("the row of {id} quotes something else: {text}"))
            }
            Some(_) => {}
        }
        match verdict {
            Verdict::Tests(names) => {
                counts.tested += 1;
                wrong.extend(without_test(id, names, tests));
            }
            Verdict::NotNormative => counts.not_normative += 1,
            Verdict::Superseded { by } => {
                counts.superseded += 1;
                if !by.starts_with("issue ") && (!sentences.contains_key(by.as_str()) || by == id) {
                    wrong.push(format!(
                        "{id} is superseded by {by}, which is neither a sentence nor an issue"
                    ));
                }
            }
            Verdict::Open { group, .. } => {
                *counts.open.entry(group.clone()).or_default() += 1;
                if !sections.contains(group) {
                    wrong.push(format!("{id}: the group {group} has no section that says what to build"));
                }
            }
        }
    }
    let without_row = sentences.keys().filter(|id| !seen.contains(*id));
    wrong.extend(without_row.map(|id| format!("{id} has no row")));
    let idle = sections.iter().filter(|section| !counts.open.contains_key(*section));
    wrong.extend(
        idle.map(|group| format!("the group {group} has no open sentence any more: take its section out")),
    );
    findings::none(&wrong, &format!("{} and the sources do not fit together", table::FILE))?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_has_one_verdict_and_every_named_test_exists() {
        let root = sh::root();
        let (rows, sections) = table::read(&root, table::FILE).unwrap();
        let tests = TestNames::of(&Workspace::read(&root).unwrap());
        check(&sentences::read(&root).unwrap(), &rows, &sections, &tests).unwrap();
        check_defects(&table::read(&root, table::DEFECTS).unwrap().0, &tests).unwrap();
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
        let tests = TestNames::of(&Workspace::read(&sh::root()).unwrap());
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
            ("XX-001 | One. | tests: machines:nosuch", "no test machines:nosuch"),
        ] {
            let error = said(&[first, open]);
            assert!(error.contains(word), "{first}: {error}");
        }
        let error = said(&["XX-001 | One. | not normative: why", "XX-002 | One. | not normative: why"]);
        assert!(error.contains("deploy has no open sentence any more"), "{error}");
    }
}
