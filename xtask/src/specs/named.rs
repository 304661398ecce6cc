//! Whether a test that is named exists: `crate::path::name`, `machines:NAME`, `contract:NAME`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::sh;

/// Lists of the scenarios that `cargo xtask test` runs.
const SCENARIOS: [(&str, &str); 2] = [
    ("machines", "tests/machines/src/scenarios/mod.rs"),
    ("contract", "tests/contract/src/scenarios/mod.rs"),
];

/// Crates whose ignored tests `cargo xtask test` runs as well.
const RUNS_IGNORED: [&str; 2] = ["lab", "machines"];

/// Where tests can be.
pub struct Tests {
    root: PathBuf,
    /// Directory of each crate.
    crates: BTreeMap<String, PathBuf>,
}

impl Tests {
    /// Those of the workspace at `root`.
    pub fn of_workspace(root: &Path) -> Result<Self> {
        let text =
            sh::output(sh::cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
        let mut crates = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let (name, manifest) = (package["name"].as_str(), package["manifest_path"].as_str());
            if let (Some(name), Some(dir)) = (name, manifest.and_then(|path| Path::new(path).parent())) {
                crates.insert(name.to_owned(), dir.to_owned());
            }
        }
        Ok(Self { root: root.to_owned(), crates })
    }

    /// # Errors
    /// When there is no such test, or it does not run, or two could be meant.
    pub fn find(&self, name: &str) -> Result<()> {
        for (suite, file) in SCENARIOS {
            if let Some(scenario) = name.strip_prefix(suite).and_then(|rest| rest.strip_prefix(':'))
                && !scenario.starts_with(':')
            {
                let list = fs::read_to_string(self.root.join(file))
                    .with_context(|| format!("cannot read {file}"))?;
                ensure!(has_scenario(&list, scenario), "no scenario {name} in {file}");
                return Ok(());
            }
        }
        let parts: Vec<_> = name.split("::").collect();
        let [krate, modules @ .., function] = &parts[..] else {
            anyhow::bail!("{name:?} is not crate::path::name");
        };
        let dir = self.crates.get(*krate).with_context(|| format!("{name}: there is no crate {krate}"))?;
        let mut found = Vec::new();
        for (file, inner) in places(modules) {
            let path = dir.join(file);
            if let Ok(text) = fs::read_to_string(&path)
                && inner.iter().all(|module| text.contains(&format!("mod {module} {{")))
                && is_test(&text, function, RUNS_IGNORED.contains(krate))
            {
                found.push(path);
            }
        }
        ensure!(!found.is_empty(), "no test {name}");
        ensure!(found.len() == 1, "{name} could be in any of {found:?}");
        Ok(())
    }
}

/// Files in which a module of this path may be, with the modules that are then inside the file.
fn places<'a>(modules: &'a [&'a str]) -> Vec<(PathBuf, &'a [&'a str])> {
    let mut places = vec![("src/lib.rs".into(), modules), ("src/main.rs".into(), modules)];
    for cut in 1..=modules.len() {
        let (outer, inner) = modules.split_at(cut);
        let path = outer.join("/");
        let files = [
            format!("src/{path}.rs"),
            format!("src/{path}/mod.rs"),
            format!("tests/{path}.rs"),
            format!("tests/{path}/main.rs"),
        ];
        places.extend(files.map(|file| (file.into(), inner)));
        // Modules of `tests/main.rs` lie next to it.
        if let ["main", module @ ..] = outer {
            let path = module.join("/");
            let files = [format!("tests/{path}.rs"), format!("tests/{path}/mod.rs")];
            places.extend(files.map(|file| (file.into(), inner)));
        }
    }
    places
}

/// The text has a function of this name that the test harness runs.
fn is_test(text: &str, function: &str, runs_ignored: bool) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let begins = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|line| line.strip_prefix(function))
            .is_some_and(|rest| rest.starts_with('('))
    };
    (0..lines.len()).filter(|at| begins(lines[*at])).any(|at| {
        let head =
            || lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let marked = head().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"));
        marked && (runs_ignored || !head().any(|line| line.starts_with("#[ignore")))
    })
}

/// The list has a scenario of this name that runs without being named.
fn has_scenario(list: &str, scenario: &str) -> bool {
    let names = [format!("name: \"{scenario}\""), format!("    (\"{scenario}\", ")];
    let has = |line: &str| names.iter().any(|name| line.contains(name));
    list.lines().any(|line| has(line) && !line.contains("by_default: false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_functions_that_the_harness_runs() {
        let text = "#[test]\nfn one() {}\nfn two() {}\n    #[tokio::test(start_paused = true)]\n    /// Why.\n    \
                    async fn three() {}\n#[test]\n#[ignore = \"slow\"]\nfn four() {}\n// fn five() {}\n";
        assert!(is_test(text, "one", false) && is_test(text, "three", false));
        for not in ["two", "four", "five", "on", "six"] {
            assert!(!is_test(text, not, false), "{not}");
        }
        assert!(is_test(text, "four", true));
    }

    #[test]
    fn scenarios_that_only_run_when_named_do_not_count() {
        let list = "    Scenario { name: \"a\", run: a::run, by_default: true },\n    Scenario { name: \"b\", run: \
                    b::run, by_default: false },\n    (\"c\", c::ABOUT, c::story),\n";
        assert!(has_scenario(list, "a") && has_scenario(list, "c"));
        assert!(!has_scenario(list, "b") && !has_scenario(list, "nosuch"));
    }

    #[test]
    fn a_name_is_found_in_the_one_file_it_can_be_in() {
        let tests = Tests::of_workspace(&sh::root()).unwrap();
        tests.find("model::plan::tests::automated_order_is_priority_then_interface_then_name").unwrap();
        tests.find("model::provision_table::wire_strings_are_unambiguous").unwrap();
        tests.find("xtask::specs::named::tests::a_name_is_found_in_the_one_file_it_can_be_in").unwrap();
        for bad in
            ["model::step::automated_plan", "nosuch::a", "nosuch", "contract:calibration", "model::nosuch"]
        {
            assert!(tests.find(bad).is_err(), "{bad}");
        }
    }
}
