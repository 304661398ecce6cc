//! One edit of a protection's row: where it is, what it looks for, what comes in its place.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::items::Sources;
use super::pattern::Pattern;
use super::tokens;

/// What is changed to take a protection out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The item, as [`super::items`] says it; the default is the row's.
    #[serde(default)]
    pub place: Option<String>,
    /// Instead of an item: a file that is not Rust, from the root. It is searched as plain text.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Tokens that stand in the item once.
    pub find: String,
    /// What comes in their place; empty to remove them.
    pub replace: String,
    /// Which one, from 1, where the item has more than one.
    #[serde(default)]
    pub nth: Option<usize>,
}

/// A file and what of it is replaced by what.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// The bytes that go.
    pub range: Range<usize>,
    /// What comes for them.
    pub with: String,
}

impl Edit {
    /// Finds the place in the sources below `root`.
    ///
    /// # Errors
    /// When there is not exactly one, or nothing would change.
    pub fn locate(&self, root: &Path, sources: &Sources) -> Result<Change> {
        let (file, change) = match (&self.file, &self.place) {
            (Some(file), _) => {
                let path = root.join(file);
                let text = read(&path)?;
                (path, self.in_text(&text).with_context(|| file.display().to_string())?)
            }
            (None, place) => {
                let place = place.as_deref().context("the edit has neither `place` nor `file`")?;
                let (path, item) = sources.find(place)?;
                let text = read(&path)?;
                (path, self.in_item(&text, &item).with_context(|| place.to_owned())?)
            }
        };
        Ok(Change { file, range: change.0, with: change.1 })
    }

    fn in_text(&self, text: &str) -> Result<(Range<usize>, String)> {
        ensure!(!self.find.is_empty(), "`find` is empty");
        let places: Vec<usize> = text.match_indices(&self.find).map(|(at, _)| at).collect();
        let at = places[self.choose(places.len())?];
        ensure!(self.find != self.replace, "{:?} is replaced by itself", self.find);
        Ok((at..at + self.find.len(), self.replace.clone()))
    }

    fn in_item(&self, text: &str, item: &Range<usize>) -> Result<(Range<usize>, String)> {
        let found = Pattern::parse(&self.find)?.find(text, &tokens::read(text)?, item);
        let found = &found[self.choose(found.len())?];
        let with = apart(text, &found.range, found.fill(text, &self.replace)?);
        ensure!(text[found.range.clone()] != with, "{:?} is replaced by itself", self.find);
        Ok((found.range.clone(), with))
    }

    /// The index of the place that is meant.
    fn choose(&self, found: usize) -> Result<usize> {
        let nth = self.nth.unwrap_or(1);
        let wanted = self.nth.map_or("1".to_owned(), |nth| format!("at least {nth}"));
        let fits = if self.nth.is_some() { (1..=found).contains(&nth) } else { found == 1 };
        ensure!(fits, "looked for `{}`: found {found} places, wanted {wanted}", self.find);
        Ok(nth - 1)
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

/// The files as they are with the changes: each file with its new text.
///
/// # Errors
/// When two changes overlap.
pub fn changed(mut changes: Vec<Change>) -> Result<Vec<(PathBuf, String)>> {
    changes.sort_by(|a, b| a.file.cmp(&b.file).then(b.range.start.cmp(&a.range.start)));
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut limit = usize::MAX;
    for Change { file, range, with } in changes {
        if files.last().is_none_or(|(last, _)| *last != file) {
            let text = read(&file)?;
            limit = text.len();
            files.push((file, text));
        }
        let Some((file, text)) = files.last_mut() else { continue };
        ensure!(range.end <= limit, "two edits of {} overlap", file.display());
        limit = range.start;
        text.replace_range(range, &with);
    }
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn a() { x(1); }\nfn b() { x(1); x(1); }\n";

    fn edit(find: &str, replace: &str, nth: Option<usize>) -> Edit {
        Edit { place: None, file: None, find: find.into(), replace: replace.into(), nth }
    }

    fn edited(edit: &Edit, item: &str) -> Result<String> {
        let start = TEXT.find(item).unwrap();
        let (range, with) = edit.in_item(TEXT, &(start..start + item.len()))?;
        Ok(format!("{}{with}{}", &TEXT[..range.start], &TEXT[range.end..]))
    }

    #[test]
    fn an_edit_is_made_inside_its_item_and_at_one_place() {
        let a = "fn a() { x(1); }";
        assert_eq!(edited(&edit("x($n);", "", None), a).unwrap(), "fn a() {  }\nfn b() { x(1); x(1); }\n");
        let b = "fn b() { x(1); x(1); }";
        assert_eq!(
            edited(&edit("x(1)", "y", Some(2)), b).unwrap(),
            "fn a() { x(1); }\nfn b() { x(1); y; }\n"
        );
        let text = "let a = b.c?; d";
        let (range, with) = edit("?; d", "else { e }; d", None).in_item(text, &(0..text.len())).unwrap();
        assert_eq!(&text[range], "?; d");
        assert_eq!(with, " else { e }; d");
        for (edit, item, said) in [
            (edit("x(2)", "", None), a, "looked for `x(2)`: found 0 places, wanted 1"),
            (edit("x(1)", "", None), b, "looked for `x(1)`: found 2 places, wanted 1"),
            (edit("x(1)", "", Some(3)), b, "found 2 places, wanted at least 3"),
            (edit("x($n)", "x($n)", None), a, "replaced by itself"),
        ] {
            let error = format!("{:#}", edited(&edit, item).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_rust_is_plain_text() {
        let (range, with) = edit("b = 1", "b = 2", None).in_text("a = 1\nb = 1\n").unwrap();
        assert_eq!((range, with.as_str()), (6..11, "b = 2"));
        assert!(edit("= 1", "", None).in_text("a = 1\nb = 1\n").is_err());
        assert!(edit("", "x", None).in_text("a").is_err());
    }

    #[test]
    fn edits_of_one_file_are_made_together_and_do_not_overlap() {
        let dir = tempdir("edits");
        let file = dir.join("f.rs");
        fs::write(&file, "0123456789").unwrap();
        let change = |range, with: &str| Change { file: file.clone(), range, with: with.into() };
        let files = changed(vec![change(1..3, "ab"), change(5..6, ""), change(3..3, "X")]).unwrap();
        assert_eq!(files, [(file.clone(), "0abX346789".to_owned())]);
        let error = changed(vec![change(1..3, "ab"), change(2..4, "")]).unwrap_err().to_string();
        assert!(error.contains("overlap"), "{error}");
        fs::remove_dir_all(dir).unwrap();
    }

    fn tempdir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("anneal-mutants-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }
}
