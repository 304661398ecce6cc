//! `cargo xtask specs`: every sentence of the five specifications has one verdict, and what a verdict names exists.
//!
//! ```text
//! docs/specs/*.txt ◄── every byte ── docs/specs/sentences.tsv ── one row an id ──► docs/specs.md ── tests ──► the sources
//! ```
//!
//! An open row is no inconsistency: it is work, and the number of open rows only falls. The check rejects a lost sentence,
//! a claim with a test that does not exist, and one with a test that cannot show it.

mod attacks;
mod ceiling;
mod evidence;
mod sentences;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use attacks::Attack;
use fs_err as fs;

use crate::args::Args;
use crate::test_names::TestNames;
use crate::tracked::{self, Workspace};
use crate::{findings, sh};
use sentences::Sentence;
use table::{Row, Verdict};

/// Most sentences that may be served otherwise.
const MOST_DIFFERENT: usize = 15;

/// Where the decisions are, from the root of the repository.
const DECISIONS: &str = "docs/decisions/";

/// How many sentences got which verdict.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    tested: usize,
    simulated: usize,
    differs: usize,
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
    let counts = check(&texts, &rows, &sections, &tests, &files(&root)?)?;
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
    findings::none(&ceiling::check(&root, open)?, "the number of open sentences")?;
    println!(
        "specs: {} sentences: {} tested, {} simulated, {} not normative, {} superseded, {} differ, {open} open",
        rows.len(),
        counts.tested,
        counts.simulated,
        counts.not_normative,
        counts.superseded,
        counts.differs
    );
    let attacks = attacks(&root)?;
    let wrong = attacks.iter().flat_map(|(number, attack)| {
        without_test(&format!("{}: attack {number}", attacks::FILE), &attack.tests, &tests)
    });
    findings::none(&wrong.collect::<Vec<_>>(), attacks::FILE)?;
    let held = attacks.values().filter(|attack| attack.open.is_none()).count();
    println!("specs: {} attacks, {held} of them held in full", attacks.len());
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
    /// How many may be.
    pub ceiling: usize,
}

/// The tests that the table names.
pub fn named() -> Result<Named> {
    let root = sh::root();
    let mut rows = table::read(&root, table::FILE)?.0;
    rows.extend(table::read(&root, table::DEFECTS)?.0);
    let mut named = promises(&rows, ceiling::read(&root)?);
    for (number, attack) in attacks(&root)? {
        for test in attack.tests {
            named.tests.entry(test).or_default().push(format!("attack {number}"));
        }
    }
    Ok(named)
}

/// The attacks of the threat model, by their numbers.
fn attacks(root: &Path) -> Result<BTreeMap<usize, Attack>> {
    attacks::parse(&fs::read_to_string(root.join(attacks::FILE))?)
}

fn promises(rows: &[Row], ceiling: usize) -> Named {
    let mut named = Named { ceiling, ..Named::default() };
    for row in rows {
        match &row.verdict {
            Verdict::Tests { names, .. } => {
                for name in names {
                    named.tests.entry(name.clone()).or_default().push(row.id.clone());
                }
            }
            Verdict::Open { .. } => named.open += 1,
            Verdict::NotNormative | Verdict::Superseded { .. } | Verdict::Differs { .. } => {}
        }
    }
    named
}

/// Every defect has tests, and they exist.
fn check_defects(rows: &[Row], tests: &TestNames) -> Result<()> {
    let wrong = rows.iter().flat_map(|row| match &row.verdict {
        Verdict::Tests { names, .. } => without_test(&row.id, names, tests),
        _ => vec![format!("{} has no tests", row.id)],
    });
    findings::none(&wrong.collect::<Vec<_>>(), table::DEFECTS)
}

/// The named tests that do not exist.
fn without_test(id: &str, names: &[String], tests: &TestNames) -> Vec<String> {
    let errors = names.iter().filter_map(|name| tests.ensure_runs(name).err());
    errors.map(|error| format!("{id}: {error}")).collect()
}

/// The files of the repository.
fn files(root: &Path) -> Result<BTreeSet<String>> {
    Ok(tracked::paths(root)?.into_iter().collect())
}

