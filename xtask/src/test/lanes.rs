//! Runs test binaries in lanes: those that compute one after the other, next to those that mostly wait.
//!
//! ```text
//! binaries ──order (pure)──► computing:  sim::seeds, explore::explore, …   one at a time, each uses all processors
//!                      └───► waiting:    the longest first                 WAITING at a time
//! ```
//!
//! cargo runs binaries one after the other. More than half of that time the processors had nothing to do, because
//! peers, deadlines and child processes were waited for.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result};
use fs_err as fs;

use super::binaries::Binary;
use super::spent::{self, Spent};
use super::tally::Tally;
use crate::sh;

/// Prefixes of what computes. These tests keep every processor busy by themselves.
const COMPUTING: [&str; 6] = ["sim", "explore", "api::fuzz", "block::drives", "fleet", "browser::page"];

/// Prefixes of what takes longest of the rest, longest first, so that none of them is the last to start. With PostgreSQL
/// the tests of the API take minutes.
const LONG: [&str; 9] = [
    "api::main::",
    "hwm-conformance::",
    "bmc::",
    "hwm-generic::",
    "agentd::",
    "hwm-host::",
    "block::",
    "sandbox::",
    "bench::",
];

/// How many binaries of the waiting lane run at a time.
const WAITING: usize = 2;

/// So many binaries that failed run again, alone. When more fail, it is not the load.
const AGAIN: usize = 3;

/// A binary that has ended.
struct Ended<'a> {
    binary: &'a Binary,
    status: Result<ExitStatus>,
    log: PathBuf,
    spent: Spent,
}

/// Runs every binary, shows what each printed when it has ended, and counts it. Returns whether all succeeded.
///
/// Tests have deadlines that a busy machine may miss: a binary that failed next to others runs again alone. That result counts, and the
/// end of the run names it. `env` is set for each of them.
pub fn run(binaries: &[Binary], env: &[(&str, &str)], tally: &mut Tally) -> Result<bool> {
    let logs = sh::target_dir().join("test-logs");
    fs::create_dir_all(&logs)?;
    let [computing, waiting] = order(binaries).map(Mutex::new);
    let (sender, ended) = channel();
    let mut lost = Vec::new();
    std::thread::scope(|scope| {
        let lanes = std::iter::once(&computing).chain(std::iter::repeat_n(&waiting, WAITING));
        for queue in lanes {
            let (sender, logs) = (sender.clone(), &logs);
            scope.spawn(move || drain(queue, env, logs, &sender));
        }
        drop(sender);
        for Ended { binary, status, log, spent } in ended {
            let name = binary.name();
            println!("\n     Running {name} ({:.1} s)", spent.time.as_secs_f64());
            tally.note(&name, spent);
            let before = (tally.passed, tally.failed);
            if !count(&name, status, &log, tally)? {
                lost.push((binary, tally.passed - before.0, tally.failed - before.1));
            }
        }
        anyhow::Ok(())
    })?;
    if lost.len() > AGAIN {
        return Ok(false);
    }
    let mut all = true;
    for (binary, passed, failed) in lost {
        let name = binary.name();
        println!("{name}: failed next to other tests, runs again alone");
        let log = log_of(binary, &logs).with_extension("again.log");
        let (status, _) = run_one(binary, env, &log)?;
        tally.retract(&name, passed, failed);
        match count(&name, Ok(status), &log, tally)? {
            true => tally.passed_alone.push(name),
            false => all = false,
        }
    }
    Ok(all)
}

/// Shows and counts what a binary has printed. Returns whether it succeeded.
fn count(name: &str, status: Result<ExitStatus>, log: &Path, tally: &mut Tally) -> Result<bool> {
    let printed = fs::read(log)?;
    let printed = String::from_utf8_lossy(&printed);
    tally.read(name, printed.lines().map(|line| Ok(line.to_owned())), || status)
}

/// What computes, and what waits with the longest first. A binary is in exactly one of them.
fn order(binaries: &[Binary]) -> [VecDeque<&Binary>; 2] {
    let rank =
        |binary: &Binary| LONG.iter().position(|long| binary.prefix.starts_with(long)).unwrap_or(LONG.len());
    let computes = |binary: &&Binary| {
        COMPUTING
            .iter()
            .any(|prefix| binary.prefix.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("::")))
    };
    let (computing, mut waiting): (Vec<&Binary>, Vec<&Binary>) = binaries.iter().partition(computes);
    waiting.sort_by_key(|binary| rank(binary));
    [computing.into(), waiting.into()]
}

/// Runs what stands in a queue until it is empty.
fn drain<'a>(
    queue: &Mutex<VecDeque<&'a Binary>>,
    env: &[(&str, &str)],
    logs: &Path,
    ended: &Sender<Ended<'a>>,
) {
    loop {
        let next = queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop_front();
        let Some(binary) = next else { return };
        let log = log_of(binary, logs);
        let (status, spent) = match run_one(binary, env, &log) {
            Ok((status, spent)) => (Ok(status), spent),
            Err(error) => (Err(error), Spent::default()),
        };
        if ended.send(Ended { binary, status, log, spent }).is_err() {
            return;
        }
    }
}

