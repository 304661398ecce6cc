//! Whether the test that a row names exists.

use std::fs;
use std::path::Path;

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
                Some(file) => vec![dir.join(format!("tests/{file}.rs")), dir.join("tests").join(file)],
                None => vec![dir.join("src")],
            };
            (paths, format!("fn {}(", filter.rsplit("::").next().unwrap_or(filter)))
        }
        TestCommand::Machines { filter } => (vec![sources.dir("machines")?.join("src")], scenario(filter)),
        TestCommand::Kill { filter } => (vec![sources.dir("kill")?.join("src")], scenario(filter)),
    };
    let mut files = Vec::new();
    for path in paths {
        add_files(&path, &mut files)?;
    }
    ensure!(files.iter().any(|text| text.contains(&wanted)), "there is no `{wanted}` for `{test}`");
    Ok(())
}

fn scenario(filter: &str) -> String {
    format!("name: \"{filter}")
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
