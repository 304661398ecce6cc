//! Whether the test that a row names exists.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::command::TestCommand;
use super::items::Sources;

/// # Errors
/// When the crate that the command names has no test function or scenario of that name.
pub fn check(test: &TestCommand, sources: &Sources) -> Result<()> {
    let (paths, wanted) = match test {
        TestCommand::Cargo { selection, filter, .. } => {
            let value = |flag: &str| {
                let at = selection.iter().position(|word| word == flag)?;
                selection.get(at + 1)
            };
            let dir = sources.dir(value("-p").context("no crate")?)?;
            let paths = match value("--test") {
                Some(file) => test_binary(&dir.join("tests"), file)?,
                None => vec![dir.join("src")],
            };
            (paths, format!("fn {}(", filter.rsplit("::").next().unwrap_or(filter)))
        }
        TestCommand::Machines { filter } => {
            (vec![sources.dir("machines")?.join("src")], format!("    (\"{filter}"))
        }
        TestCommand::Kill { filter } => (vec![sources.dir("kill")?.join("src")], format!("name: \"{filter}")),
    };
    let mut files = Vec::new();
    for path in paths {
        add_files(&path, &mut files)?;
    }
    ensure!(files.iter().any(|text| text.contains(&wanted)), "there is no `{wanted}` for `{test}`");
    Ok(())
}

/// The files of an integration test: `FILE.rs` with the modules that it declares, or the directory of `FILE/main.rs`.
fn test_binary(tests: &Path, file: &str) -> Result<Vec<PathBuf>> {
    let root = tests.join(format!("{file}.rs"));
    if !root.is_file() {
        return Ok(vec![tests.join(file)]);
    }
    let text = fs::read_to_string(&root).with_context(|| format!("cannot read {}", root.display()))?;
    let modules = text.lines().filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'));
    let mut paths: Vec<PathBuf> =
        modules.flat_map(|module| [tests.join(format!("{module}.rs")), tests.join(module)]).collect();
    paths.push(root);
    Ok(paths)
}

/// The texts of the Rust files at a path; none where there is no such path.
fn add_files(path: &Path, texts: &mut Vec<String>) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
            add_files(&entry?.path(), texts)?;
        }
    } else if path.is_file() && path.extension() == Some("rs".as_ref()) {
        texts.push(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_binary_has_the_modules_that_it_declares() {
        let dir = std::env::temp_dir().join(format!("anneal-named-{}", std::process::id()));
        fs::create_dir_all(dir.join("two")).unwrap();
        fs::write(dir.join("one.rs"), "mod a;\nmod inline {}\n").unwrap();
        let paths = |file: &str| test_binary(&dir, file).unwrap();
        assert_eq!(paths("one"), [dir.join("a.rs"), dir.join("a"), dir.join("one.rs")]);
        assert_eq!(paths("two"), [dir.join("two")]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_test_is_looked_for_in_its_crate() {
        let sources = Sources::of(&crate::sh::root()).unwrap();
        let found = |text: &str| check(&TestCommand::parse(text).unwrap(), &sources);
        found("cargo test -p xtask mutants::named::tests::a_test_is_looked_for_in_its_crate").unwrap();
        for text in [
            "cargo test -p model a_test_is_looked_for_in_its_crate",
            "cargo test -p xtask --test nosuch a_test_is_looked_for_in_its_crate",
            "cargo test -p nosuch a",
            "machines --filter nosuch",
            "kill --filter nosuch",
        ] {
            assert!(found(text).is_err(), "{text}");
        }
    }
}
