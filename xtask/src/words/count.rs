//! The findings as a table: by word, and by crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::find::Finding;

/// Occurrences and files of one row.
#[derive(Default)]
struct Row<'a> {
    occurrences: usize,
    files: BTreeSet<&'a str>,
    words: BTreeMap<&'a str, usize>,
}

impl<'a> Row<'a> {
    fn add(&mut self, finding: &'a Finding) {
        self.occurrences += 1;
        self.files.insert(&finding.path);
        *self.words.entry(&finding.word).or_default() += 1;
    }
}

/// The table, ready to be printed.
pub fn table(findings: &[Finding]) -> String {
    let mut words = BTreeMap::<&str, Row<'_>>::new();
    let mut rooms = BTreeMap::<String, Row<'_>>::new();
    let mut all = Row::default();
    for finding in findings {
        words.entry(&finding.word).or_default().add(finding);
        rooms.entry(room(&finding.path)).or_default().add(finding);
        all.add(finding);
    }
    let mut text = format!("{:<32} {:>6} {:>6}\n", "word", "places", "files");
    for (name, row) in sorted(words.iter().map(|(word, row)| ((*word).to_owned(), row))) {
        let _ = writeln!(text, "{name:<32} {:>6} {:>6}", row.occurrences, row.files.len());
    }
    let _ = writeln!(text, "{:<32} {:>6} {:>6}\n", "all", all.occurrences, all.files.len());
    let _ = writeln!(text, "{:<32} {:>6} {:>6}  words", "crate", "places", "files");
    for (name, row) in sorted(rooms.iter().map(|(room, row)| (room.clone(), row))) {
        let mut words: Vec<_> = row.words.iter().collect();
        words.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let words: Vec<_> = words.into_iter().map(|(word, count)| format!("{word} {count}")).collect();
        let _ =
            writeln!(text, "{name:<32} {:>6} {:>6}  {}", row.occurrences, row.files.len(), words.join(", "));
    }
    text
}

fn sorted<'a>(rows: impl Iterator<Item = (String, &'a Row<'a>)>) -> Vec<(String, &'a Row<'a>)> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.occurrences));
    rows
}

/// The crate or directory that a file belongs to.
fn room(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [_] => "(top level)".to_owned(),
        ["docs" | "image" | "xtask", ..] => parts[0].to_owned(),
        [_, _] => parts[0].to_owned(),
        _ => parts[..2].join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_and_files_are_counted_by_word_and_by_crate() {
        let finding =
            |path: &str, word: &str| Finding { path: path.into(), line: 1, word: word.into(), instead: "" };
        let findings = [
            finding("agent/block/src/a.rs", "told"),
            finding("agent/block/src/a.rs", "told"),
            finding("agent/block/src/b.rs", "fate"),
            finding("README.md", "told"),
        ];
        let table = table(&findings);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(rows.contains(&vec!["told", "3", "2"]), "{table}");
        assert!(rows.contains(&vec!["agent/block", "3", "2", "told", "2,", "fate", "1"]), "{table}");
        assert!(rows.contains(&vec!["all", "4", "3"]), "{table}");
    }
}
