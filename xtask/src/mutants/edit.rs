//! One edit of a protection's row: where it is, what it looks for, what comes in its place.

use std::cmp::Reverse;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::items::Items;
use super::pattern::Pattern;
use super::tokens;
use crate::tracked::Texts;

/// What is changed to take a protection out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The item, as [`super::items`] says it; the default is the row's.
    pub place: Option<String>,
    /// Tokens that stand in the item once.
    pub find: String,
    /// What comes in their place; empty to remove them.
    pub replace: String,
}

/// A file and what of it is replaced by what.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// The file.
    pub file: String,
    /// The bytes that go.
    pub range: Range<usize>,
    /// What comes for them.
    pub with: String,
}

impl Edit {
    /// Finds the place in the item, by default in the one at `row`.
    ///
    /// # Errors
    /// When there is not exactly one, or nothing would change.
    pub fn locate(&self, row: &str, items: &Items) -> Result<Change> {
        let place = self.place.as_deref().unwrap_or(row);
        let (file, item) = items.find(place)?;
        let (range, with) =
            self.in_item(&items.workspace.texts[&file], &item).with_context(|| place.to_owned())?;
        Ok(Change { file, range, with })
    }

    fn in_item(&self, text: &str, item: &Range<usize>) -> Result<(Range<usize>, String)> {
        let found = Pattern::parse(&self.find)?.find(text, &tokens::read(text)?, item);
        let [found] = &found[..] else {
            anyhow::bail!("looked for `{}`: found {} places, wanted 1", self.find, found.len());
        };
        let with = apart(text, &found.range, found.fill(text, &self.replace)?);
        ensure!(text[found.range.clone()] != with, "{:?} is replaced by itself", self.find);
        Ok((found.range.clone(), with))
    }
}

/// The replacement, with a space where it would grow together with the word before or after it.
fn apart(text: &str, range: &Range<usize>, mut with: String) -> String {
    let meet = |a: Option<char>, b: Option<char>| {
        [a, b].iter().all(|c| c.is_some_and(|c| c.is_alphanumeric() || c == '_'))
    };
    let (before, after) = (text[..range.start].chars().next_back(), text[range.end..].chars().next());
    if meet(before, with.chars().next().or(after)) {
        with.insert(0, ' ');
    }
    if meet(with.chars().next_back(), after) {
        with.push(' ');
    }
    with
}

/// The changed files of `texts`, with their new texts.
///
/// # Errors
/// When two changes overlap.
pub fn changed(mut changes: Vec<Change>, texts: &Texts) -> Result<Texts> {
    // Each file from its end, so that the places before a change stay as they are.
    changes.sort_by_key(|change| Reverse(change.range.start));
    let mut files = Texts::new();
    for Change { file, range, with } in &changes {
        let overlaps = |other: &Change| {
            other.file == *file
                && other.range != *range
                && other.range.start <= range.start
                && range.start < other.range.end
        };
        ensure!(!changes.iter().any(overlaps), "two edits of {file} overlap");
        files.entry(file.clone()).or_insert_with(|| texts[file].clone()).replace_range(range.clone(), with);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn a() { x(1); }\nfn b() { x(1); x(1); }\n";

    fn edited(find: &str, replace: &str, item: &str) -> Result<String> {
        let edit = Edit { place: None, find: find.into(), replace: replace.into() };
        let start = TEXT.find(item).unwrap();
        let (range, with) = edit.in_item(TEXT, &(start..start + item.len()))?;
        Ok(format!("{}{with}{}", &TEXT[..range.start], &TEXT[range.end..]))
    }

    #[test]
    fn an_edit_is_made_inside_its_item_and_at_one_place() {
        let (a, b) = ("fn a() { x(1); }", "fn b() { x(1); x(1); }");
        assert_eq!(edited("x($n);", "", a).unwrap(), "fn a() {  }\nfn b() { x(1); x(1); }\n");
        for (find, replace, item, said) in [
            ("x(2)", "", a, "looked for `x(2)`: found 0 places, wanted 1"),
            ("x(1)", "", b, "looked for `x(1)`: found 2 places, wanted 1"),
            ("x($n)", "x($n)", a, "replaced by itself"),
        ] {
            let error = format!("{:#}", edited(find, replace, item).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_replacement_stays_apart_from_its_neighbours() {
        let text = "let a = b.c?; d";
        assert_eq!(apart(text, &(11..15), "else { e }; d".to_owned()), " else { e }; d");
        assert_eq!(apart(text, &(4..5), String::new()), "");
        assert_eq!(apart("ab cd", &(2..3), String::new()), " ");
    }

    #[test]
    fn edits_of_one_file_are_made_together_and_do_not_overlap() {
        let texts = Texts::from([("f.rs".to_owned(), "0123456789".to_owned())]);
        let change = |range, with: &str| Change { file: "f.rs".into(), range, with: with.into() };
        let files = changed(vec![change(1..3, "ab"), change(5..6, ""), change(3..3, "X")], &texts).unwrap();
        assert_eq!(files["f.rs"], "0abX346789");
        let error = changed(vec![change(1..3, "ab"), change(2..4, "")], &texts).unwrap_err().to_string();
        assert!(error.contains("overlap"), "{error}");
    }
}
