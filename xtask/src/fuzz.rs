//! `cargo xtask fuzz`: libFuzzer over everything that reads what a drive, a disk, a manager, a bundle or an image says.
//!
//! The targets are in `tests/fuzz`, whose own test gives them random bytes in every test run. libFuzzer also sees what each input
//! reaches. What `cargo fuzz` does for that on a stable compiler is the flags below, so that nothing has to be installed for it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::args::Args;
use crate::{deps, sh};

/// All of them, as in `tests/fuzz/src/targets`.
const TARGETS: [&str; 13] = [
    "nvme",
    "ata",
    "scsi",
    "content",
    "manager",
    "bundle_file",
    "qcow2",
    "gpt",
    "checksums",
    "boot_entries",
    "configdrive",
    "tpm",
    "virtual_media",
];
/// The compiler's own coverage, as libFuzzer reads it.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
                     -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Not the build scripts' target, so that those are compiled without the flags.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// How many run side by side.
const LANES: usize = 2;

/// `cargo xtask fuzz [--seconds N] [NAME …]`: each target for 600 seconds by default.
pub fn run(mut args: Args) -> Result<()> {
    let seconds = args.option("--seconds")?.unwrap_or_else(|| "600".to_owned());
    let names = args.words();
    args.finish()?;
    for name in &names {
        ensure!(TARGETS.contains(&name.as_str()), "no fuzzer is called {name:?}; there are {TARGETS:?}");
    }
    all(seconds.parse().context("--seconds")?, &names)
}

/// The fuzzers are a workspace of their own, whose lock file must follow when a crate that they use gets another dependency.
pub fn lock_follows() -> Result<()> {
    let mut metadata = sh::cargo();
    metadata.current_dir(workspace());
    sh::output(metadata.args(["metadata", "--locked", "--quiet", "--format-version", "1"])).context(
        "tests/fuzz/coverage/Cargo.lock does not follow: run `cargo metadata` there and commit it",
    )?;
    Ok(())
}

/// Where libFuzzer's program is made.
fn workspace() -> PathBuf {
    sh::root().join("tests/fuzz/coverage")
}

/// Each of the named targets, or all, for so many seconds. Fails when one of them finds anything.
pub fn all(seconds: u32, names: &[String]) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::FUZZ])?;
    let target = sh::target_dir().join("fuzz");
    let mut build = sh::cargo();
    build.current_dir(workspace()).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &target);
    sh::run(build.args(["build", "--release", "--locked", "--bins", "--target", TRIPLE]))?;
    let program = target.join(TRIPLE).join("release/coverage");
    let chosen: Vec<&str> = TARGETS
        .into_iter()
        .filter(|target| names.is_empty() || names.iter().any(|name| name == target))
        .collect();
    let mut failed = Vec::new();
    for lanes in chosen.chunks(LANES) {
        let started = lanes.iter().map(|name| Fuzzer::start(name, &program, seconds));
        for fuzzer in started.collect::<Result<Vec<_>>>()? {
            let name = fuzzer.name.clone();
            match fuzzer.wait()? {
                (true, line) => println!("ok fuzz {name} ({line})"),
                (false, line) => {
                    println!("FAILED fuzz {name}: {line}");
                    failed.push(name);
                }
            }
        }
    }
    println!("fuzz: {} passed, {} failed", chosen.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { bail!("fuzzers found something: {}", failed.join(", ")) }
}

/// One that runs.
struct Fuzzer {
    name: String,
    child: Child,
    log: PathBuf,
    begun: Instant,
}

impl Fuzzer {
    fn start(name: &str, program: &Path, seconds: u32) -> Result<Self> {
        let work = sh::target_dir().join("fuzz/work").join(name);
        let found = work.join("corpus");
        std::fs::create_dir_all(&found)?;
        let log = work.join("log");
        let output = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(program);
        command
            .env("FUZZ_TARGET", name)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", work.display()));
        command.args(["-timeout=10", "-rss_limit_mb=1024", "-max_len=8192", "-print_final_stats=1"]);
        command.arg(&found);
        let seeds = sh::root().join("tests/fuzz/seeds").join(name);
        if seeds.is_dir() {
            command.arg(seeds);
        }
        let child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
        Ok(Fuzzer { name: name.to_owned(), child, log, begun: Instant::now() })
    }

    /// Wait for its end: whether it found nothing, and what it says.
    fn wait(mut self) -> Result<(bool, String)> {
        let status = self.child.wait()?;
        let log = std::fs::read(&self.log)?;
        let log = String::from_utf8_lossy(&log);
        let stat = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(&format!("stat::{name}:")));
            line.map_or("?", str::trim).to_owned()
        };
        let runs = stat("number_of_executed_units");
        if status.success() && runs.parse::<u64>().is_ok_and(|runs| runs > 0) {
            return Ok((true, format!("{runs} inputs, {:.0} s", self.begun.elapsed().as_secs_f64())));
        }
        let what = log.lines().find(|line| line.contains("panicked at") || line.contains("ERROR:"));
        let said = what.unwrap_or("it did not say why");
        Ok((false, format!("{status}: {said}; see {}", self.log.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fuzzer_that_exists_is_run() {
        let room = sh::root().join("tests/fuzz/src/targets");
        let mut files: Vec<String> = std::fs::read_dir(room)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.retain(|name| name != "mod");
        files.sort();
        let mut known = TARGETS.map(str::to_owned).to_vec();
        known.sort();
        assert_eq!(files, known);
    }

    /// A crate that gets a dependency would otherwise be found out only by a run of the fuzzers, which no test run has.
    #[test]
    fn the_lock_file_of_the_fuzzers_follows() {
        lock_follows().unwrap();
    }
}
