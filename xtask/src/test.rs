//! `cargo xtask test`: every proof that Anneal works, on a machine with nothing but Rust, a C compiler and git.

mod binaries;
#[cfg(test)]
mod examples;
mod lanes;
mod proof;
mod ran;
mod room;
mod spent;
mod tally;

use std::path::Path;
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::args::Args;
use crate::{axe, deps, image, kill, package, sh, specs};
use binaries::Binary;
use proof::{Extent, Proof};
use ran::Listed;
use tally::{Background, Tally};

/// Crates that the fast tier leaves out: those that need nodes, the image, a browser or other projects' programs.
const HEAVY: [&str; 4] = ["machines", "contract", "lab", "browser"];

/// Which binaries have tests that boot nodes, or need what a node needs. These are marked as ignored, so that a plain `cargo test` is
/// quick.
const NODES: [&str; 4] = ["lab::", "lab::power::", "machines::network_boot::", "fleet::media::"];

/// Seeds of the simulation in the fast tier.
const FAST_SEEDS: &str = "50";

/// What the tests of the API run with once more.
const ON_POSTGRESQL: &[(&str, &str)] = &[("API_STORE", "postgres"), ("API_REQUESTS", "1000")];

/// Of so many writes the controller is killed at one where it stores in PostgreSQL; at all of them in `soak`.
const KILLS_ON_POSTGRESQL: &str = "4";

/// Packs, and returns the trial that runs then.
type PackagesTrial = JoinHandle<Result<Background>>;

/// Installs Debian's packages, and returns the build of the image that it then began, if nodes boot.
type Preparation = JoinHandle<Result<Option<Child>>>;

/// What a command line selects.
struct Selection {
    fast: bool,
    only: Option<String>,
    filter: Option<String>,
}

impl Selection {
    fn has(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    /// Whether a part that needs nodes, the image or other projects' programs runs.
    fn has_heavy(&self, part: &str) -> bool {
        !self.fast && self.has(part)
    }

    /// Whether a part runs programs of the workspace.
    fn needs_programs(&self) -> bool {
        ["machines", "contract", "kill"].iter().any(|part| self.has_heavy(part))
    }

    /// The groups of Debian's packages that the parts need once the programs are built.
    fn debian_packages(&self) -> Vec<&'static str> {
        let mut groups = vec![deps::UNIT];
        if self.needs_programs() {
            groups.extend([deps::IMAGE, deps::LAB, deps::JUDGES]);
        }
        if self.has_heavy("cargo") {
            groups.push(deps::BROWSER);
        }
        if self.has_heavy("packages") {
            groups.extend([deps::IMAGE, deps::PACKAGES, deps::BROWSER]);
        }
        groups
    }

    fn filter(&self) -> impl Iterator<Item = &str> {
        self.filter.iter().flat_map(|name| ["--filter", name])
    }

    /// Arguments that make cargo build these tests.
    fn packages(&self) -> Vec<&'static str> {
        let excluded = if self.fast { &HEAVY[..] } else { &[] };
        ["--workspace"].into_iter().chain(excluded.iter().flat_map(|heavy| ["--exclude", heavy])).collect()
    }
}

/// `cargo xtask test [--fast] [--only cargo|machines|contract|kill|packages] [--filter NAME]`
///
/// A full run also fails when a test that `docs/specs.md` names did not run in it, or more sentences are open than its head
/// allows.
pub fn run(mut args: Args) -> Result<()> {
    let selection = Selection {
        fast: args.flag("--fast"),
        only: args.option("--only")?,
        filter: args.option("--filter")?,
    };
    args.finish()?;
    if !deps::is_root() {
        bail!(
            "the tests make loop devices and network namespaces: run them as root (sudo -E cargo xtask test)"
        );
    }
    let begun = Instant::now();
    let mut tally = Tally::default();
    room::ensure()?;
    deps::ensure(&[deps::BUILD])?;
    run_parts(&selection, &mut tally)?;
    println!("longest, and what they took of the processors:");
    tally.longest().for_each(|line| println!("{line}"));
    conclude(&selection, &tally, begun)
}

