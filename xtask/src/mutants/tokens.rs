//! Rust source as a tree of tokens, each with its place in the text.
//!
//! Two texts that differ in white space, line breaks and comments have the same tokens.

use std::ops::Range;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Operators of more than one character, as one token each; the longest first. `>>`, `>=` and `<<` are left apart,
/// since `>` also closes generic arguments.
const OPERATORS: [&str; 19] = [
    "...", "..=", "..", "::", "->", "=>", "==", "!=", "<=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "^=",
    "&=", "|=",
];

/// A token, or a pair of brackets with what is between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// An identifier, a keyword or a literal.
    Word(String, Range<usize>),
    /// An operator, a separator or a lifetime.
    Mark(String, Range<usize>),
    /// Brackets: `(`, `[` or `{`, with what they hold.
    Group(char, Vec<Tree>, Range<usize>),
}

impl Tree {
    /// Its bytes in the text.
    pub fn range(&self) -> Range<usize> {
        match self {
            Self::Word(_, range) | Self::Mark(_, range) | Self::Group(_, _, range) => range.clone(),
        }
    }

    /// The same tokens, wherever they are.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Word(a, _), Self::Word(b, _)) | (Self::Mark(a, _), Self::Mark(b, _)) => a == b,
            (Self::Group(a, inner, _), Self::Group(b, others, _)) => {
                a == b && inner.len() == others.len() && inner.iter().zip(others).all(|(a, b)| a.is_same(b))
            }
            _ => false,
        }
    }
}

/// The tokens of a text.
///
/// # Errors
/// When it has an open bracket or string, or characters that Rust does not have.
pub fn read(text: &str) -> Result<Vec<Tree>> {
    let stream: TokenStream = text.parse().map_err(|error| anyhow!("these are no Rust tokens: {error}"))?;
    Ok(of_stream(stream))
}

/// The tokens of a stream.
pub fn of_stream(stream: TokenStream) -> Vec<Tree> {
    let mut trees = Vec::new();
    // Punctuation without a space inside: `(text, range)`.
    let mut run: Option<(String, Range<usize>)> = None;
    for token in stream {
        let range = token.span().byte_range();
        match token {
            TokenTree::Punct(punct) => {
                let (text, whole) = run.get_or_insert_with(|| (String::new(), range.clone()));
                text.push(punct.as_char());
                whole.end = range.end;
                if punct.spacing() == Spacing::Alone
                    && let Some((text, range)) = run.take()
                {
                    cut(&text, &range, &mut trees);
                }
            }
            TokenTree::Ident(ident) => match run.take() {
                Some((quote, start)) if quote.ends_with('\'') => {
                    cut(&quote[..quote.len() - 1], &start, &mut trees);
                    trees.push(Tree::Mark(format!("'{ident}"), start.end - 1..range.end));
                }
                _ => trees.push(Tree::Word(ident.to_string(), range)),
            },
            TokenTree::Literal(literal) => trees.push(Tree::Word(literal.to_string(), range)),
            TokenTree::Group(group) => {
                let open = match group.delimiter() {
                    Delimiter::Parenthesis => '(',
                    Delimiter::Bracket => '[',
                    Delimiter::Brace | Delimiter::None => '{',
                };
                trees.push(Tree::Group(open, of_stream(group.stream()), range));
            }
        }
    }
    trees
}

/// Cuts a run of punctuation into operators.
fn cut(run: &str, range: &Range<usize>, trees: &mut Vec<Tree>) {
    let (mut rest, mut at) = (run, range.start);
    while let Some(first) = rest.chars().next() {
        let length = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator))
            .map_or(first.len_utf8(), |o| o.len());
        trees.push(Tree::Mark(rest[..length].to_owned(), at..at + length));
        rest = &rest[length..];
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        fn flat(trees: &[Tree], out: &mut Vec<String>) {
            for tree in trees {
                match tree {
                    Tree::Word(text, _) | Tree::Mark(text, _) => out.push(text.clone()),
                    Tree::Group(open, inner, _) => {
                        out.push(open.to_string());
                        flat(inner, out);
                    }
                }
            }
        }
        let mut out = Vec::new();
        flat(&read(text).unwrap(), &mut out);
        out
    }

    #[test]
    fn operators_are_whole_and_generic_arguments_are_not() {
        assert_eq!(words("a != &&b;"), ["a", "!=", "&&", "b", ";"]);
        assert_eq!(words("f(x)?;"), ["f", "(", "x", "?", ";"]);
        assert_eq!(
            words("A<B<C>>::d('x', 0..=3)"),
            ["A", "<", "B", "<", "C", ">", ">", "::", "d", "(", "'x'", ",", "0", "..=", "3"]
        );
        assert_eq!(words("&'a str"), ["&", "'a", "str"]);
        assert_eq!(words("|&'a x| -> T"), ["|", "&", "'a", "x", "|", "->", "T"]);
    }

    #[test]
    fn tokens_know_their_bytes_and_comments_are_none() {
        let text = "a /* x */ . b(\n  1, // y\n 2)";
        let trees = read(text).unwrap();
        let slices: Vec<&str> = trees.iter().map(|tree| &text[tree.range()]).collect();
        assert_eq!(slices, ["a", ".", "b", "(\n  1, // y\n 2)"]);
        let other = read("a.b(1,2)").unwrap();
        assert!(trees.iter().zip(&other).all(|(a, b)| a.is_same(b)));
        assert!(read("f(").is_err());
    }
}
