//! Texts in columns. PostgreSQL's `text` cannot hold U+0000, which a text of a document may contain.

use std::borrow::Cow;

/// Begins what stands for U+0000 or for itself.
const ESCAPE: char = '\u{1}';

/// A text as columns hold it: U+0000 is written as U+0001 U+0001, and U+0001 as U+0001 U+0002. Two texts compare as they did
/// before.
pub fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(ESCAPE, "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

/// The text that [`stored`] made this of.
pub fn read(stored: &str) -> String {
    let mut text = String::with_capacity(stored.len());
    let mut rest = stored.chars();
    while let Some(character) = rest.next() {
        text.push(match (character, character == ESCAPE) {
            (_, true) => match rest.next() {
                Some(ESCAPE) => '\0',
                _ => ESCAPE,
            },
            (plain, false) => plain,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_text_compares_as_before_and_comes_back() {
        let parts =
            ["", "\0", "\u{1}", "\u{2}", "a", "\0\0", "\0\u{1}", "\u{1}\0", "\u{1}\u{1}", "ä", "\u{1}b"];
        for one in parts {
            assert!(!stored(one).contains('\0'));
            assert_eq!(read(&stored(one)), one, "{one:?}");
            for other in parts {
                assert_eq!(stored(one).cmp(&stored(other)), one.cmp(other), "{one:?} {other:?}");
            }
        }
    }
}
