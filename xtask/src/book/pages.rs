//! The pages as mdBook wants them: one directory, and links only to pages and files that are in it.
//!
//! The committed pages are written for a repository browser, with links to sources and to the pages at the root. In the
//! book, the pages of the root are next to those of `docs/`, and a link to a file that is not in the book becomes text.

use crate::links;

/// Pages at the root of the repository that are in the book.
pub const ROOT: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];

/// A committed page, or the summary, as it is in the book. `directory` is that of the page: `""`, `"docs"`,
/// `"docs/decisions"`.
pub fn for_book(page: &str, directory: &str) -> String {
    let mut text = page.to_owned();
    let mut links: Vec<_> = links::inline_links(page).collect();
    // From the end, so that the places before it stay as they are.
    links.reverse();
    for (range, target) in links {
        let link = &page[range.clone()];
        let Some(label_end) = link.rfind("](") else { continue };
        match in_book(&target, directory) {
            Some(place) => {
                let start = range.start + label_end + 2;
                text.replace_range(start..start + target.len(), &place);
            }
            None if link.starts_with('!') => {}
            None => text.replace_range(range, &link[1..label_end]),
        }
    }
    text
}

/// Where a link leads in the book, relative to the page; none if that is not in it.
fn in_book(target: &str, directory: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('#') {
        return Some(target.to_owned());
    }
    let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
    let whole = links::join(&format!("{directory}/page"), path)?;
    let whole = whole.trim_start_matches('/');
    let place = match whole.strip_prefix("docs/") {
        Some("SUMMARY.md") => "README.md",
        Some(inside) => inside,
        None if ROOT.contains(&whole) => whole,
        None => return None,
    };
    let up = "../".repeat(directory.strip_prefix("docs/").map_or(0, |below| below.split('/').count()));
    Some(format!("{up}{place}{anchor}"))
}

/// The code blocks of a page whose fence says `language`, in order.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fences = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    fences.filter(|(of, _)| *of == language).map(|(_, block)| block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sh;
    use fs_err as fs;

    #[test]
    fn links_lead_to_pages_of_the_book_or_become_text() {
        for (directory, line, wanted) in [
            ("docs", "see [a](erase.md#methods)", "see [a](erase.md#methods)"),
            ("docs", "see [a](../README.md#x) and [b](../agent/x.rs).", "see [a](README.md#x) and b."),
            ("", "![p](docs/images/p.svg) [c](docs/concepts.md)", "![p](images/p.svg) [c](concepts.md)"),
            ("", "[book](docs/SUMMARY.md) [web](https://x.y/)", "[book](README.md) [web](https://x.y/)"),
            (
                "docs/decisions",
                "[d](0015-rights.md) [e](../erase.md)",
                "[d](../decisions/0015-rights.md) [e](../erase.md)",
            ),
            ("docs", "`[not]` a [link] (here)", "`[not]` a [link] (here)"),
        ] {
            assert_eq!(for_book(line, directory), wanted, "{directory}");
        }
        assert_eq!(for_book("```\n[a](../b)\n```\n", "docs"), "```\n[a](../b)\n```\n");
    }

    #[test]
    fn code_blocks_are_found_by_language() {
        let page = "a\n```sh\nx\ny\n```\nb\n```toml\nz\n```\n";
        assert_eq!(blocks(page, "sh"), ["x\ny"]);
    }

    /// A page that is not in the summary is not in the book.
    #[test]
    fn every_page_is_in_the_summary_once() {
        let docs = sh::root().join("docs");
        let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
        for directory in ["", "decisions/"] {
            for entry in fs::read_dir(docs.join(directory)).unwrap() {
                let name = format!("{directory}{}", entry.unwrap().file_name().to_string_lossy());
                if name.ends_with(".md") && name != "SUMMARY.md" {
                    assert_eq!(
                        summary.matches(&format!("]({name})")).count(),
                        1,
                        "{name} in docs/SUMMARY.md"
                    );
                }
            }
        }
        for page in ROOT {
            assert!(summary.contains(&format!("](../{page})")), "{page}");
        }
    }
}
