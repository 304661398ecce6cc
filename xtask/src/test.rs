//! `cargo xtask test`: everything that shows that Anneal works, from a machine with nothing but Rust, a C
//! compiler and git.

mod proof;
mod ran;
mod room;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use crate::args::Args;
use crate::{deps, fault_points, image, sh, specs};
use proof::{Extent, Proof};
use ran::{Listed, Ran};

/// Crates that the fast tier does without: with nodes, the image and other people's programs.
const HEAVY: [&str; 3] = ["machines", "contract", "lab"];

/// Where the tests are that boot nodes: they are marked as ignored, so that a plain `cargo test` is quick. All of the
/// workspace is selected wherever cargo is called: with the features of a part, what is built already would be built
/// again.
const NODES: [&str; 6] = ["--workspace", "--lib", "--test", "power", "--test", "network_boot"];

/// Seeds of the simulation in the fast tier: a thousand take minutes.
const FAST_SEEDS: &str = "50";

/// What passed and failed so far.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    broken: Vec<String>,
    ran: Ran,
}

/// Seconds of each fuzzer; `cargo xtask fuzz` gives them ten minutes.
const FUZZ_SECONDS: &str = "30";

/// `cargo xtask test [--fast] [--only cargo|machines|contract|kill|fuzz] [--filter NAME]`
///
/// A full run also fails when a test that `docs/specs.md` names did not run in it, or a sentence there is open.
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let fast = args.flag("--fast");
    let only = args.option("--only")?;
    let filter = args.option("--filter")?;
    args.finish()?;
    if !deps::is_root() {
        bail!(
            "the tests make loop devices and network namespaces: run them as root (sudo -E cargo xtask test)"
        );
    }
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let mut tally = Tally::default();
    let begun = Instant::now();

    room::ensure()?;
    deps::ensure(&[deps::BUILD, deps::UNIT])?;
    let mut selection = vec!["--workspace"];
    if fast {
        selection.extend(HEAVY.iter().flat_map(|heavy| ["--exclude", heavy]));
    }
    let bin_dir = sh::target_dir().join("debug");
    if !fast && (wanted("machines") || wanted("contract")) {
        deps::ensure(&[deps::IMAGE, deps::LAB, deps::JUDGES])?;
        sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))?;
    }
    if wanted("cargo") {
        sh::run(sh::cargo().args(["test", "--no-run"]).args(&selection))?;
    }
    // The peers of the contract tests mostly wait: what cargo runs has the processors meanwhile.
    let contract_of = |more: &[&str]| {
        let mut command = Command::new(bin_dir.join("contract"));
        command.current_dir(sh::root()).arg("--bin-dir").arg(&bin_dir).args(more);
        command
    };
    let contract = if !fast && wanted("contract") {
        let more: Vec<&str> = filter.iter().flat_map(|name| ["--filter", name]).collect();
        Some(Beside::start(&mut contract_of(&more))?)
    } else {
        None
    };
    if wanted("cargo") {
        let mut command = sh::cargo();
        command.args(["test", "--no-fail-fast"]).args(&selection);
        if fast {
            command.env("SIM_SEEDS", FAST_SEEDS);
        }
        if tally.take("cargo test", &mut command)? {
            tally.ran.add_cargo(&selection, Listed::All)?;
        }
    }
    if let Some(contract) = contract {
        let lost = contract.end("contract", &mut tally)?;
        // Real peers have deadlines of their own, which a busy machine may miss: what failed beside other suites runs
        // again alone, and counts as it ends then.
        if !lost.is_empty() {
            println!("contract: failed beside others, and runs again alone: {}", lost.join(", "));
            let names: Vec<&str> = lost.iter().map(String::as_str).collect();
            tally.forgive("contract", lost.len());
            tally.take("contract", &mut contract_of(&names))?;
        }
    }
    // The fuzzers give way to nodes, which wait often enough.
    let fuzzers = if !fast && wanted("fuzz") {
        let mut command = Command::new("nice");
        command.args(["-n", "19", "cargo", "xtask", "fuzz", "--seconds", FUZZ_SECONDS]);
        Some(Beside::start(command.current_dir(sh::root()))?)
    } else {
        None
    };
    if !fast && wanted("machines") {
        image::run(vec!["--rig".to_owned()])?;
        let mut command = sh::cargo();
        command.args(["test", "--no-fail-fast"]).args(NODES);
        command.args(["--", "--ignored", "--test-threads", "2"]);
        if tally.take("cargo test nodes", &mut command)? {
            tally.ran.add_cargo(&NODES, Listed::Ignored)?;
        }
        let mut command = Command::new(bin_dir.join("machines"));
        command.current_dir(sh::root()).arg("--bin-dir").arg(&bin_dir).args(["--image", "image/out"]);
        tally.take("machines", command.args(filter.iter().flat_map(|name| ["--filter", name])))?;
    }
    if !fast && wanted("kill") {
        let (program, kill) = fault_points::build()?;
        let mut command = fault_points::kill(&program, &kill);
        tally.take("kill", command.args(filter.iter().flat_map(|name| ["--filter", name])))?;
    }
    if let Some(fuzzers) = fuzzers {
        fuzzers.end("fuzz", &mut tally)?;
    }
    for broken in &tally.broken {
        println!("FAILED: {broken}");
    }
    let succeeded = tally.failed == 0 && tally.passed > 0;
    // A part of the tests proves nothing, and which of a suite that failed did pass is not worth telling.
    let proof = if succeeded && only.is_none() && filter.is_none() {
        let extent = if fast { Extent::Fast } else { Extent::Full };
        Some(Proof::of(&specs::named()?, &tally.ran, extent))
    } else {
        None
    };
    for line in proof.iter().flat_map(|proof| &proof.lines) {
        println!("{line}");
    }
    println!("took {} s", begun.elapsed().as_secs());
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if !succeeded {
        bail!("the tests did not all pass");
    }
    match proof {
        Some(Proof { complete: false, .. }) => {
            bail!(
                "the tests passed, but they do not prove the specifications: see the lines \"specs:\" above"
            )
        }
        _ => Ok(()),
    }
}

