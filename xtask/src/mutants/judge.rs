//! What the output of a test run says.

use super::command::TestCommand;

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The test ran and passed.
    Passed,
    /// These tests, of those named, ran and failed.
    Failed(Vec<String>),
    /// It did not end within this many seconds.
    Hung(u64),
    /// Nothing can be said: it did not build, did not run, or died without a word about the test.
    Broken(String),
}

/// Judge by exit code and output: what fails is caught only if the named test itself says `FAILED`.
pub fn judge(test: &TestCommand, succeeded: bool, output: &str) -> Verdict {
    let named = |name: &&str| name.contains(test.filter());
    let failed: Vec<String> =
        output.lines().filter_map(|line| failure(test, line)).filter(named).map(str::to_owned).collect();
    let passed = output.lines().filter_map(|line| success(test, line)).any(|name| named(&name));
    match (succeeded, failed.is_empty()) {
        (false, false) => Verdict::Failed(failed),
        (true, true) if passed => Verdict::Passed,
        (true, true) => Verdict::Broken(format!("no test called {} ran", test.filter())),
        (true, false) => Verdict::Broken("the run succeeded although the test failed".to_owned()),
        (false, true) => {
            Verdict::Broken(format!("the run failed, but not in a test called {}", test.filter()))
        }
    }
}

/// The name of a test that failed: `test a::b ... FAILED` of libtest, `FAIL name …` of machines and kill.
fn failure<'a>(test: &TestCommand, line: &'a str) -> Option<&'a str> {
    result(test, line, &["FAILED"], "FAIL ")
}

fn success<'a>(test: &TestCommand, line: &'a str) -> Option<&'a str> {
    result(test, line, &["ok"], "PASS ")
}

fn result<'a>(test: &TestCommand, line: &'a str, libtest: &[&str], machines: &str) -> Option<&'a str> {
    match test {
        TestCommand::Cargo { .. } => {
            let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
            let name = name.split(" - ").next().unwrap_or(name);
            libtest.contains(&result.trim()).then_some(name)
        }
        TestCommand::Machines { .. } | TestCommand::Kill { .. } => {
            line.strip_prefix(machines)?.split([' ', ':']).next()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(filter: &str) -> TestCommand {
        TestCommand::Cargo { selection: vec!["-p".into(), "x".into()], filter: filter.into(), ignored: false }
    }

    #[test]
    fn only_the_named_test_counts() {
        let output = "running 2 tests\ntest a::one ... ok\ntest two ... FAILED\n";
        assert_eq!(judge(&cargo("two"), false, output), Verdict::Failed(vec!["two".into()]));
        assert!(matches!(judge(&cargo("one"), false, output), Verdict::Broken(_)));
        assert_eq!(judge(&cargo("one"), true, "test a::one ... ok\n"), Verdict::Passed);
        assert!(matches!(judge(&cargo("one"), true, "running 0 tests\n"), Verdict::Broken(_)));
        assert!(matches!(judge(&cargo("one"), false, "error: could not compile\n"), Verdict::Broken(_)));
        assert!(matches!(judge(&cargo("one"), true, "test one ... ignored\n"), Verdict::Broken(_)));
    }

    #[test]
    fn scenarios_are_read() {
        let test = TestCommand::Machines { filter: "write_errors".into() };
        let red = "PASS other (3 s)\nFAIL write_errors (61.0 s): expected clean failed\nmachines: 1 passed, 1 failed\n";
        assert_eq!(judge(&test, false, red), Verdict::Failed(vec!["write_errors".into()]));
        assert_eq!(judge(&test, true, "PASS write_errors (60.2 s)\n"), Verdict::Passed);
        assert!(matches!(judge(&test, false, "cannot create bridge\n"), Verdict::Broken(_)));
    }
}
