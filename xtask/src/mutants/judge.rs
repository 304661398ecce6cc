//! What the output of a test run says.

use super::command::{Suite, TestCommand};

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
    let named = |name: &&str| name.contains(&test.filter);
    let lines = |word| output.lines().filter_map(move |line| result(test, line, word));
    let failed: Vec<String> = lines("FAIL").filter(named).map(str::to_owned).collect();
    let passed = lines("PASS").any(|name| named(&name));
    match (succeeded, failed.is_empty()) {
        (false, false) => Verdict::Failed(failed),
        (true, true) if passed => Verdict::Passed,
        (true, true) => Verdict::Broken(format!("no test called {} ran", test.filter)),
        (true, false) => Verdict::Broken("the run succeeded although the test failed".to_owned()),
        (false, true) => Verdict::Broken(format!("the run failed, but not in a test called {}", test.filter)),
    }
}

/// The name of a test with this result: `test a::b ... FAILED` of libtest, `FAIL name …` of machines and kill.
fn result<'a>(test: &TestCommand, line: &'a str, wanted: &str) -> Option<&'a str> {
    if matches!(test.suite, Suite::Machines | Suite::Kill) {
        return line.strip_prefix(wanted)?.strip_prefix(' ')?.split([' ', ':']).next();
    }
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let result = match result.trim() {
        "FAILED" => "FAIL",
        "ok" => "PASS",
        _ => return None,
    };
    (result == wanted).then_some(name.split(" - ").next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> TestCommand {
        TestCommand::parse(text).unwrap()
    }

    #[test]
    fn only_the_named_test_counts() {
        let output = "running 2 tests\ntest a::one ... ok\ntest two ... FAILED\n";
        let (one, two) = (command("cargo test -p x one"), command("cargo test -p x two"));
        assert_eq!(judge(&two, false, output), Verdict::Failed(vec!["two".into()]));
        assert_eq!(judge(&one, true, "test a::one ... ok\n"), Verdict::Passed);
        for (succeeded, output) in [
            (false, output),
            (true, "running 0 tests\n"),
            (false, "error: could not compile\n"),
            (true, "test one ... ignored\n"),
        ] {
            assert!(matches!(judge(&one, succeeded, output), Verdict::Broken(_)), "{output}");
        }
    }

    #[test]
    fn scenarios_are_read() {
        let test = command("machines --filter failing_disks");
        let red = "PASS other (3 s)\nFAIL failing_disks (61.0 s): expected clean failed\nmachines: 1 passed, 1 failed\n";
        assert_eq!(judge(&test, false, red), Verdict::Failed(vec!["failing_disks".into()]));
        assert_eq!(judge(&test, true, "PASS failing_disks (60.2 s)\n"), Verdict::Passed);
        assert!(matches!(judge(&test, false, "cannot create bridge\n"), Verdict::Broken(_)));
    }
}
