//! Generated pages: each is made anew and compared with the one that is checked in.
//!
//! `xtask` makes those of [`book`] itself; for a page that a crate makes, the test that compares it runs.

use anyhow::{Context, Result, ensure};

use crate::tracked::Texts;
use crate::{book, sh, tracked};

/// A page that a crate makes.
struct Page {
    /// Its path.
    path: &'static str,
    /// The crate's directory.
    dir: &'static str,
    /// The test that compares the page, and writes it with [`WRITE`].
    test: &'static str,
}

/// The variable with which a test writes its page instead of comparing it.
const WRITE: &str = "ANNEAL_WRITE_DOCS";

const PAGES: &[Page] = &[
    Page {
        path: "docs/compatibility.md",
        dir: "controller/api",
        test: "the_table_of_endpoints_is_the_routers",
    },
    Page {
        path: "docs/openapi.json",
        dir: "controller/api",
        test: "the_checked_in_document_is_the_one_that_is_made",
    },
    Page { path: "docs/compatibility-agent.md", dir: "agent/agentd", test: "the_page_is_current" },
];

/// Compares every generated page.
///
/// # Errors
/// A stale page; a test that writes pages and is not registered.
pub fn check() -> Result<()> {
    book::run(vec!["--check".to_owned()])?;
    let root = sh::root();
    let tests = tracked::texts(&root, |path| path.ends_with(".rs") && path.contains("/tests/"))?;
    let missing = unregistered(&tests, PAGES);
    ensure!(
        missing.is_empty(),
        "they write pages and are not in PAGES (xtask/src/generated.rs): {missing:?}"
    );
    for page in PAGES {
        run(&tests, page.dir, page.test).with_context(|| format!("{} is stale", page.path))?;
    }
    println!("generated: {} pages of crates are current", PAGES.len());
    Ok(())
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

/// The test program of a crate that has a test of this name: the file, or the one in which the file is a module.
fn target<'a>(tests: &'a Texts, dir: &str, name: &str) -> Option<&'a str> {
    let prefix = format!("{dir}/tests/");
    let function = format!("fn {name}(");
    let mut files = tests.iter().filter_map(|(path, text)| Some((path.strip_prefix(&prefix)?, text)));
    let found = module(files.clone().find(|(_, text)| text.contains(&function))?.0);
    let declaration = format!("mod {found};");
    let is_root = |path: &str| !path.contains('/') || path.ends_with("/main.rs");
    let root = files.find(|(path, text)| is_root(path) && text.contains(&declaration));
    Some(root.map_or(found, |(path, _)| module(path)))
}

/// The first part of a path below `tests`.
fn module(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or(path);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Test files that write pages and have no registered test.
fn unregistered<'a>(tests: &'a Texts, pages: &[Page]) -> Vec<&'a str> {
    let names: Vec<String> = pages.iter().map(|page| format!("fn {}(", page.test)).collect();
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
    fn the_program_of_a_test_is_found() {
        assert_eq!(target(&tests(), "a/b", "one"), Some("pages"));
        assert_eq!(target(&tests(), "a/b", "two"), Some("all"));
        assert_eq!(target(&tests(), "a", "two"), None);
        let mut merged = tests();
        merged.insert("a/b/tests/main.rs".to_owned(), "mod all;\nmod pages;\n".to_owned());
        assert_eq!(target(&merged, "a/b", "two"), Some("main"));
    }

    #[test]
    fn a_test_that_writes_a_page_is_registered() {
        let page = |test| Page { path: "x.md", dir: "a/b", test };
        assert_eq!(unregistered(&tests(), &[page("one")]), ["a/b/tests/all/two.rs"]);
        assert!(unregistered(&tests(), &[page("one"), page("two")]).is_empty());
    }

    #[test]
    fn every_registered_page_and_test_exists() {
        let root = sh::root();
        let tests = tracked::texts(&root, |path| path.ends_with(".rs") && path.contains("/tests/")).unwrap();
        for page in PAGES {
            assert!(root.join(page.path).is_file(), "{}", page.path);
            assert!(target(&tests, page.dir, page.test).is_some(), "{} {}", page.dir, page.test);
        }
    }
}
