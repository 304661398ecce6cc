//! A text as words: identifiers are taken apart at `_` and at the humps of camel case.

/// A run of letters and digits without `_` that is longer is data, such as a key.
const LONGEST_NAME: usize = 40;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// Its line, from 1.
    pub line: usize,
    /// As it stands in the text.
    pub text: &'a str,
    /// True if only space (or the beginning of the next line of a comment) is between it and the word before, or if
    /// it goes on in the same name.
    pub follows: bool,
    /// Where it begins in the text, in bytes.
    pub at: usize,
    /// True if it is a part of a longer name.
    pub part: bool,
}

/// The words of a text.
pub fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut follows = false;
    for (index, line) in text.split('\n').enumerate() {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let body = line.trim_start_matches([' ', '\t', '/', '!', '#', '*', '>']);
        // An empty line ends what came before.
        follows &= !body.is_empty();
        let mut at = line.len() - body.len();
        while at < line.len() {
            let rest = &line[at..];
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            if length == 0 {
                let separator = rest.chars().next().unwrap_or(' ');
                follows &= separator.is_whitespace();
                at += separator.len_utf8();
                // An escape such as `\n` is no beginning of a word.
                if separator == '\\' {
                    at += line[at..].chars().next().map_or(0, char::len_utf8);
                }
                continue;
            }
            let name = &rest[..length];
            let parts = split(name);
            let part = parts.len() > 1;
            for text in parts {
                let offset = text.as_ptr() as usize - name.as_ptr() as usize;
                // A name is no part of a sentence.
                follows &= !part || offset > 0;
                words.push(Word { line: index + 1, text, follows, at: start + at + offset, part });
                follows = true;
            }
            follows = !part;
            at += length;
        }
    }
    words
}

/// The words of one identifier.
pub fn split(name: &str) -> Vec<&str> {
    if name.len() > LONGEST_NAME && !name.contains('_') {
        return Vec::new();
    }
    let parts = name.split('_').flat_map(humps);
    parts.filter(|part| part.bytes().all(|byte| byte.is_ascii_alphabetic()) && !part.is_empty()).collect()
}

/// `HttpServer` → `Http`, `Server`; `MACAddress` → `MAC`, `Address`; digits are parts of their own.
fn humps(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let mut parts = Vec::new();
    let mut from = 0;
    for at in 1..bytes.len() {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let hump = here.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || (before.is_ascii_uppercase() && next_is_lower));
        if hump || here.is_ascii_digit() != before.is_ascii_digit() {
            parts.push(&name[from..at]);
            from = at;
        }
    }
    parts.push(&name[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_taken_apart() {
        assert_eq!(split("a_node_IsTold"), ["a", "node", "Is", "Told"]);
        assert_eq!(split("HTTPServer2told"), ["HTTP", "Server", "told"]);
        assert_eq!(split("FATE"), ["FATE"]);
        assert!(split("MIIBVgIBADANBgkqhkiG9w0BAQEFAASCAUAwggE8he").is_empty());
    }

    #[test]
    fn a_name_is_no_part_of_a_sentence() {
        let shown: Vec<_> = words("let in_use as").iter().map(|word| (word.text, word.follows)).collect();
        assert_eq!(shown, [("let", false), ("in", false), ("use", true), ("as", false)]);
    }

    #[test]
    fn words_have_lines_and_neighbours() {
        let found = words("/// in\n/// vain. Then\n\nmore\\nthan");
        let shown: Vec<_> = found.iter().map(|word| (word.line, word.text, word.follows)).collect();
        assert_eq!(
            shown,
            [(1, "in", false), (2, "vain", true), (2, "Then", false), (4, "more", false), (4, "than", false)]
        );
        assert_eq!(found[1].at, 11);
    }
}
