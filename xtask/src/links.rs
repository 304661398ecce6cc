//! `cargo xtask links`: links between the pages lead somewhere, and the paths that `ARCHITECTURE.md` names exist.

mod markdown;
mod paths;

pub use markdown::inline_links;
pub use paths::join;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::args::Args;
use crate::tracked::Texts;
use crate::{findings, tracked};
use paths::Known;

/// Pages whose paths in backticks and in code maps must exist.
const MAPS: [&str; 1] = ["ARCHITECTURE.md"];

/// `cargo xtask links [--root DIR]`
pub fn run(mut args: Args) -> Result<()> {
    let root = args.root()?;
    args.finish()?;
    let known = Known::new(tracked::paths(&root)?);
    let pages = tracked::texts(&root, |path| path.ends_with(".md"))?;
    findings::none(&judge(&pages, &known), "links and paths that lead nowhere")?;
    println!("links: those of {} pages lead somewhere", pages.len());
    Ok(())
}

fn judge(pages: &Texts, known: &Known) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path.as_str(), markdown::anchors(text))).collect();
    let mut findings = Vec::new();
    for (page, text) in pages {
        let mut add = |line: usize, what: String| {
            findings.push(format!("{page}:{line}: {what}"));
        };
        for link in markdown::links(text) {
            if let Some(what) = broken(page, &link.target, known, &anchors) {
                add(link.line, what);
            }
        }
        if MAPS.contains(&page.as_str()) {
            for path in markdown::named_paths(text).into_iter().filter(|path| !known.has_suffix(&path.target))
            {
                add(path.line, format!("there is no {}", path.target));
            }
        }
    }
    findings
}

/// What is wrong with a link of `page`; links to other sites are not looked at.
fn broken(
    page: &str,
    target: &str,
    known: &Known,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let file = if path.is_empty() { page.to_owned() } else { paths::join(page, path)? };
    if !known.has(&file) {
        return Some(format!("the link to {target} leads to no file"));
    }
    let missing =
        anchor.filter(|anchor| anchors.get(file.as_str()).is_none_or(|known| !known.contains(*anchor)));
    missing.map(|anchor| format!("{file} has no heading #{anchor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(page: &str, text: &str) -> Vec<String> {
        let pages: Texts = [
            (page.to_owned(), text.to_owned()),
            ("docs/erase.md".to_owned(), "# Erase\n\n## What is erased\n".to_owned()),
        ]
        .into();
        let files = ["docs/erase.md", "README.md", "ARCHITECTURE.md", "agent/block/src/erase/mod.rs"];
        let known = Known::new(files.iter().map(|path| (*path).to_owned()).collect());
        judge(&pages, &known)
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# Top\n[a](docs/erase.md) [b](docs/erase.md#what-is-erased) [c](#top) [d](https://x.org/y)\n\
                    [e](docs/) [f](agent/block/src/erase/mod.rs) `[g](none)`\n\n[h]: docs/erase.md\n";
        assert_eq!(judged("README.md", text), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let text = "[a](docs/none.md)\n[b](docs/erase.md#none)\n[c](#none)\n\n[d]: none.md\n[e](../x)\n";
        assert_eq!(
            judged("README.md", text),
            [
                "README.md:1: the link to docs/none.md leads to no file",
                "README.md:2: docs/erase.md has no heading #none",
                "README.md:3: README.md has no heading #none",
                "README.md:5: the link to none.md leads to no file",
            ]
        );
    }

    #[test]
    fn a_link_is_relative_to_its_page() {
        assert!(judged("docs/boot.md", "[a](erase.md) [b](../README.md)").is_empty());
        assert_eq!(judged("docs/boot.md", "[a](docs/erase.md)").len(), 1);
    }

    #[test]
    fn paths_of_the_architecture_exist() {
        let text = "`block/src/erase/`, `erase/mod.rs`, `GET /v1/nodes`, `application/json`, `mod.rs`\n\
                    ```\nagent/block    disks\ndocs/{erase,none}.md  pages\n```\n`conductor/src/none.rs`\n";
        assert_eq!(
            judged("ARCHITECTURE.md", text),
            [
                "ARCHITECTURE.md:4: there is no docs/none.md",
                "ARCHITECTURE.md:6: there is no conductor/src/none.rs",
            ]
        );
        assert!(judged("README.md", text).is_empty());
    }
}
