//! Rust source as a list of tokens, each with its place in the text.
//!
//! Two texts that differ in white space, line breaks and comments have the same tokens.

use std::ops::Range;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// Operators of more than one character, each of which is one token. `>>`, `>=` and `<<` are left
/// apart, since `>` also closes generic arguments.
const OPERATORS: [&str; 19] = [
    "...", "..=", "..", "::", "->", "=>", "==", "!=", "<=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "^=",
    "&=", "|=",
];

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, a keyword or a literal.
    Word,
    /// An operator, a separator or a lifetime.
    Mark,
    /// An opening bracket.
    Open,
    /// A closing bracket.
    Close,
}

/// One token.
#[derive(Debug)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// The index after it; after its closing bracket for one that opens.
    pub end: usize,
}

/// The tokens of a text.
///
/// # Errors
/// When it has an open bracket or string, or characters that Rust does not have.
pub fn read(text: &str) -> Result<Vec<Token>> {
    let stream: TokenStream = text.parse().map_err(|error| anyhow!("these are no Rust tokens: {error}"))?;
    let mut tokens = Vec::new();
    add(stream, &mut tokens);
    Ok(tokens)
}

fn add(stream: TokenStream, tokens: &mut Vec<Token>) {
    // Whether the next token stands directly behind this punctuation.
    let mut joint = false;
    for tree in stream {
        let before = tokens.last_mut().filter(|_| joint);
        joint = matches!(&tree, TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint);
        let (kind, text) = match &tree {
            TokenTree::Group(group) => {
                add_group(group, tokens);
                continue;
            }
            TokenTree::Punct(mark) => (Kind::Mark, mark.to_string()),
            TokenTree::Ident(name) => (Kind::Word, name.to_string()),
            TokenTree::Literal(literal) => (Kind::Word, literal.to_string()),
        };
        let range = tree.span().byte_range();
        match before {
            Some(before) if is_whole(&before.text, kind, &text) => {
                before.text += &text;
                before.range.end = range.end;
            }
            _ => push(tokens, kind, text, range),
        }
    }
}

/// True if a token goes on with `text`: an operator, or a lifetime.
fn is_whole(before: &str, kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Word => before == "'",
        _ => OPERATORS.contains(&format!("{before}{text}").as_str()),
    }
}

fn add_group(group: &Group, tokens: &mut Vec<Token>) {
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::Brace | Delimiter::None => ("{", "}"),
    };
    let at = tokens.len();
    push(tokens, Kind::Open, open.to_owned(), group.span_open().byte_range());
    add(group.stream(), tokens);
    push(tokens, Kind::Close, close.to_owned(), group.span_close().byte_range());
    tokens[at].end = tokens.len();
}

fn push(tokens: &mut Vec<Token>, kind: Kind, text: String, range: Range<usize>) {
    let end = tokens.len() + 1;
    tokens.push(Token { kind, text, range, end });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        read(text).unwrap().iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn operators_are_whole_and_generic_arguments_are_not() {
        for (text, wanted) in [
            ("a != &&b;", "a != && b ;"),
            ("f(x)?;", "f ( x ) ? ;"),
            ("A<B<C>>::d('x', 0..=3)", "A < B < C > > :: d ( 'x' , 0 ..= 3 )"),
            ("&'a str", "& 'a str"),
            ("|&'a x| -> T", "| & 'a x | -> T"),
            ("a <<= b", "a < <= b"),
        ] {
            assert_eq!(words(text), wanted);
        }
    }

    #[test]
    fn tokens_know_their_bytes_and_comments_are_none() {
        let text = "a /* x */ . b(\n  1, // y\n 2)";
        let tokens = read(text).unwrap();
        let slices: Vec<&str> = tokens.iter().map(|token| &text[token.range.clone()]).collect();
        assert_eq!(slices, ["a", ".", "b", "(", "1", ",", "2", ")"]);
        assert_eq!(words(text), words("a.b(1,2)"));
        assert_eq!((tokens[2].end, tokens[3].end), (3, 8));
        assert!(read("f(").is_err());
    }
}