/// Where a binary's output goes. The tests of a crate's library and those of its program have one name, and may run at once; their
/// executables differ.
fn log_of(binary: &Binary, logs: &Path) -> PathBuf {
    let executable = Path::new(&binary.executable).file_name().unwrap_or_default().to_string_lossy();
    logs.join(format!("{}.{executable}.log", binary.name().replace("::", ".")))
}

/// Runs one binary. Its output goes to a file: a pipe would stay open as long as any process that a test
/// left behind.
fn run_one(binary: &Binary, env: &[(&str, &str)], log: &Path) -> Result<(ExitStatus, Spent)> {
    let out = File::create(log).with_context(|| log.display().to_string())?;
    let errors = out.try_clone()?;
    let mut command = binary.command();
    command.envs(env.iter().copied()).stdout(out).stderr(errors);
    let begun = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.executable))?;
    spent::until_end(&mut child, begun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn binary(prefix: &str) -> Binary {
        Binary { prefix: prefix.to_owned(), executable: String::new(), package: sh::root(), env: &[] }
    }

    /// A file with a script as a binary, which runs where the file is.
    fn script(path: &Path, prefix: &str) -> Binary {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let executable = path.display().to_string();
        Binary { executable, package: path.parent().unwrap().to_owned(), ..binary(prefix) }
    }

    #[test]
    fn each_binary_is_in_one_lane_and_the_longest_come_first() {
        let all = [
            "model::",
            "sim::seeds::",
            "agentd::",
            "simple::",
            "explore::",
            "hwm-conformance::good::",
            "api::main::",
        ];
        let all: Vec<Binary> = all.map(binary).into();
        let [computing, waiting] = order(&all);
        let names = |lane: &VecDeque<&Binary>| lane.iter().map(|b| b.name()).collect::<Vec<_>>();
        assert_eq!(names(&computing), ["sim::seeds", "explore"]);
        assert_eq!(names(&waiting), ["api::main", "hwm-conformance::good", "agentd", "model", "simple"]);
    }

    #[test]
    fn what_a_binary_prints_and_how_it_ends_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (shown, failing) = (dir.path().join("env.log"), dir.path().join("false.log"));
        let program = |name: &str| Binary { executable: name.to_owned(), ..binary("x::") };
        // `env` prints what it was started with.
        let (status, _) = run_one(&program("env"), &[("SIM_SEEDS", "50")], &shown).unwrap();
        assert!(status.success());
        let shown = fs::read_to_string(&shown).unwrap();
        assert!(shown.contains("SIM_SEEDS=50\n") && shown.contains("CARGO_MANIFEST_DIR="), "{shown}");
        assert!(!run_one(&program("false"), &[], &failing).unwrap().0.success());
        assert!(run_one(&program("no-such-program"), &[], &failing).is_err());
    }

    #[test]
    fn tests_of_a_library_and_of_its_program_are_counted_and_run_again_each_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
        // The program prints its result while the library's tests run.
        let library = "[ -e ended ] || read -r _ < pipe; echo 'test result: FAILED. 5 passed; 1 failed; 0 ignored'; exit 101";
        let program =
            "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'; [ -e ended ] || echo > pipe; touch ended";
        let both = ["program", "library"].map(|name| dir.path().join(name));
        for (path, text) in both.iter().zip([program, library]) {
            fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        }
        let both = both.map(|path| script(&path, "lanes-test-both::"));
        let mut tally = Tally::default();
        assert!(!run(&both, &[], &mut tally).unwrap(), "the library's tests fail alone, too");
        assert_eq!((tally.passed, tally.failed), (7, 1), "{:?}", tally.failures);
        assert_eq!(tally.passed_alone, <[&str; 0]>::default());
    }

    #[test]
    fn what_failed_next_to_others_runs_again_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (flaky, broken) = (dir.path().join("flaky"), dir.path().join("broken"));
        let failed = "echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101";
        let passed = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
        fs::write(
            &flaky,
            format!("#!/bin/sh\n[ -e seen ] && {{ {passed}; exit 0; }}\ntouch seen; {failed}\n"),
        )
        .unwrap();
        fs::write(&broken, format!("#!/bin/sh\n{failed}\n")).unwrap();
        let (flaky, broken) = (script(&flaky, "lanes-test-flaky::"), script(&broken, "lanes-test-broken::"));

        let mut tally = Tally::default();
        assert!(run(std::slice::from_ref(&flaky), &[], &mut tally).unwrap());
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (2, 0, 0));
        assert_eq!(tally.passed_alone, ["lanes-test-flaky"]);

        fs::remove_file(dir.path().join("seen")).unwrap();
        let mut tally = Tally::default();
        assert!(!run(&[flaky, broken], &[], &mut tally).unwrap());
        assert_eq!((tally.passed, tally.failed, tally.failures.len()), (3, 1, 1), "{:?}", tally.failures);
        assert_eq!(tally.passed_alone, ["lanes-test-flaky"]);
    }
}
