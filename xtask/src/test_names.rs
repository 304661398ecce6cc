//! The tests of the workspace by their names: `crate::path::name`, and the scenarios `machines:NAME`, `contract:NAME`
//! and `kill:NAME`.
//!
//! The path of an integration test begins with the name of its program: `model::requests::verbs`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use crate::tracked::Workspace;

/// Lists of scenarios.
const SCENARIOS: [(&str, &str); 3] = [
    ("machines", "tests/machines/src/scenarios/mod.rs"),
    ("contract", "tests/contract/src/scenarios/mod.rs"),
    ("kill", "tests/kill/src/story.rs"),
];

/// Crates whose ignored tests `cargo xtask test` runs as well.
const RUNS_IGNORED: [&str; 2] = ["lab", "machines"];

/// The names, and whether `cargo xtask test` runs each.
pub struct TestNames(BTreeMap<String, bool>);

impl TestNames {
    /// Those of a workspace.
    pub fn of(workspace: &Workspace) -> Self {
        let mut names = BTreeMap::new();
        for (krate, dir) in workspace.crates() {
            let main = workspace.texts.get(&format!("{dir}/tests/main.rs"));
            for (path, text) in workspace.below(dir) {
                let Some(modules) = modules(path, main.map_or("", String::as_str)) else { continue };
                for (test, ignored) in tests(text) {
                    let name = [&[krate.to_owned()], &modules[..], &[test]].concat().join("::");
                    names.insert(name, !ignored || RUNS_IGNORED.contains(&krate));
                }
            }
        }
        for (suite, file) in SCENARIOS {
            for line in workspace.texts.get(file).into_iter().flat_map(|text| text.lines()) {
                let quoted = line.split_once("name: \"").map(|(_, rest)| rest);
                let quoted = quoted.or_else(|| line.trim_start().strip_prefix("(\""));
                let name = quoted.and_then(|rest| rest.split('"').next());
                let by_default = !line.contains("by_default: false");
                names.extend(name.map(|name| (format!("{suite}:{name}"), by_default)));
            }
        }
        Self(names)
    }

    /// # Errors
    /// When there is no test of this name, or `cargo xtask test` does not run it.
    pub fn ensure_runs(&self, name: &str) -> Result<()> {
        let runs = self.0.get(name).with_context(|| format!("no test {name}"))?;
        ensure!(*runs, "{name} runs only when it is named");
        Ok(())
    }

    /// The names that begin with `prefix`, without it.
    pub fn below(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(move |name| name.strip_prefix(prefix))
    }
}

/// The modules of a file of a crate; `main` is the text of its `tests/main.rs`.
fn modules(path: &str, main: &str) -> Option<Vec<String>> {
    let (top, rest) = path.strip_suffix(".rs")?.split_once('/')?;
    let mut modules: Vec<String> = rest.split('/').map(str::to_owned).collect();
    let is_root = match top {
        "src" => |last: &str| ["lib", "main", "mod"].contains(&last),
        "tests" => |last: &str| ["main", "mod"].contains(&last),
        _ => return None,
    };
    if (top == "src" || modules.len() > 1) && modules.last().is_some_and(|last| is_root(last)) {
        modules.pop();
    }
    // Unit tests in a file next to that of their module.
    if let Some(last) = modules.last_mut() {
        *last = last.strip_suffix("_tests").map_or(last.clone(), |of| format!("{of}::tests"));
    }
    if top == "tests" && main.contains(&format!("mod {};", modules[0])) {
        modules.insert(0, "main".to_owned());
    }
    Some(modules)
}