/// Counts, or everything that does not fit together.
fn check(
    texts: &[Sentence],
    rows: &[Row],
    sections: &BTreeSet<String>,
    tests: &TestNames,
    files: &BTreeSet<String>,
) -> Result<Counts> {
    let mut wrong = Vec::new();
    let sentences: BTreeMap<&str, &Sentence> = texts.iter().map(|text| (text.id.as_str(), text)).collect();
    let mut seen = BTreeSet::new();
    let mut counts = Counts::default();
    for row in rows {
        let id = &row.id;
        if !seen.insert(id.as_str()) {
            wrong.push(format!("{id} has more than one row"));
        }
        let Some(sentence) = sentences.get(id.as_str()) else {
            wrong.push(format!("{id} has a row but no sentence"));
            continue;
        };
        let text = sentence.excerpt();
        if text != row.excerpt {
            wrong.push(format!("the row of {id} quotes something else: {text}"));
        }
        counts.add(&row.verdict);
        wrong.extend(judge(row, sentence, tests, files));
        if let Verdict::Superseded { by } = &row.verdict
            && (by == id || !sentences.contains_key(by.as_str()) && !files.contains(by))
        {
            wrong.push(format!("{id} is superseded by {by}, which is neither another sentence nor a file"));
        }
        if let Verdict::Open { group, .. } = &row.verdict
            && !sections.contains(group)
        {
            wrong.push(format!("{id}: the group {group} has no section that says what to build"));
        }
    }
    if counts.differs > MOST_DIFFERENT {
        wrong.push(format!("{} sentences differ; at most {MOST_DIFFERENT} may", counts.differs));
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

/// What is wrong with what a row names.
fn judge(row: &Row, sentence: &Sentence, tests: &TestNames, files: &BTreeSet<String>) -> Vec<String> {
    let id = &row.id;
    match &row.verdict {
        Verdict::Tests { names, simulated } => {
            let mut wrong = without_test(id, names, tests);
            let objection = evidence::objection(&sentence.text, names, *simulated);
            wrong.extend(objection.map(|why| format!("{id}: {why}")));
            wrong
        }
        Verdict::Differs { decision } => {
            let begin = format!("{DECISIONS}{decision}-");
            let exists = files.iter().any(|file| file.starts_with(&begin));
            if exists { Vec::new() } else { vec![format!("{id}: there is no decision {decision}")] }
        }
        Verdict::NotNormative | Verdict::Superseded { .. } | Verdict::Open { .. } => Vec::new(),
    }
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Tests { simulated: false, .. } => self.tested += 1,
            Verdict::Tests { simulated: true, .. } => self.simulated += 1,
            Verdict::NotNormative => self.not_normative += 1,
            Verdict::Superseded { .. } => self.superseded += 1,
            Verdict::Differs { .. } => self.differs += 1,
            Verdict::Open { group, .. } => *self.open.entry(group.clone()).or_default() += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_has_one_verdict_and_every_named_test_exists() {
        let root = sh::root();
        let (rows, sections) = table::read(&root, table::FILE).unwrap();
        let tests = TestNames::of(&Workspace::read(&root).unwrap());
        let texts = sentences::read(&root).unwrap();
        let counts = check(&texts, &rows, &sections, &tests, &files(&root).unwrap()).unwrap();
        for (number, attack) in attacks(&root).unwrap() {
            assert_eq!(without_test(&number.to_string(), &attack.tests, &tests), Vec::<String>::new());
        }
        assert_eq!(ceiling::check(&root, counts.open.values().sum()).unwrap(), Vec::<String>::new());
        check_defects(&table::read(&root, table::DEFECTS).unwrap().0, &tests).unwrap();
    }

    #[test]
    fn tests_are_named_with_their_sentences() {
        let rows = "| XX-001 | One. | tests: a::b, machines:c |\n| XX-002 | Two. | tests: a::b |\n\
                    | XX-003 | Three. | open: deploy: build it |\n| XX-004 | Four. | not normative: heading |\n";
        let named = promises(&table::parse(rows).unwrap().0, 7);
        assert_eq!((named.open, named.ceiling), (1, 7));
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
        let files = BTreeSet::from(["docs/decisions/0001-a.md".to_owned()]);
        let judged = |(rows, sections): &(Vec<Row>, BTreeSet<String>)| {
            check(&[sentence("XX-001"), sentence("XX-002")], rows, sections, &tests, &files)
        };
        let said = |rows: &[&str]| format!("{:#}", judged(&table(rows)).unwrap_err());
        let open = "XX-002 | One. | open: deploy: build it";
        let counts = judged(&table(&["XX-001 | One. | not normative: why", open])).unwrap();
        assert_eq!((counts.not_normative, counts.open["deploy"]), (1, 1));
        for good in ["superseded by docs/decisions/0001-a.md: why", "differs: how, decision 0001"] {
            judged(&table(&[&format!("XX-001 | One. | {good}"), open])).unwrap();
        }
        for (first, word) in [
            ("XX-001 | Two. | not normative: why", "XX-001 quotes something else"),
            ("XX-009 | One. | not normative: why", "XX-001 has no row"),
            ("XX-009 | One. | not normative: why", "XX-009 has a row but no sentence"),
            ("XX-002 | One. | not normative: why", "XX-002 has more than one row"),
            ("XX-001 | One. | open: inspect: build it", "the group inspect has no section"),
            ("XX-001 | One. | superseded by XX-009: why", "superseded by XX-009"),
            ("XX-001 | One. | superseded by XX-001: why", "superseded by XX-001"),
            ("XX-001 | One. | superseded by issue 3: why", "superseded by issue 3"),
            ("XX-001 | One. | superseded by docs/nosuch.md: why", "superseded by docs/nosuch.md"),
            ("XX-001 | One. | differs: how, decision 0002", "no decision 0002"),
            ("XX-001 | One. | tests: conductor-tests::a", "XX-001: no test with a booted node"),
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
