//! Which tests ran and passed, by the names that `docs/specs.md` gives them.
//!
//! A line `test NAME ... ok` says neither of which crate the test is nor that nothing else was written into the
//! middle of it. So the lines are not read: cargo tells which binaries it makes of a selection, each binary lists
//! its tests, and when `cargo test` of that selection has ended well without a filter, all that are not ignored have
//! passed. Scenarios are told by a line each.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sh;

/// Names of tests that passed: `crate::path::name`, `machines:NAME`, `contract:NAME`.
#[derive(Debug, Default)]
pub struct Ran(BTreeSet<String>);

/// Which tests of a binary were to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// All that are not ignored.
    All,
    /// Those that are ignored, alone.
    Ignored,
}

/// A binary with tests.
#[derive(Debug, PartialEq)]
struct Binary {
    /// What stands before the names of its tests: `model::` for those in `src`, `model::requests::` for those in
    /// `tests/requests.rs`.
    prefix: String,
    executable: String,
}

impl Ran {
    /// Whether this test ran and passed.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Tests of what `cargo test` of this selection builds, for after it has succeeded.
    pub fn add_cargo(&mut self, selection: &[&str], listed: Listed) -> Result<()> {
        let mut build = sh::cargo();
        build
            .args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"])
            .args(selection);
        for binary in binaries(&sh::output(&mut build)?)? {
            self.add_binary(&binary, listed)?;
        }
        Ok(())
    }

    fn add_binary(&mut self, binary: &Binary, listed: Listed) -> Result<()> {
        let list = |words: &[&str]| {
            sh::output(Command::new(&binary.executable).args(["--list", "--format=terse"]).args(words))
        };
        match listed {
            Listed::All => self.add_listed(&binary.prefix, &list(&[])?, &list(&["--ignored"])?),
            Listed::Ignored => self.add_listed(&binary.prefix, &list(&["--ignored"])?, ""),
        }
        Ok(())
    }

    /// The tests of a list without those of another.
    fn add_listed(&mut self, prefix: &str, all: &str, ignored: &str) {
        let names = |list| str::lines(list).filter_map(|line| line.strip_suffix(": test"));
        let ignored: BTreeSet<&str> = names(ignored).collect();
        self.0
            .extend(names(all).filter(|name| !ignored.contains(name)).map(|name| format!("{prefix}{name}")));
    }

    /// A line of the output of `machines` or `contract`: `PASS NAME (3.0 s)`, `ok    NAME (3.0 s)`.
    pub fn add_scenario(&mut self, suite: &str, line: &str) {
        let passed = line.strip_prefix("PASS ").or_else(|| line.strip_prefix("ok    "));
        if let Some((name, rest)) = passed.and_then(|rest| rest.split_once(" ("))
            && rest.ends_with(" s)")
        {
            self.0.insert(format!("{suite}:{name}"));
        }
    }
}

/// The binaries with tests among cargo's messages.
fn binaries(messages: &str) -> Result<Vec<Binary>> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: Value =
            serde_json::from_str(line).with_context(|| format!("a message of cargo: {line}"))?;
        let Some(executable) = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)
        else {
            continue;
        };
        let id = message["package_id"].as_str().unwrap_or_default();
        let krate =
            package(id).with_context(|| format!("no name in the package id {id:?} of {executable}"))?;
        let target = &message["target"];
        let prefix = match target["name"].as_str() {
            Some(name) if target["kind"][0] == "test" => format!("{krate}::{name}::"),
            _ => format!("{krate}::"),
        };
        found.push(Binary { prefix, executable: executable.to_owned() });
    }
    Ok(found)
}

/// The name in `path+file:///a/model#0.1.0` and in `path+file:///a/b#model@0.1.0`.
fn package(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded, with most keys left out.
    const MESSAGES: &str = r#"{"reason":"compiler-artifact","package_id":"registry+https://github.com/rust-lang/crates.io-index#cfg-if@1.0.4","target":{"kind":["lib"],"name":"cfg_if"},"profile":{"test":false},"executable":null,"fresh":true}
{"reason":"build-script-executed","package_id":"registry+https://github.com/rust-lang/crates.io-index#libc@0.2.191","linked_libs":[]}
{"reason":"compiler-artifact","package_id":"path+file:///w/controller/api#0.1.0","target":{"kind":["test"],"name":"bad_input","src_path":"/w/controller/api/tests/bad_input/main.rs"},"profile":{"test":true},"executable":"/w/target/debug/deps/bad_input-d0","fresh":true}
{"reason":"compiler-artifact","package_id":"path+file:///w/controller/api#0.1.0","target":{"kind":["example"],"name":"memory"},"profile":{"test":false},"executable":"/w/target/debug/examples/memory","fresh":false}
{"reason":"compiler-artifact","package_id":"path+file:///w/agent/agentd#0.1.0","target":{"kind":["bin"],"name":"anneal-agent"},"profile":{"test":true},"executable":"/w/target/debug/deps/anneal_agent-0d","fresh":true}
{"reason":"compiler-artifact","package_id":"path+file:///w/elsewhere#model@0.1.0","target":{"kind":["lib"],"name":"model"},"profile":{"test":true},"executable":"/w/target/debug/deps/model-4d","fresh":true}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn binaries_give_their_tests_the_names_of_the_specifications() {
        let found = binaries(MESSAGES).unwrap();
        let shown: Vec<_> = found.iter().map(|binary| (&binary.prefix[..], &binary.executable[..])).collect();
        assert_eq!(
            shown,
            [
                ("api::bad_input::", "/w/target/debug/deps/bad_input-d0"),
                ("agentd::", "/w/target/debug/deps/anneal_agent-0d"),
                ("model::", "/w/target/debug/deps/model-4d"),
            ]
        );
        assert!(binaries("warning: not JSON").is_err());
    }

    #[test]
    fn ignored_tests_have_not_run() {
        let mut ran = Ran::default();
        let all = "what_follows: test\nrecorded::same_bytes: test\nslow: test\nfast: benchmark\n";
        ran.add_listed("api::bad_input::", all, "slow: test\n");
        assert!(ran.has("api::bad_input::what_follows") && ran.has("api::bad_input::recorded::same_bytes"));
        for not in ["api::bad_input::slow", "api::bad_input::fast", "what_follows", "api::what_follows"] {
            assert!(!ran.has(not), "{not}");
        }
    }

    #[test]
    fn scenarios_are_told_by_a_line_each() {
        let mut ran = Ran::default();
        for line in
            ["PASS clean_uefi (61.2 s)", "FAIL write_errors: no (60.0 s)", "     kept: /tmp/x", "PASS word"]
        {
            ran.add_scenario("machines", line);
        }
        ran.add_scenario("contract", "ok    stock_client (12.0 s)");
        assert!(ran.has("machines:clean_uefi") && ran.has("contract:stock_client"));
        assert!(
            !ran.has("machines:write_errors")
                && !ran.has("machines:stock_client")
                && !ran.has("machines:word")
        );
    }

    /// The real libtest, of this very binary.
    #[test]
    fn a_binary_lists_its_tests() {
        let executable = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let mut ran = Ran::default();
        ran.add_binary(&Binary { prefix: "xtask::".into(), executable }, Listed::All).unwrap();
        assert!(ran.has("xtask::test::ran::tests::a_binary_lists_its_tests"), "{ran:?}");
    }
}
