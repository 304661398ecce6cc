//! Every sentence of "Invariants" in `ARCHITECTURE.md` has a row that protects it, or a reason why it has none.
//!
//! `tests/mutants/invariants.toml` holds each sentence as it stands there, so that a sentence is not changed without a
//! look at what protects it.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Deserialize;

use crate::findings;

/// The sentences with what protects them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    invariant: Vec<Invariant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invariant {
    sentence: String,
    #[serde(default)]
    rows: Vec<String>,
    reason: Option<String>,
}

/// Compares the section of `architecture` with the file `mapping`; `rows` are the names of all rows.
///
/// # Errors
/// All that does not fit: sentences without an entry, entries without a sentence, rows that do not exist.
pub fn check(architecture: &str, mapping: &str, rows: &BTreeSet<&str>) -> Result<()> {
    let entries = toml::from_str::<File>(mapping)?.invariant;
    let sentences = sentences(architecture);
    let mut wrong = Vec::new();
    if sentences.is_empty() {
        wrong.push("ARCHITECTURE.md has no section \"Invariants\"".to_owned());
    }
    for sentence in &sentences {
        if !entries.iter().any(|entry| words(&entry.sentence) == *sentence) {
            wrong.push(format!("no entry for the sentence {sentence:?}"));
        }
    }
    for Invariant { sentence, rows: named, reason } in &entries {
        if !sentences.contains(&words(sentence)) {
            wrong.push(format!("ARCHITECTURE.md no longer says {sentence:?}"));
        }
        if named.is_empty() && reason.as_ref().is_none_or(String::is_empty) {
            wrong.push(format!("neither rows nor a reason for {sentence:?}"));
        }
        wrong.extend(
            named
                .iter()
                .filter(|name| !rows.contains(name.as_str()))
                .map(|name| format!("there is no row {name}")),
        );
    }
    findings::none(&wrong, "tests/mutants/invariants.toml and ARCHITECTURE.md differ")
}

/// The sentences of the section, each on one line.
fn sentences(architecture: &str) -> Vec<String> {
    let Some((_, section)) = architecture.split_once("\n## Invariants\n") else { return Vec::new() };
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut sentences = Vec::new();
    // An item of the list or a paragraph.
    for part in section.replace("\n- ", "\n\n").split("\n\n") {
        let mut rest = words(part);
        while let Some(end) = end_of_sentence(&rest) {
            sentences.push(rest[..end].to_owned());
            rest = rest[end..].trim_start().to_owned();
        }
        sentences.extend(Some(rest).filter(|rest| !rest.is_empty()));
    }
    sentences
}

/// The byte after a period that a capital letter or code follows.
fn end_of_sentence(text: &str) -> Option<usize> {
    text.match_indices(". ")
        .map(|(at, _)| at + 1)
        .find(|end| text[end + 1..].starts_with(|first: char| first.is_uppercase() || first == '`'))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A\n\n## Invariants\n\n- One holds\n  (`a.rs`). Two, too.\n- `Three`.\n\nFour.\n\n## Next\n\n- Five.\n";

    #[test]
    fn a_section_is_cut_into_sentences() {
        assert_eq!(sentences(TEXT), ["One holds (`a.rs`).", "Two, too.", "`Three`.", "Four."]);
    }

    #[test]
    fn each_sentence_has_rows_or_a_reason() {
        let entry = |sentence: &str, rest: &str| format!("[[invariant]]\nsentence = '{sentence}'\n{rest}\n");
        let good = [
            entry("One holds\n(`a.rs`).", "rows = ['a']").replace('\'', "'''"),
            entry("Two, too.", "reason = 'r'"),
            entry("`Three`.", "rows = ['a', 'b']"),
            entry("Four.", "rows = ['b']"),
        ];
        let good = good.map(|text| text.replace("['''a''']", "['a']")).concat();
        let rows = BTreeSet::from(["a", "b"]);
        check(TEXT, &good, &rows).unwrap();
        for (text, mapping, said) in [
            (TEXT.replace("Four", "For"), good.clone(), "no entry for the sentence \"For.\""),
            (TEXT.replace("Four", "For"), good.clone(), "no longer says \"Four.\""),
            (TEXT.to_owned(), good.replace("'b'", "'c'"), "there is no row c"),
            (TEXT.to_owned(), good.replace("reason = 'r'", ""), "neither rows nor a reason"),
            (TEXT.replace("## Inv", "## V"), good, "no section"),
        ] {
            let error = format!("{:#}", check(&text, &mapping, &rows).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
