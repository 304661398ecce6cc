//! What a page of Markdown links to, what it can be linked by, and which paths it names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, Parser, Tag, TagEnd};

use super::paths;

/// Something that a page names.
#[derive(Debug, PartialEq)]
pub struct Named {
    /// The line, from 1.
    pub line: usize,
    /// The link's target, or a path.
    pub target: String,
}

impl Named {
    fn new(page: &str, place: usize, target: impl Into<String>) -> Self {
        Self { line: page[..place].matches('\n').count() + 1, target: target.into() }
    }
}

/// The `[text](target)` of a page, images included, with the bytes of each.
pub fn inline_links(page: &str) -> impl Iterator<Item = (Range<usize>, CowStr<'_>)> {
    Parser::new(page).into_offset_iter().filter_map(|(event, range)| match event {
        Event::Start(
            Tag::Link { link_type: LinkType::Inline, dest_url, .. }
            | Tag::Image { link_type: LinkType::Inline, dest_url, .. },
        ) => Some((range, dest_url)),
        _ => None,
    })
}

/// The links of a page: `[text](target)` and `[name]: target`, outside code.
pub fn links(page: &str) -> Vec<Named> {
    let parser = Parser::new(page);
    let defined = parser.reference_definitions().iter();
    let defined = defined.map(|(_, link)| Named::new(page, link.span.start, link.dest.to_string()));
    let inline = inline_links(page).map(|(range, target)| Named::new(page, range.start, target.to_string()));
    let mut links: Vec<Named> = inline.chain(defined).collect();
    links.sort_by_key(|link| link.line);
    links
}

/// What the headings of a page can be linked by, as GitHub and mdBook make it, and its `<a id="…">`.
pub fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut times = BTreeMap::<String, usize>::new();
    let mut heading = String::new();
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading.clear(),
            Event::Text(text) | Event::Code(text) => heading.push_str(&text),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = slug(&heading);
                let before = times.entry(anchor.clone()).or_default();
                anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
                *before += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let rest = html.split_once("<a id=\"").or_else(|| html.split_once("<a name=\""));
                anchors.extend(rest.and_then(|(_, rest)| rest.split('"').next()).map(str::to_owned));
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Paths of files that a page names: in backticks, and as the first word of a line in a fenced block.
pub fn named_paths(page: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut add = |place: usize, path: &str| {
        if is_path(path) {
            found.extend(paths::expand(path).into_iter().map(|target| Named::new(page, place, target)));
        }
    };
    for (event, range) in Parser::new(page).into_offset_iter() {
        match event {
            Event::Code(text) => add(range.start, &text),
            Event::Start(Tag::CodeBlock(_)) => {
                let mut place = range.start;
                for line in page[range].split_inclusive('\n') {
                    let first = line.trim_end().split("  ").next().unwrap_or_default();
                    first.split(", ").for_each(|path| add(place, path));
                    place += line.len();
                }
            }
            _ => {}
        }
    }
    found
}

/// True for what looks like a file or directory of ours, and not like a URL's path, a media type or a command.
fn is_path(text: &str) -> bool {
    const ENDINGS: [&str; 5] = [".rs", ".md", ".toml", ".txt", ".py"];
    let legal = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},*".contains(c));
    let named = ENDINGS.iter().any(|ending| text.ends_with(ending) && text.len() > ending.len());
    let below = text.contains('/') && !text.starts_with('/') && !text.starts_with("application/");
    legal && (named || below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_made_as_github_makes_them() {
        let anchors = anchors(
            "# What's `up`, Doc?\n## A [link](x.md) here\n# Twice\n# Twice\n```\n# no\n```\n<a id=\"own\"></a>",
        );
        let anchors: Vec<_> = anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a-link-here", "own", "twice", "twice-1", "whats-up-doc"]);
    }

    #[test]
    fn code_is_no_link() {
        assert!(links("```\n[a](b)\n```\n`[a](b)`").is_empty());
        assert_eq!(links("x\n[a](b \"title\")"), [Named { line: 2, target: "b".into() }]);
    }
}
