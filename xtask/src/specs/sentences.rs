//! The texts cut into sentences: `docs/specs/sentences.tsv`, one a line: id, file, text.
//!
//! An id stays with its sentence whatever is done to others. Breaks, tabs and backslashes in a text are written
//! `\n`, `\t`, `\\`; together the texts of a file are the file, byte for byte.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use crate::tracked::{self, Texts};

/// Where the texts are, from the root of the repository.
pub const DIR: &str = "docs/specs";

/// Characters of a sentence that its row quotes.
const QUOTED: usize = 72;

/// One sentence, list item, row, or heading.
#[derive(Debug, PartialEq)]
pub struct Sentence {
    /// `CS-012`
    pub id: String,
    /// Name of its file.
    pub file: String,
    /// The text with the white space that follows it.
    pub text: String,
}

impl Sentence {
    /// Its beginning as a cell of a Markdown table.
    pub fn excerpt(&self) -> String {
        let line = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut out = String::new();
        for letter in line.chars().take(QUOTED) {
            match letter {
                '<' => out.push_str("&lt;"),
                '\\' | '|' | '*' | '_' => out.extend(['\\', letter]),
                letter => out.push(letter),
            }
        }
        // A cell has no blanks at its ends.
        let mut out = out.trim_end().to_owned();
        if line.chars().count() > QUOTED {
            out.push('…');
        }
        out
    }
}

/// The sentences in order, which cover all texts of [`DIR`].
pub fn read(root: &Path) -> Result<Vec<Sentence>> {
    let list = fs::read_to_string(root.join(DIR).join("sentences.tsv"))?;
    let prefix = format!("{DIR}/");
    let texts = tracked::texts(root, |path| path.starts_with(&prefix) && path.ends_with(".txt"))?;
    let texts = texts.into_iter().map(|(path, text)| (path[prefix.len()..].to_owned(), text)).collect();
    let sentences = parse(&list)?;
    cover(&sentences, &texts)?;
    Ok(sentences)
}

fn parse(list: &str) -> Result<Vec<Sentence>> {
    let mut sentences: Vec<Sentence> = Vec::new();
    for (index, line) in list.lines().enumerate() {
        let context = || format!("line {} of sentences.tsv", index + 1);
        let [id, file, text] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("{}: not three columns", context());
        };
        ensure!(is_id(id), "{}: {id:?} is no id", context());
        ensure!(!sentences.iter().any(|known| known.id == id), "{}: {id} is there twice", context());
        let text = unescape(text).with_context(context)?;
        ensure!(!text.trim().is_empty(), "{}: {id} is empty", context());
        sentences.push(Sentence { id: id.to_owned(), file: file.to_owned(), text });
    }
    Ok(sentences)
}

/// Two letters, a hyphen, three digits, and perhaps a letter for what was cut later.
pub fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    (6..=7).contains(&bytes.len())
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2] == b'-'
        && bytes[3..6].iter().all(u8::is_ascii_digit)
        && bytes[6..].iter().all(u8::is_ascii_lowercase)
}

/// JSON has the same escapes.
fn unescape(text: &str) -> Result<String> {
    Ok(serde_json::from_str(&format!("\"{}\"", text.replace('"', "\\\"")))?)
}

/// The sentences of each file are the file.
fn cover(sentences: &[Sentence], texts: &Texts) -> Result<()> {
    let mut rest: BTreeMap<&str, &str> =
        texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for Sentence { id, file, text } in sentences {
        let left = rest.get_mut(file.as_str()).with_context(|| format!("{id}: there is no {file}"))?;
        *left = left.strip_prefix(text.as_str()).with_context(|| {
            let line: String = left.chars().take(60).collect();
            format!("{id} is not what comes next in {file}: {line:?}")
        })?;
    }
    match rest.iter().find(|(_, left)| !left.is_empty()) {
        Some((file, left)) => {
            bail!("no sentence covers the end of {file}: {:?}", left.chars().take(60).collect::<String>())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(list: &str, text: &str) -> Result<()> {
        cover(&parse(list)?, &BTreeMap::from([("a.txt".to_owned(), text.to_owned())]))
    }

    #[test]
    fn sentences_cover_a_text_to_the_last_byte() {
        let list = "AA-001\ta.txt\tOne. \nAA-002b\ta.txt\tTwo\\t\\\\.\\n\n";
        covered(list, "One. Two\t\\.\n").unwrap();
        for (text, word) in [
            ("One.  Two\t\\.\n", "AA-002b is not what comes next in a.txt: \" Two"),
            ("One. Two\t\\.\n\n", "no sentence covers the end of a.txt: \"\\n\""),
            ("One. Two\t\\.", "AA-002b is not what comes next"),
        ] {
            let error = format!("{:#}", covered(list, text).unwrap_err());
            assert!(error.contains(word), "{text:?}: {error}");
        }
        for (list, word) in [
            ("AA-001\ta.txt\n", "not three columns"),
            ("A-001\ta.txt\tOne.\n", "is no id"),
            ("AA-001\ta.txt\tOne\nAA-001\ta.txt\t.\n", "AA-001 is there twice"),
            ("AA-001\ta.txt\tOne\\x\n", "invalid escape"),
            ("AA-001\ta.txt\tOne\nAA-002\ta.txt\t\\n\n", "AA-002 is empty"),
            ("AA-001\tb.txt\tOne.\n", "there is no b.txt"),
        ] {
            let error = format!("{:#}", covered(list, "One.").unwrap_err());
            assert!(error.contains(word), "{list:?}: {error}");
        }
    }

    #[test]
    fn an_excerpt_is_a_cell_of_a_table() {
        let of =
            |text: &str| Sentence { id: String::new(), file: String::new(), text: text.into() }.excerpt();
        assert_eq!(of("• ‘a’: <b> | c\\\n  *d_e\n\n"), "• ‘a’: &lt;b> \\| c\\\\ \\*d\\_e");
        assert_eq!(of(&"x ".repeat(50)), format!("{}…", "x ".repeat(36).trim_end()));
    }
}
