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

use super::tokens::{self, Tree};

/// A sequence to look for.
#[derive(Debug)]
pub struct Pattern(Vec<Part>);

#[derive(Debug)]
enum Part {
    Token(Tree),
    Group(char, Vec<Part>),
    One(String),
    Many(String),
}

/// A place where a pattern was found.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// The bytes that it covers.
    pub range: Range<usize>,
    /// What the wildcards stand for.
    bound: Vec<(String, Range<usize>)>,
}

impl Pattern {
    /// # Errors
    /// When the text is not made of Rust tokens, or has only wildcards.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = parts(&tokens::read(text)?)?;
        ensure!(parts.iter().any(Part::is_fixed), "{text:?} has nothing that is fixed");
        Ok(Self(parts))
    }

    /// All places among `trees`, at any depth, that lie in `range` of `text`.
    pub fn find(&self, text: &str, trees: &[Tree], range: &Range<usize>) -> Vec<Found> {
        let mut found = Vec::new();
        self.find_below(text, trees, range, &mut found);
        found
    }

    fn find_below(&self, text: &str, trees: &[Tree], range: &Range<usize>, found: &mut Vec<Found>) {
        for (at, tree) in trees.iter().enumerate() {
            let place = tree.range();
            if place.end <= range.start || place.start >= range.end {
                continue;
            }
            let mut bound = Vec::new();
            if place.start >= range.start
                && let Some(end) = matched(&self.0, text, trees, at, false, &mut bound)
                && end > at
                && trees[end - 1].range().end <= range.end
            {
                found.push(Found { range: place.start..trees[end - 1].range().end, bound });
            }
            if let Tree::Group(_, inner, _) = tree {
                self.find_below(text, inner, range, found);
            }
        }
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
            let (_, range) = self
                .bound
                .iter()
                .find(|(known, _)| *known == name)
                .with_context(|| format!("`replace` has ${name}, which `find` does not have"))?;
            out.push_str(&text[range.clone()]);
        }
        out.push_str(rest);
        Ok(out)
    }
}

impl Part {
    fn is_fixed(&self) -> bool {
        match self {
            Self::Token(_) => true,
            Self::Group(_, inner) => inner.iter().any(Self::is_fixed),
            Self::One(_) | Self::Many(_) => false,
        }
    }
}

fn parts(trees: &[Tree]) -> Result<Vec<Part>> {
    let mark = |at: usize, wanted: &str| matches!(trees.get(at), Some(Tree::Mark(text, _)) if text == wanted);
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        at += 1;
        match tree {
            Tree::Mark(text, _) if text == "$" => {
                let wide = mark(at, "..");
                at += usize::from(wide);
                let Some(Tree::Word(name, _)) = trees.get(at) else { bail!("a name follows a $") };
                at += 1;
                parts.push(if wide { Part::Many(name.clone()) } else { Part::One(name.clone()) });
            }
            Tree::Group(open, inner, _) => parts.push(Part::Group(*open, self::parts(without_comma(inner))?)),
            _ => parts.push(Part::Token(tree.clone())),
        }
    }
    Ok(parts)
}

/// What brackets hold without the comma before the closing one, which rustfmt adds where it breaks a line.
fn without_comma(trees: &[Tree]) -> &[Tree] {
    match trees {
        [inner @ .., Tree::Mark(text, _)] if text == "," => inner,
        _ => trees,
    }
}

/// The index after the last tree that the parts cover from `at` on. `whole`: they cover all that is left.
fn matched(
    parts: &[Part],
    text: &str,
    trees: &[Tree],
    at: usize,
    whole: bool,
    bound: &mut Vec<(String, Range<usize>)>,
) -> Option<usize> {
    let Some((part, rest)) = parts.split_first() else {
        return (!whole || at == trees.len()).then_some(at);
    };
    let longest = match part {
        Part::Many(_) => trees.len() - at,
        _ => 1,
    };
    let shortest = usize::from(!matches!(part, Part::Many(_)));
    for length in shortest..=longest {
        let known = bound.len();
        let covered = trees.get(at..at + length)?;
        let fits = match (part, covered) {
            (Part::Token(token), [tree]) => token.is_same(tree),
            (Part::Group(open, inner), [Tree::Group(other, trees, _)]) => {
                open == other && matched(inner, text, without_comma(trees), 0, true, bound).is_some()
            }
            (Part::One(name), [Tree::Word(..) | Tree::Group(..)]) | (Part::Many(name), _) => {
                bind(name, text, covered, at, trees, bound)
            }
            _ => false,
        };
        if fits && let Some(end) = matched(rest, text, trees, at + length, whole, bound) {
            return Some(end);
        }
        bound.truncate(known);
    }
    None
}