/// The tests of a file with the modules in it, and whether each is ignored. Modules are known by their indentation.
fn tests(text: &str) -> Vec<(String, bool)> {
    let mut tests = Vec::new();
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut attributes = Vec::new();
    for line in text.lines() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        if code.starts_with("#[") || code.starts_with("//") {
            attributes.push(code);
            continue;
        }
        if let Some(module) = code.strip_suffix(" {").and_then(|code| code.strip_prefix("mod ")) {
            modules.push((indentation, module));
        }
        if code == "}" {
            modules.pop_if(|(outer, _)| *outer == indentation);
        }
        let function = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ");
        let is_test = |line: &&str| **line == *"#[test]" || line.starts_with("#[tokio::test");
        if let Some((name, _)) = function.and_then(|function| function.split_once('('))
            && attributes.iter().any(is_test)
        {
            let path: Vec<&str> = modules.iter().map(|(_, module)| *module).chain([name]).collect();
            tests.push((path.join("::"), attributes.iter().any(|line| line.starts_with("#[ignore"))));
        }
        attributes.clear();
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sh;

    #[test]
    fn tests_are_functions_that_the_harness_runs() {
        let text = "#[test]\nfn one() {}\nfn two() {}\nmod inner {\n    #[tokio::test(start_paused = true)]\n    \
                    /// Why.\n    async fn three() {}\n}\n#[test]\n#[ignore = \"slow\"]\nfn four() {}\n// fn five() {}\n";
        let wanted = [("one", false), ("inner::three", false), ("four", true)];
        assert_eq!(super::tests(text), wanted.map(|(name, ignored)| (name.to_owned(), ignored)));
    }

    #[test]
    fn a_file_has_the_modules_of_its_path() {
        for (path, wanted) in [
            ("src/lib.rs", ""),
            ("src/a/mod.rs", "a"),
            ("src/a/b.rs", "a::b"),
            ("src/a/b_tests.rs", "a::b::tests"),
            ("tests/main.rs", "main"),
            ("tests/own.rs", "own"),
            ("tests/part/x.rs", "main::part::x"),
            ("tests/fuzz/main.rs", "fuzz"),
        ] {
            assert_eq!(modules(path, "mod part;\n").unwrap().join("::"), wanted, "{path}");
        }
        assert_eq!(modules("benches/a.rs", ""), None);
    }

    #[test]
    fn names_of_this_repository_are_known() {
        let names = TestNames::of(&Workspace::read(&sh::root()).unwrap());
        for name in [
            "model::plan::tests::automated_order_is_priority_then_interface_then_name",
            "model::provision_table::wire_strings_are_unambiguous",
            "xtask::test_names::tests::names_of_this_repository_are_known",
            "machines:clean_uefi",
        ] {
            names.ensure_runs(name).unwrap();
        }
        for bad in
            ["model::step::automated_plan", "nosuch::a", "nosuch", "contract:calibration", "model::nosuch"]
        {
            assert!(names.ensure_runs(bad).is_err(), "{bad}");
        }
        assert!(names.below("kill:").any(|name| name == "whole_life"));
    }

    /// A target may be left out by `test = false` only where it has no tests.
    #[test]
    fn no_test_lies_where_cargo_runs_none() {
        let workspace = Workspace::read(&sh::root()).unwrap();
        let mut left_out = 0;
        for (krate, dir) in workspace.crates() {
            let manifest: toml::Table = workspace.texts[&format!("{dir}/Cargo.toml")].parse().unwrap();
            let is_left_out =
                |target: &&toml::Value| target.get("test").and_then(toml::Value::as_bool) == Some(false);
            let library = manifest.get("lib").filter(is_left_out).map(|_| "src/");
            let programs = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
            let programs = programs.filter(is_left_out).filter_map(|program| program.get("path")?.as_str());
            for place in library.into_iter().chain(programs) {
                left_out += 1;
                let found = workspace.below(dir).filter(|(path, _)| path.starts_with(place));
                let found: Vec<_> = found.flat_map(|(_, text)| super::tests(text)).collect();
                assert_eq!(found, [], "{krate}: {place}");
            }
        }
        assert!(left_out > 10, "{left_out}");
    }
}