/// A suite that runs beside others; what it prints is kept until they have ended.
struct Beside {
    child: Child,
    printed: JoinHandle<std::io::Result<Vec<String>>>,
}

impl Beside {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        Ok(Self { child, printed: std::thread::spawn(|| lines.collect()) })
    }

    /// Wait for its end, show what it printed and count it; the names of the scenarios that failed.
    fn end(mut self, name: &str, tally: &mut Tally) -> Result<Vec<String>> {
        let printed = self.printed.join().map_err(|_| anyhow!("the reader of {name} died"))??;
        let lost = printed.iter().filter_map(|line| line.strip_prefix("FAIL  ")?.split(' ').next());
        let lost = lost.map(str::to_owned).collect();
        tally.read(name, printed.into_iter().map(Ok), || Ok(self.child.wait()?))?;
        Ok(lost)
    }
}

impl Tally {
    /// Take back `count` failures of a suite, which run again.
    fn forgive(&mut self, name: &str, count: usize) {
        self.failed -= count.min(self.failed);
        self.broken.retain(|broken| !broken.starts_with(&format!("{name}: ")));
    }

    /// Run a suite with its output shown, and count what it says passed and failed; whether it succeeded.
    fn take(&mut self, name: &str, command: &mut Command) -> Result<bool> {
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        self.read(name, lines, || Ok(child.wait()?))
    }

    fn read(
        &mut self,
        name: &str,
        lines: impl Iterator<Item = std::io::Result<String>>,
        end: impl FnOnce() -> Result<ExitStatus>,
    ) -> Result<bool> {
        let (mut passed, mut failed) = (0, 0);
        for line in lines {
            let line = line?;
            println!("{line}");
            self.ran.add_scenario(name, &line);
            if let Some((p, f)) = counts(&line) {
                passed += p;
                failed += f;
            }
        }
        let status = end()?;
        // A suite that died, or whose count says less than its exit code, is one more failure.
        if !status.success() && failed == 0 {
            failed = 1;
        }
        if failed > 0 {
            self.broken.push(format!("{name}: {failed} failed, {status}"));
        }
        self.passed += passed;
        self.failed += failed;
        Ok(failed == 0)
    }
}

/// The counts of a closing line: cargo's `test result: ok. 3 passed; 0 failed; …`, or ours, `machines: 3 passed, 0 failed`.
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
    use super::counts;

    #[test]
    fn closing_lines_are_read() {
        assert_eq!(counts("test result: ok. 14 passed; 0 failed; 1 ignored; 0 measured"), Some((14, 0)));
        assert_eq!(counts("test result: FAILED. 3 passed; 2 failed; 0 ignored"), Some((3, 2)));
        assert_eq!(counts("machines: 9 passed, 1 failed"), Some((9, 1)));
        assert_eq!(counts("test tests::x: 9 passed, 1 failed"), None);
        assert_eq!(counts("running 3 tests"), None);
    }
}
