//! What an edit looks for: a short sequence of tokens, with wildcards for names that are not the point.
//!
//! ```text
//! $name       one identifier, one literal, or one pair of brackets with what is between them
//! $..name     any number of tokens, up to what follows in the pattern
//! ```
//!
//! A wildcard that stands twice stands for the same tokens. What it stood for can be used in the replacement.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};

use super::tokens::{self, Kind, Token};

/// A sequence to look for.
#[derive(Debug)]
pub struct Pattern(Vec<Part>);

#[derive(Debug)]
enum Part {
    Token(String),
    One(String),
    Many(String),
}

/// What the wildcards stand for.
type Bound = Vec<(String, Range<usize>)>;

/// A place where a pattern was found.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// The bytes that it covers.
    pub range: Range<usize>,
    bound: Bound,
}

impl Pattern {
    /// # Errors
    /// When the text is not made of Rust tokens, or has only wildcards.
    pub fn parse(text: &str) -> Result<Self> {
        let all = tokens::read(text)?;
        let mut parts = Vec::new();
        let mut tokens =
            all.iter().enumerate().filter(|(at, _)| !is_optional(&all, *at)).map(|(_, token)| token);
        while let Some(token) = tokens.next() {
            if token.text != "$" {
                parts.push(Part::Token(token.text.clone()));
                continue;
            }
            let mut name = tokens.next();
            let wide = name.is_some_and(|token| token.text == "..");
            if wide {
                name = tokens.next();
            }
            let Some(Token { kind: Kind::Word, text, .. }) = name else { bail!("a name follows a $") };
            parts.push(if wide { Part::Many(text.clone()) } else { Part::One(text.clone()) });
        }
        let is_fixed = |part: &Part| matches!(part, Part::Token(text) if !"()[]{}".contains(text.as_str()));
        ensure!(parts.iter().any(is_fixed), "{text:?} has nothing that is fixed");
        Ok(Self(parts))
    }

    /// All places that lie in `range` of a text with these tokens.
    pub fn find(&self, text: &str, tokens: &[Token], range: &Range<usize>) -> Vec<Found> {
        let source = Source { text, tokens };
        let starts = (0..tokens.len()).filter(|at| tokens[*at].range.start >= range.start);
        let found = starts.filter_map(|at| {
            let mut bound = Vec::new();
            let end = source.matched(&self.0, at, &mut bound).filter(|end| *end > at)?;
            Some(Found { range: tokens[at].range.start..tokens[end - 1].range.end, bound })
        });
        found.filter(|found| found.range.end <= range.end).collect()
    }
}

impl Found {
    /// The replacement with what the wildcards stand for.
    ///
    /// # Errors
    /// When it has a wildcard that the pattern does not have.
    pub fn fill(&self, text: &str, replacement: &str) -> Result<String> {
        let mut out = String::new();
        let mut rest = replacement;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let (after, wide) = after.strip_prefix("..").map_or((after, false), |after| (after, true));
            let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            rest = &after[name.len()..];
            // Not a wildcard: `{:1$}` in a format string.
            if name.is_empty() && !wide {
                out.push('$');
                continue;
            }
            let known = self.bound.iter().find(|(known, _)| *known == name);
            let (_, range) =
                known.with_context(|| format!("`replace` has ${name}, which `find` does not have"))?;
            out.push_str(&text[range.clone()]);
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// True for the comma before a closing bracket, which rustfmt adds where it breaks a line.
fn is_optional(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.text == ",")
        && tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Close)
}

/// What is searched.
struct Source<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