/// Notes what a wildcard stands for; false when it already stands for something else.
fn bind(
    name: &str,
    text: &str,
    covered: &[Tree],
    at: usize,
    trees: &[Tree],
    bound: &mut Vec<(String, Range<usize>)>,
) -> bool {
    let range = match covered {
        [first, .., last] => first.range().start..last.range().end,
        [one] => one.range(),
        // No token: the place where it would be.
        [] => {
            let place = trees.get(at).map_or(0, |next| next.range().start);
            place..place
        }
    };
    let same = |known: &Range<usize>| {
        text[known.clone()].split_whitespace().eq(text[range.clone()].split_whitespace())
    };
    match bound.iter().find(|(other, _)| other == name) {
        Some((_, known)) => same(known),
        None => {
            bound.push((name.to_owned(), range));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, find: &str, replace: &str) -> Vec<String> {
        let trees = tokens::read(text).unwrap();
        let found = Pattern::parse(find).unwrap().find(text, &trees, &(0..text.len()));
        found
            .iter()
            .map(|found| {
                let new = found.fill(text, replace).unwrap();
                format!("{}{new}{}", &text[..found.range.start], &text[found.range.end..])
            })
            .collect()
    }

    #[test]
    fn white_space_does_not_matter_and_every_place_is_found() {
        assert_eq!(edited("f(a\n  .b)", "a.b", "c"), ["f(c)"]);
        assert_eq!(edited("x == y; x = y", "x = y", "z"), ["x == y; z"]);
        assert_eq!(edited("f(a); g(f(a))", "f(a)", "b"), ["b; g(f(a))", "f(a); g(b)"]);
        assert!(edited("f(a, b)", "f(a)", "").is_empty());
        assert_eq!(edited("a && b", "&& b", ""), ["a "]);
        assert_eq!(edited("f(\n    a,\n    b,\n)", "f(a, b)", "c"), ["c"]);
    }

    #[test]
    fn wildcards_stand_for_names_and_groups() {
        assert_eq!(edited("if x.a != y.a { z }", "$l.a != $r.a", "$l.a == $r.a"), ["if x.a == y.a { z }"]);
        assert_eq!(edited("if c(1) { z }", "if $..cond { $..body }", "$..body"), ["z"]);
        assert_eq!(edited("g(if c { z })", "g($body)", "$body"), Vec::<String>::new());
        assert_eq!(edited("g({ z })", "g($body)", "$body"), ["{ z }"]);
        assert_eq!(edited("f(a, b, c)", "f(a, $..rest)", "g($..rest)"), ["g(b, c)"]);
        assert_eq!(edited("f()", "f($..rest)", "g($..rest)"), ["g()"]);
        assert_eq!(edited("x + x; x + y", "$a + $a", "1"), ["1; x + y"]);
        assert_eq!(edited("[1, 2]", "[$..head, 2]", "[$..head]"), ["[1]"]);
    }

    #[test]
    fn a_pattern_has_something_fixed_and_a_replacement_no_other_wildcards() {
        assert!(
            Pattern::parse("$a").is_err() && Pattern::parse("").is_err() && Pattern::parse("$ ;").is_err()
        );
        let trees = tokens::read("a + b").unwrap();
        let found = Pattern::parse("$x + b").unwrap().find("a + b", &trees, &(0..5));
        assert_eq!(found[0].fill("a + b", "\"{:1$}\" $x").unwrap(), "\"{:1$}\" a");
        assert!(found[0].fill("a + b", "$y").is_err());
    }
}
