//! Generated pages: each is made anew and compared with the one that is checked in.
//!
//! A page that `xtask` makes is registered with its function; one that a crate makes, with the test that compares it.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::tracked::Texts;
use crate::{sh, tracked};

/// One generated page.
struct Page {
    /// Its path.
    path: &'static str,
    maker: Maker,
}

/// What makes a page.
enum Maker {
    /// A function of `xtask`, from the root of the repository.
    #[allow(dead_code, reason = "the first such page registers itself here")]
    Function(fn(&Path) -> Result<String>),
    /// A test of a crate, which compares the page, and writes it with [`WRITE`].
    Test {
        /// The crate's directory.
        dir: &'static str,
        /// The function.
        name: &'static str,
    },
}

/// The variable with which a test writes its page instead of comparing it.
const WRITE: &str = "ANNEAL_WRITE_DOCS";

const PAGES: &[Page] = &[
    Page {
        path: "docs/compatibility.md",
        maker: Maker::Test { dir: "controller/api", name: "the_table_of_endpoints_is_the_routers" },
    },
    Page {
        path: "docs/openapi.json",
        maker: Maker::Test { dir: "controller/api", name: "the_checked_in_document_is_the_one_that_is_made" },
    },
    Page {
        path: "docs/compatibility-agent.md",
        maker: Maker::Test { dir: "agent/agentd", name: "the_page_is_current" },
    },
];

/// Compares every generated page.
///
/// # Errors
/// When one is stale, or a test that writes pages is not registered.
pub fn check() -> Result<()> {
    let root = sh::root();
    let tests = tracked::texts(&root, |path| path.ends_with(".rs") && path.contains("/tests/"))?;
    let missing = unregistered(&tests, PAGES);
    ensure!(
        missing.is_empty(),
        "they write pages and are not in PAGES (xtask/src/generated.rs): {missing:?}"
    );
    for page in PAGES {
        match page.maker {
            Maker::Function(make) => {
                let kept = std::fs::read_to_string(root.join(page.path)).unwrap_or_default();
                compare(page.path, &make(&root)?, &kept)?;
            }
            Maker::Test { dir, name } => {
                run(&tests, dir, name).with_context(|| format!("{} is stale", page.path))?
            }
        }
    }
    println!("generated: {} pages are current", PAGES.len());
    Ok(())
}

/// Fails when a page is not what is made of the sources, and names the first line that differs.
fn compare(path: &str, made: &str, kept: &str) -> Result<()> {
    if made == kept {
        return Ok(());
    }
    let same = made.lines().zip(kept.lines()).take_while(|(made, kept)| made == kept).count();
    bail!("{path} is stale from line {} on", same + 1);
}

/// Runs one test of the crate in `dir`.
fn run(tests: &Texts, dir: &str, name: &str) -> Result<()> {
    let target =
        target(tests, dir, name).with_context(|| format!("no file in {dir}/tests has the test {name}"))?;
    let package = dir.rsplit('/').next().unwrap_or(dir);
    let mut command = sh::cargo();
    command.args(["test", "--quiet", "--package", package, "--test", target, "--", name]);
    sh::run(command.env_remove(WRITE))
}

/// The test program of a crate that has a test of this name.
fn target<'a>(tests: &'a Texts, dir: &str, name: &str) -> Option<&'a str> {
    let prefix = format!("{dir}/tests/");
    let function = format!("fn {name}(");
    let path = tests.iter().find(|(path, text)| path.starts_with(&prefix) && text.contains(&function))?.0;
    let first = path[prefix.len()..].split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

/// Test files that write pages and have no registered test.
fn unregistered<'a>(tests: &'a Texts, pages: &[Page]) -> Vec<&'a str> {
    let names: Vec<String> = pages
        .iter()
        .filter_map(|page| match page.maker {
            Maker::Test { name, .. } => Some(format!("fn {name}(")),
            Maker::Function(_) => None,
        })
        .collect();
    let writes = format!("var_os(\"{WRITE}\")");
    tests
        .iter()
        .filter(|(_, text)| text.contains(&writes) && !names.iter().any(|name| text.contains(name)))
        .map(|(path, _)| path.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests() -> Texts {
        let text = |name: &str| format!("fn {name}() {{ if std::env::var_os(\"{WRITE}\").is_some() {{}} }}");
        [
            ("a/b/tests/pages.rs".to_owned(), text("one")),
            ("a/b/tests/all/two.rs".to_owned(), text("two")),
            ("a/b/tests/other.rs".to_owned(), "fn three() {}".to_owned()),
        ]
        .into()
    }

    #[test]
    fn a_stale_page_is_named_with_its_line() {
        assert!(compare("a.md", "x\ny\n", "x\ny\n").is_ok());
        let error = compare("a.md", "x\ny\n", "x\nz\n").unwrap_err();
        assert_eq!(error.to_string(), "a.md is stale from line 2 on");
        assert!(compare("a.md", "x\ny\n", "x\n").is_err());
    }

    #[test]
    fn the_program_of_a_test_is_found() {
        assert_eq!(target(&tests(), "a/b", "one"), Some("pages"));
        assert_eq!(target(&tests(), "a/b", "two"), Some("all"));
        assert_eq!(target(&tests(), "a", "two"), None);
    }

    #[test]
    fn a_test_that_writes_a_page_is_registered() {
        let page = |name| Page { path: "x.md", maker: Maker::Test { dir: "a/b", name } };
        assert_eq!(unregistered(&tests(), &[page("one")]), ["a/b/tests/all/two.rs"]);
        assert!(unregistered(&tests(), &[page("one"), page("two")]).is_empty());
    }

    #[test]
    fn every_registered_page_and_test_exists() {
        let root = sh::root();
        let tests = tracked::texts(&root, |path| path.ends_with(".rs") && path.contains("/tests/")).unwrap();
        for page in PAGES {
            assert!(root.join(page.path).is_file(), "{}", page.path);
            if let Maker::Test { dir, name } = page.maker {
                assert!(target(&tests, dir, name).is_some(), "{dir} {name}");
            }
        }
    }
}
