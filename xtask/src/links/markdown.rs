//! What a page of Markdown links to, and what it can be linked by.

use std::collections::{BTreeMap, BTreeSet};

use super::paths;

/// Something that a page names.
#[derive(Debug, PartialEq)]
pub struct Named {
    /// The line, from 1.
    pub line: usize,
    /// The link's target, or a path.
    pub target: String,
}

/// The lines of a page, from 1, and whether each is part of a fenced block.
fn lines(text: &str) -> Vec<(usize, &str, bool)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        lines.push((index + 1, line, fenced || fence));
        fenced ^= fence;
    }
    lines
}

/// The links of a page: `[text](target)` and `[name]: target`, outside code.
pub fn links(text: &str) -> Vec<Named> {
    let mut links = Vec::new();
    for (line, text, _) in lines(text).into_iter().filter(|(_, _, fenced)| !fenced) {
        // Every second part stands in backticks.
        let prose: String = text.split('`').step_by(2).collect();
        for rest in prose.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            links.push(Named { line, target: target.trim_matches(['<', '>']).to_owned() });
        }
        if let Some((name, target)) = prose.trim_start().split_once("]: ")
            && name.starts_with('[')
            && !name.contains(']')
        {
            let target = target.split_whitespace().next().unwrap_or_default();
            links.push(Named { line, target: target.to_owned() });
        }
    }
    links
}

/// What the headings of a page can be linked by, as GitHub and mdBook make it.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut times = BTreeMap::<String, usize>::new();
    for (_, line, _) in lines(text).into_iter().filter(|(_, _, fenced)| !fenced) {
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let anchor = slug(heading);
            let before = times.entry(anchor.clone()).or_default();
            anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
            *before += 1;
        }
        for attribute in ["<a id=\"", "<a name=\""] {
            for rest in line.split(attribute).skip(1) {
                anchors.extend(rest.split('"').next().map(str::to_owned));
            }
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    // Of a link in a heading, only its text.
    let text = heading.split("](").enumerate().fold(String::new(), |all, (at, part)| {
        all + if at == 0 { part } else { part.split_once(')').map_or("", |(_, after)| after) }
    });
    let kept = text.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Paths of files that a page names: in backticks, and as the first word of a line in a fenced block.
pub fn named_paths(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for (line, text, fenced) in lines(text) {
        let candidates: Vec<&str> = match fenced {
            true => text.split("  ").take(1).flat_map(|first| first.split(", ")).collect(),
            false => text.split('`').skip(1).step_by(2).collect(),
        };
        for path in candidates.into_iter().filter(|text| is_path(text)) {
            found.extend(paths::expand(path).into_iter().map(|target| Named { line, target }));
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