/// Builds, then runs the parts. What computes and what waits runs side by side:
///
/// ```text
/// build ──────────────────────► lanes of test binaries ─► nodes ─► machines ─► kill ─► the end
/// Debian packages ─► image ─┐   contract suite (mostly waits) ─────────────────────────┤
///                           └───────────────────────────► nodes ─► packages ───────────┘
/// ```
fn run_parts(selection: &Selection, tally: &mut Tally) -> Result<()> {
    let bin_dir = sh::target_dir().join("debug");
    let prepared = prepare(selection);
    if selection.needs_programs() {
        tally.timed("build of the programs", || {
            sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))
        })?;
    }
    let packages = selection.packages();
    let cargo = if selection.has("cargo") {
        tally.timed("build of the tests", || binaries::build(&packages))?
    } else {
        Vec::new()
    };
    let image = tally.timed("wait for Debian's packages", || {
        prepared.join().map_err(|_| anyhow!("the thread that installs packages panicked"))?
    })?;
    let contract = if selection.has_heavy("contract") {
        Some(Background::start(contract_command(&bin_dir).args(selection.filter()))?)
    } else {
        None
    };
    if selection.has("cargo") {
        let env: &[_] = if selection.fast { &[("SIM_SEEDS", FAST_SEEDS)] } else { &[] };
        let examples = Background::start(sh::cargo().args(["test", "--doc"]).args(&packages))?;
        if lanes::run(&with_postgresql(&cargo), env, tally)? {
            tally.ran.add_binaries(&cargo, Listed::All)?;
        }
        examples.end("doc", tally)?;
    }
    if let Some(image) = image {
        let of_cargo = if selection.has("cargo") { cargo } else { binaries::build(&packages)? };
        nodes(image, &of_cargo, tally)?;
    }
    let trial = start_packages(selection)?;
    if selection.has_heavy("machines") {
        let mut command = Command::new(bin_dir.join("machines"));
        command.current_dir(sh::root()).arg("--bin-dir").arg(&bin_dir);
        command.args(["--image", "image/out", "--again"]);
        tally.take("machines", command.args(selection.filter()))?;
    }
    if selection.has_heavy("kill") {
        tally.take("kill", kill::command(&bin_dir).args(selection.filter()))?;
        let mut on_postgresql = kill::command(&bin_dir);
        on_postgresql.args(["--store", "postgres", "--every", KILLS_ON_POSTGRESQL]);
        tally.take("kill", on_postgresql.args(selection.filter()))?;
    }
    if let Some(trial) = trial {
        end_packages(trial, tally)?;
    }
    if let Some(contract_suite) = contract {
        let lost = contract_suite.end("contract", tally)?;
        // Real peers have deadlines of their own, which a busy machine may miss: what failed next to other suites runs
        // again alone, and that result counts.
        if !lost.is_empty() {
            println!("contract: failed next to other suites, runs again alone: {}", lost.join(", "));
            tally.retract("contract", 0, lost.len());
            tally.take("contract", contract_command(&bin_dir).args(&lost))?;
        }
    }
    Ok(())
}

/// The same, and the tests of the API once more with PostgreSQL below it, where its fuzzer looks at everything after each request
/// and so makes fewer.
fn with_postgresql(binaries: &[Binary]) -> Vec<Binary> {
    let ours = binaries.iter().filter(|binary| ["api::main::", "api::fuzz::"].contains(&&*binary.prefix));
    let again = ours.map(|binary| Binary { env: ON_POSTGRESQL, ..binary.clone() });
    binaries.iter().cloned().chain(again).collect()
}

/// The suite of real peers.
fn contract_command(bin_dir: &Path) -> Command {
    let mut command = Command::new(bin_dir.join("contract"));
    command.current_dir(sh::root()).arg("--bin-dir").arg(bin_dir);
    command
}

/// Installs what the parts of a selection need, and then builds the image if nodes boot it. Both download and wait for the disk
/// for minutes, in which programs can be compiled.
fn prepare(selection: &Selection) -> Preparation {
    let (groups, has_pages) = (selection.debian_packages(), selection.has_heavy("cargo"));
    let has_nodes = selection.has_heavy("machines");
    std::thread::spawn(move || {
        deps::ensure(&groups)?;
        if has_pages {
            axe::ensure()?;
        }
        has_nodes.then(start_image).transpose()
    })
}

/// Builds all that tests boot, by this program: through cargo it would wait for the build of the programs.
fn start_image() -> Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.current_dir(sh::root()).args(["image", "--rig", "--ipxe"]).spawn().context("xtask image")
}

/// The tests that boot nodes, of the binaries that are built already: with `--lib`, cargo would build more of them, in which no test is.
fn nodes(mut image: Child, binaries: &[Binary], tally: &mut Tally) -> Result<()> {
    // Where the first build failed, between other lines, the second one reports why.
    tally.timed("wait for the image", || match image.wait()?.success() {
        true => Ok(()),
        false => image::build_for_tests(),
    })?;
    for prefix in NODES {
        let of_prefix: Vec<Binary> =
            binaries.iter().filter(|binary| binary.prefix == prefix).cloned().collect();
        ensure!(!of_prefix.is_empty(), "no binary has the tests of {prefix}");
        let mut succeeded = true;
        for binary in &of_prefix {
            let mut command = binary.command();
            succeeded &= tally.take("nodes", command.args(["--ignored", "--test-threads", "2"]))?;
        }
        if succeeded {
            tally.ran.add_binaries(&of_prefix, Listed::Ignored)?;
        }
    }
    Ok(())
}

/// Packs the programs and the image that are built by now, and tries the packages in a Debian of their own.
fn start_packages(selection: &Selection) -> Result<Option<PackagesTrial>> {
    if !selection.has_heavy("packages") {
        return Ok(None);
    }
    if selection.only.is_some() {
        package::trial::build()?;
    }
    let filter: Vec<String> = selection.filter().map(str::to_owned).collect();
    Ok(Some(std::thread::spawn(move || Background::start(package::trial::prepare()?.args(filter)))))
}

/// Waits for the trial of the packages, and removes them if it succeeded.
fn end_packages(trial: PackagesTrial, tally: &mut Tally) -> Result<()> {
    let failed = tally.failed;
    trial.join().map_err(|_| anyhow!("the thread that packs panicked"))??.end("packages", tally)?;
    if tally.failed == failed { package::trial::clear() } else { Ok(()) }
}

/// Prints the result of a run; fails unless every test passed and the specifications are proven.
fn conclude(selection: &Selection, tally: &Tally, begun: Instant) -> Result<()> {
    for name in &tally.passed_alone {
        println!("passed alone, failed next to other tests: {name}");
    }
    for failure in &tally.failures {
        println!("FAILED: {failure}");
    }
    let succeeded = tally.failed == 0 && tally.passed > 0;
    // A part of the tests proves nothing of the specifications, nor does a run that failed.
    let proof = if succeeded && selection.only.is_none() && selection.filter.is_none() {
        let extent = if selection.fast { Extent::Fast } else { Extent::Full };
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
