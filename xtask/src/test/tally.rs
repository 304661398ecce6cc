//! What passed, failed and took long so far, in all parts of a run.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::ran::Ran;
use super::spent::{self, Spent};

/// How many of the longest parts a run lists at its end.
const LONGEST: usize = 15;

/// Most lines of a suite that failed which a run repeats at its end: who sees only the end of a log sees why.
const REPEATED: usize = 60;

/// Counts of a whole run.
#[derive(Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    /// For each part that failed one line, and behind it what it says of that.
    pub failures: Vec<String>,
    /// What failed next to others, and passed alone.
    pub passed_alone: Vec<String>,
    pub ran: Ran,
    times: Vec<(String, Spent)>,
}

impl Tally {
    /// Runs a suite, shows its output and counts the passes and failures it reports. Returns whether it succeeded.
    pub fn take(&mut self, name: &str, command: &mut Command) -> Result<bool> {
        let begun = Instant::now();
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let mut spent = Spent::default();
        let succeeded = self.read(name, lines, || {
            let status;
            (status, spent) = spent::until_end(&mut child, begun)?;
            Ok(status)
        });
        self.note(name, spent);
        succeeded
    }

    /// Counts the lines that a suite printed; `end` returns its exit status.
    pub fn read(
        &mut self,
        name: &str,
        lines: impl Iterator<Item = std::io::Result<String>>,
        end: impl FnOnce() -> Result<ExitStatus>,
    ) -> Result<bool> {
        let (mut passed, mut failed) = (0, 0);
        let mut printed = Vec::new();
        for line in lines {
            let line = line?;
            println!("{line}");
            self.ran.add_scenario(name, &line);
            if let Some((p, f)) = counts(&line) {
                passed += p;
                failed += f;
            }
            printed.push(line);
        }
        let status = end()?;
        // A suite that died, or that counts no failure and yet exits non-zero, is one more failure.
        if !status.success() && failed == 0 {
            failed = 1;
        }
        if failed > 0 {
            let mut failure = format!("{name}: {failed} failed, {status}");
            reasons(&printed).for_each(|line| failure = format!("{failure}\n  {line}"));
            self.failures.push(failure);
        }
        self.passed += passed;
        self.failed += failed;
        Ok(failed == 0)
    }

    /// Takes back the counts of a suite that runs again.
    pub fn retract(&mut self, name: &str, passed: usize, failed: usize) {
        self.passed -= passed.min(self.passed);
        self.failed -= failed.min(self.failed);
        self.failures.retain(|failure| !failure.starts_with(&format!("{name}: ")));
    }

    /// Runs a part that has no tests to count, and notes how long it took.
    pub fn timed<T>(&mut self, name: &str, part: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let done = part();
        self.note(name, Spent { time: begun.elapsed(), processor: None });
        done
    }

    /// Notes what a part of the run took.
    pub fn note(&mut self, name: &str, spent: Spent) {
        self.times.push((name.to_owned(), spent));
    }

    /// The parts that took longest, longest first, one line each.
    pub fn longest(&self) -> impl Iterator<Item = String> {
        let mut times = self.times.clone();
        times.sort_by(|a, b| b.1.time.cmp(&a.1.time).then_with(|| a.0.cmp(&b.0)));
        times.into_iter().take(LONGEST).map(|(name, Spent { time, processor })| {
            let processor = processor.map_or(String::new(), |spent| format!("{:.1} s", spent.as_secs_f64()));
            format!("{:6.1} s {processor:>8}  {name}", time.as_secs_f64())
        })
    }
}

/// A suite that runs next to others. Its output is kept until [`Background::end`] shows it.
pub struct Background {
    child: Child,
    begun: Instant,
    printed: JoinHandle<std::io::Result<(Vec<String>, Duration)>>,
}

impl Background {
    pub fn start(command: &mut Command) -> Result<Self> {
        let begun = Instant::now();
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let printed = std::thread::spawn(move || Ok((lines.collect::<Result<_, _>>()?, begun.elapsed())));
        Ok(Self { child, begun, printed })
    }