impl Source<'_> {
    /// The index after the last token that the parts cover from `at` on.
    fn matched(&self, parts: &[Part], at: usize, bound: &mut Bound) -> Option<usize> {
        let Some((part, rest)) = parts.split_first() else { return Some(at) };
        match part {
            Part::Token(wanted) => {
                let closes = [")", "]", "}"].contains(&wanted.as_str());
                let at = if closes && is_optional(self.tokens, at) { at + 1 } else { at };
                let token = self.tokens.get(at)?;
                if token.text == *wanted { self.matched(rest, at + 1, bound) } else { None }
            }
            Part::One(name) => {
                let token = self.tokens.get(at)?;
                let is_one =
                    matches!(token.kind, Kind::Word | Kind::Open) && self.bind(name, at, token.end, bound);
                if is_one { self.matched(rest, token.end, bound) } else { None }
            }
            Part::Many(name) => {
                let known = bound.len();
                let mut end = at;
                loop {
                    if self.bind(name, at, end, bound)
                        && let Some(last) = self.matched(rest, end, bound)
                    {
                        return Some(last);
                    }
                    bound.truncate(known);
                    end = self.tokens.get(end).filter(|token| token.kind != Kind::Close)?.end;
                }
            }
        }
    }

    /// Notes that a wildcard stands for the tokens from `at` to `end`; false when it already stands for others.
    fn bind(&self, name: &str, at: usize, end: usize, bound: &mut Bound) -> bool {
        // Of no token: the place where it would be.
        let start = self.tokens.get(at).map_or(self.text.len(), |token| token.range.start);
        let range = start..if end > at { self.tokens[end - 1].range.end } else { start };
        let words = |range: &Range<usize>| self.text[range.clone()].split_whitespace();
        match bound.iter().find(|(known, _)| known == name) {
            Some((_, known)) => words(known).eq(words(&range)),
            None => {
                bound.push((name.to_owned(), range));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, find: &str, replace: &str) -> Vec<String> {
        let tokens = tokens::read(text).unwrap();
        let found = Pattern::parse(find).unwrap().find(text, &tokens, &(0..text.len()));
        let edited = found.iter().map(|found| {
            let new = found.fill(text, replace).unwrap();
            format!("{}{new}{}", &text[..found.range.start], &text[found.range.end..])
        });
        edited.collect()
    }

    #[test]
    fn every_place_is_found_and_white_space_and_names_do_not_matter() {
        for (text, find, replace, wanted) in [
            ("f(a\n  .b)", "a.b", "c", &["f(c)"][..]),
            ("x == y; x = y", "x = y", "z", &["x == y; z"]),
            ("f(a); g(f(a))", "f(a)", "b", &["b; g(f(a))", "f(a); g(b)"]),
            ("f(a, b)", "f(a)", "", &[]),
            ("a && b", "&& b", "", &["a "]),
            ("f(\n    a,\n    b,\n)", "f(a, b)", "c", &["c"]),
            ("if x.a != y.a { z }", "$l.a != $r.a", "$l.a == $r.a", &["if x.a == y.a { z }"]),
            ("if c(1) { z }", "if $..cond { $..body }", "$..body", &["z"]),
            ("g(if c { z })", "g($body)", "$body", &[]),
            ("g({ z })", "g($body)", "$body", &["{ z }"]),
            ("f(a, b, c)", "f(a, $..rest)", "g($..rest)", &["g(b, c)"]),
            ("f(\n    a,\n    b,\n)", "f($..all)", "$..all", &["a,\n    b"]),
            ("f()", "f($..rest)", "g($..rest)", &["g()"]),
            ("x + x; x + y", "$a + $a", "1", &["1; x + y"]),
            ("[1, 2]", "[$..head, 2]", "[$..head]", &["[1]"]),
        ] {
            assert_eq!(edited(text, find, replace), wanted, "{text}");
        }
    }

    #[test]
    fn a_pattern_has_something_fixed_and_a_replacement_no_other_wildcards() {
        for text in ["$a", "", "$ ;", "($a)"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        let tokens = tokens::read("a + b").unwrap();
        let found = Pattern::parse("$x + b").unwrap().find("a + b", &tokens, &(0..5));
        assert_eq!(found[0].fill("a + b", "\"{:1$}\" $x").unwrap(), "\"{:1$}\" a");
        assert!(found[0].fill("a + b", "$y").is_err());
    }
}
