//! Generated pages: each is made anew and compared with the one that is checked in.
//!
//! `xtask` makes those of [`book`] itself; for a page that a crate makes, the test that compares it runs.

use anyhow::{Context, Result};

use crate::test_names::TestNames;
use crate::tracked::{Texts, Workspace};
use crate::{book, findings, sh};

/// A page that a crate makes.
struct Page {
    /// Its path.
    path: &'static str,
    /// The crate.
    package: &'static str,
    /// The integration test that compares the page, and writes it with [`WRITE`].
    test: &'static str,
}

/// The variable with which a test writes its page instead of comparing it.
const WRITE: &str = "ANNEAL_WRITE_DOCS";

const PAGES: &[Page] = &[
    Page { path: "docs/compatibility.md", package: "api", test: "the_table_of_endpoints_is_the_routers" },
    Page {
        path: "docs/openapi.json",
        package: "api",
        test: "the_checked_in_document_is_the_one_that_is_made",
    },
    Page { path: "docs/compatibility-agent.md", package: "agentd", test: "the_page_is_current" },
];

/// Compares every generated page.
///
/// # Errors
/// A stale page; a test that writes pages and is not registered.
pub fn check() -> Result<()> {
    book::check()?;
    let workspace = Workspace::read(&sh::root())?;
    findings::none(&unregistered(&workspace.texts, PAGES), "tests that write pages and are not in PAGES")?;
    let names = TestNames::of(&workspace);
    for Page { path, package, test } in PAGES {
        let program = program(&names, package, test)?;
        let mut command = sh::cargo();
        command.args(["test", "--quiet", "--package", package, "--test", program, "--", test]);
        sh::run(command.env_remove(WRITE)).with_context(|| format!("{path} is stale"))?;
    }
    println!("generated: {} pages of crates are current", PAGES.len());
    Ok(())
}

/// The program of an integration test.
fn program<'a>(names: &'a TestNames, package: &str, test: &str) -> Result<&'a str> {
    let prefix = format!("{package}::");
    let name = names.below(&prefix).find(|name| name.ends_with(&format!("::{test}")));
    name.and_then(|name| name.split("::").next()).with_context(|| format!("{package} has no test {test}"))
}

/// Test files that write pages and have no registered test.
fn unregistered(texts: &Texts, pages: &[Page]) -> Vec<String> {
    let names: Vec<String> = pages.iter().map(|page| format!("fn {}(", page.test)).collect();
    let writes = format!("var_os(\"{WRITE}\")");
    let writing = texts.iter().filter(|(path, text)| {
        path.contains("/tests/") && text.contains(&writes) && !names.iter().any(|name| text.contains(name))
    });
    writing.map(|(path, _)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_writes_a_page_is_registered() {
        let text = |name: &str| format!("fn {name}() {{ if std::env::var_os(\"{WRITE}\").is_some() {{}} }}");
        let tests: Texts = [
            ("a/b/tests/pages.rs".to_owned(), text("one")),
            ("a/b/tests/all/two.rs".to_owned(), text("two")),
            ("a/b/tests/other.rs".to_owned(), "fn three() {}".to_owned()),
        ]
        .into();
        let page = |test| Page { path: "x.md", package: "b", test };
        assert_eq!(unregistered(&tests, &[page("one")]), ["a/b/tests/all/two.rs"]);
        assert!(unregistered(&tests, &[page("one"), page("two")]).is_empty());
    }

    #[test]
    fn every_registered_page_and_test_exists() {
        let names = TestNames::of(&Workspace::read(&sh::root()).unwrap());
        for Page { path, package, test } in PAGES {
            assert!(sh::root().join(path).is_file(), "{path}");
            program(&names, package, test).unwrap();
        }
        assert_eq!(program(&names, "api", PAGES[0].test).unwrap(), "main");
        assert!(program(&names, "api", "no_such_test").is_err());
    }
}