    /// Waits for the suite to end, shows and counts its output. Returns the names of the scenarios that failed.
    pub fn end(mut self, name: &str, tally: &mut Tally) -> Result<Vec<String>> {
        let (printed, took) = self.printed.join().map_err(|_| anyhow!("the reader of {name} panicked"))??;
        let lost = printed.iter().filter_map(|line| line.strip_prefix("FAIL  ")?.split(' ').next());
        let lost = lost.map(str::to_owned).collect();
        let mut processor = None;
        tally.read(name, printed.into_iter().map(Ok), || {
            let (status, spent) = spent::until_end(&mut self.child, self.begun)?;
            processor = spent.processor;
            Ok(status)
        })?;
        // It may have ended long before it was waited for.
        tally.note(name, Spent { time: took, processor });
        Ok(lost)
    }
}

/// What a suite says of its failures: of libtest from `failures:` to the closing line; of ours the lines that begin with `FAIL`.
fn reasons(printed: &[String]) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    let said = printed.iter().map(String::as_str).filter(move |line| {
        is_inside = (is_inside || *line == "failures:") && !line.starts_with("test result: ");
        is_inside && !line.is_empty() || line.starts_with("FAIL")
    });
    said.take(REPEATED)
}

/// The counts of a closing line: libtest's `test result: ok. 3 passed; 0 failed; …`, or ours, `machines: 3 passed, 0 failed`.
fn counts(line: &str) -> Option<(usize, usize)> {
    let tail = match line.strip_prefix("test result: ") {
        Some(rest) => rest.split_once(". ")?.1,
        None => {
            let (name, rest) = line.split_once(": ")?;
            name.bytes().all(|byte| byte.is_ascii_lowercase()).then_some(rest)?
        }
    };
    let mut words = tail.split([' ', ';', ',']).filter(|word| !word.is_empty());
    let passed = words.next()?.parse().ok()?;
    (words.next()? == "passed").then_some(())?;
    let failed = words.next()?.parse().ok()?;
    (words.next()? == "failed").then_some((passed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_read() {
        assert_eq!(counts("test result: ok. 14 passed; 0 failed; 1 ignored; 0 measured"), Some((14, 0)));
        assert_eq!(counts("test result: FAILED. 3 passed; 2 failed; 0 ignored"), Some((3, 2)));
        assert_eq!(counts("machines: 9 passed, 1 failed"), Some((9, 1)));
        assert_eq!(counts("test tests::x: 9 passed, 1 failed"), None);
        assert_eq!(counts("running 3 tests"), None);
    }

    #[test]
    fn what_a_suite_says_of_its_failures_is_repeated() {
        let printed = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nError: no\n\nfailures:\n    b\n\n\
                       test result: FAILED. 1 passed; 1 failed\nFAIL  lost_step: late (3.0 s)\nkill: 1 passed, 1 failed";
        let printed: Vec<String> = printed.lines().map(str::to_owned).collect();
        let said: Vec<&str> = reasons(&printed).collect();
        let wanted = [
            "failures:",
            "---- b stdout ----",
            "Error: no",
            "failures:",
            "    b",
            "FAIL  lost_step: late (3.0 s)",
        ];
        assert_eq!(said, wanted);
        let long = vec!["FAIL  x".to_owned(); 2 * REPEATED];
        assert_eq!(reasons(&long).count(), REPEATED);
    }

    #[test]
    fn the_longest_parts_come_first() {
        let mut tally = Tally::default();
        for (name, seconds) in [("a", 2), ("b", 5), ("c", 2)] {
            let time = Duration::from_secs(seconds);
            tally.note(name, Spent { time, processor: (seconds == 5).then_some(time * 2) });
        }
        let wanted = ["   5.0 s   10.0 s  b", "   2.0 s           a", "   2.0 s           c"];
        assert_eq!(tally.longest().collect::<Vec<_>>(), wanted);
    }
}
