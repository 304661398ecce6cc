//! Which tests ran and passed, by the names that `docs/specs.md` gives them.
//!
//! A line `test NAME ... ok` does not name the crate of the test, and other output may be written into the middle of
//! it. So the lines are not read: cargo lists the binaries of a selection, each binary lists its tests, and when all
//! binaries have succeeded without a filter, every test that is not ignored has passed. A scenario reports its result in
//! a line of its own.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Result;

use super::binaries::Binary;
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

impl Ran {
    /// Whether this test ran and passed.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Adds the tests of these binaries, after all of them have succeeded.
    pub fn add_binaries(&mut self, binaries: &[Binary], listed: Listed) -> Result<()> {
        binaries.iter().try_for_each(|binary| self.add_binary(binary, listed))
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_scenario_reports_in_a_line_of_its_own() {
        let mut ran = Ran::default();
        for line in
            ["PASS clean_uefi (61.2 s)", "FAIL failing_disks: no (60.0 s)", "     kept: /tmp/x", "PASS word"]
        {
            ran.add_scenario("machines", line);
        }
        ran.add_scenario("contract", "ok    stock_client (12.0 s)");
        assert!(ran.has("machines:clean_uefi") && ran.has("contract:stock_client"));
        assert!(
            !ran.has("machines:failing_disks")
                && !ran.has("machines:stock_client")
                && !ran.has("machines:word")
        );
    }

    /// The real libtest, of this very binary.
    #[test]
    fn a_binary_lists_its_tests() {
        let executable = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let mut ran = Ran::default();
        let binary = Binary { prefix: "xtask::".into(), executable, package: sh::root(), env: &[] };
        ran.add_binary(&binary, Listed::All).unwrap();
        assert!(ran.has("xtask::test::ran::tests::a_binary_lists_its_tests"), "{ran:?}");
    }
}
