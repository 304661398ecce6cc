//! `cargo xtask soak`: what `cargo xtask test` does in minutes, for as long as it takes.

mod mutants;
mod quickstart;
mod upgrade;

use std::process::Command;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::{deps, fuzz, image, kill, package, sh};

/// The parts, in the order of a run without `--part`.
const PARTS: [&str; 18] = [
    "sim",
    "fuzz",
    "kill",
    "erase",
    "lab",
    "deploy",
    "boot",
    "api",
    "clients",
    "hostile",
    "page",
    "events",
    "fleet",
    "upgrade",
    "package",
    "mutants",
    "quickstart",
    "vendors",
];

/// Of each fuzzer; `cargo xtask fuzz` gives them ten minutes.
const FUZZ_SECONDS: u32 = 60;

/// `cargo xtask soak [--part sim|fuzz|kill|erase|lab|deploy|boot|api|clients|hostile|page|events|fleet|upgrade|package|mutants|quickstart|vendors] [--seed N]`,
/// with `--part sim` the options of `sim`, with `--part fleet` those of `anneal-fleet rounds`, with `--part upgrade` those of
/// [`upgrade::run`], with `--part deploy` also `--times N` and `--filter NAME`, with `--part boot` those of `machines`, with `--part vendors` also `--trees DIR`, and with `--part mutants`
/// those of [`mutants::run`]
pub fn run(mut args: Args) -> Result<()> {
    let Some(only) = args.option("--part")? else {
        let seed = args.option("--seed")?;
        args.finish()?;
        return PARTS.iter().try_for_each(|name| part(name, seed.as_deref()));
    };
    if only == "sim" {
        return sim(&args.rest());
    }
    if only == "mutants" {
        return mutants::run(args);
    }
    if only == "fleet" {
        return fleet(&args.rest());
    }
    if only == "upgrade" {
        return upgrade::run(args);
    }
    if only == "deploy" {
        return deploy(&args.rest());
    }
    if only == "boot" {
        return boot(&args.rest());
    }
    if only == "vendors" {
        let trees = args.option("--trees")?;
        args.finish()?;
        return vendors(trees.as_deref());
    }
    let seed = args.option("--seed")?;
    args.finish()?;
    part(&only, seed.as_deref())
}

fn part(name: &str, seed: Option<&str>) -> Result<()> {
    let seed_option = || seed.map(|seed| format!("--seed={seed}")).into_iter().collect::<Vec<_>>();
    match name {
        "sim" => sim(&[]),
        "fuzz" => fuzz::all(FUZZ_SECONDS, &[]),
        "kill" => kill(),
        "erase" => erase(seed),
        "lab" => lab(seed),
        "deploy" => deploy(&seed_option()),
        "boot" => boot(&seed_option()),
        "api" => api(seed),
        "clients" => clients(),
        "hostile" => hostile(seed),
        "page" => page(),
        "events" => events(),
        "fleet" => fleet(&seed_option()),
        "upgrade" => upgrade::run(Args::new(seed_option())),
        "package" => package::trial::soak(),
        "mutants" => mutants::run(Args::new(seed_option())),
        "quickstart" => quickstart::run(),
        "vendors" => vendors(None),
        other => bail!("there is no part {other:?}; there are {}", PARTS.join(", ")),
    }
}

/// The simulation (`tests/sim`): ten thousand seeds and then the fleet, or what its options say.
fn sim(options: &[String]) -> Result<()> {
    sh::run(sh::cargo().args(["build", "--package", "sim", "--bins"]))?;
    let sim = sh::target_dir().join("debug/sim");
    sh::run(Command::new(&sim).args(options))?;
    if options.is_empty() { sh::run(Command::new(&sim).arg("--fleet")) } else { Ok(()) }
}

/// The controller killed at every write, then at every commit: leases and contact with agents too; with either store.
fn kill() -> Result<()> {
    sh::run(sh::cargo().args(kill::BUILD))?;
    let bin_dir = sh::target_dir().join("debug");
    for store in ["sqlite", "postgres"] {
        sh::run(kill::command(&bin_dir).args(["--store", store]))?;
        sh::run(kill::command(&bin_dir).args(["--store", store, "--any"]))?;
    }
    Ok(())
}

/// A thousand kills of an erase at random moments, each seen from outside.
fn erase(seed: Option<&str>) -> Result<()> {
    let mut test = sh::cargo();
    test.args(["test", "--package", "hwm-generic", "--test", "main", "killed_at_any_moment"]);
    test.args(["--", "--nocapture"]).env("ERASE_KILLS", "1000");
    sh::run(test.envs(seed.map(|seed| ("ERASE_SEED", seed))))
}

/// Fifty kills of the controller and fifty power cuts at random moments of real erases, and twenty cuts of one erase that
/// goes on from its checkpoint each time. Then the scenarios for which `cargo xtask test` has no time.
fn lab(seed: Option<&str>) -> Result<()> {
    /// Scenarios, their `--times` (`resumed` cuts at a fifth of it), and the seed that is taken without another: one
    /// that was seen to pass, so that a failure is news.
    const SCENARIOS: [(&str, &str, &str); 2] = [("mid_erase", "50", "298966"), ("resumed", "100", "328018")];

    let machines = machines(&[deps::BUILD, deps::IMAGE, deps::LAB, deps::JUDGES])?;
    for (filter, times, known) in SCENARIOS {
        let words = ["--filter", filter, "--times", times, "--seed", seed.unwrap_or(known)];
        sh::run(machines().args(words))?;
    }
    sh::run(machines().args(["--table", "long"]))
}

/// Forty deployments, as a table: every pair of firmware, bus and format, ten power cuts, ten kills of the controller, mirrors
/// that do not behave, and boot entries without room for one more.
fn deploy(options: &[String]) -> Result<()> {
    let machines = machines(&[deps::BUILD, deps::UNIT, deps::IMAGE, deps::LAB])?;
    let times: &[&str] =
        if options.iter().any(|word| word.starts_with("--times")) { &[] } else { &["--times", "10"] };
    sh::run(machines().args(["--table", "deployments", "--jobs", "2"]).args(times).args(options))
}

/// Ways to boot that are not in `cargo xtask test`.
fn boot(options: &[String]) -> Result<()> {
    let machines = machines(&[deps::BUILD, deps::IMAGE, deps::LAB, deps::PROXY])?;
    image::build_firmware(&["firmware-misc-nonfree".to_owned()])?;
    sh::run(machines().args(["--table", "boots"]).args(options))
}

/// Builds the programs and the image; the command that runs scenarios with them.
fn machines(packages: &[&str]) -> Result<impl Fn() -> Command + use<>> {
    deps::ensure(packages)?;
    sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))?;
    image::build_for_tests()?;
    let bins = sh::target_dir().join("debug");
    Ok(move || {
        let mut command = Command::new(bins.join("machines"));
        command.current_dir(sh::root()).arg("--bin-dir").arg(&bins).args(["--image", "image/out"]);
        command
    })
}

/// A million requests of our own fuzzer in one process, then schemathesis against the real controller, with 500 requests
/// that it makes up for each operation.
fn api(seed: Option<&str>) -> Result<()> {
    let seed = seed.map(|seed| ("API_SEED", seed));
    let mut fuzz = sh::cargo();
    fuzz.args(["test", "--package", "api", "--test", "fuzz", "--", "--nocapture"]);
    sh::run(fuzz.env("API_REQUESTS", "1000000").envs(seed))?;

    sh::run(contract(&["schemathesis"])?.env("API_EXAMPLES", "500").envs(seed))
}

/// openstacksdk's own functional tests for bare metal, all of them, and a play with each of Ansible's modules for it.
fn clients() -> Result<()> {
    sh::run(&mut contract(&["sdk_suite", "ansible_modules"])?)
}

/// Builds what contract tests need; the command that runs these scenarios.
fn contract(scenarios: &[&str]) -> Result<Command> {
    deps::ensure(&[deps::BUILD, deps::LAB, deps::JUDGES])?;
    let packages = ["-p", "controllerd", "-p", "cli", "-p", "contract"];
    sh::run(sh::cargo().args(["build", "--bins"]).args(packages))?;
    let bin_dir = sh::target_dir().join("debug");
    let mut contract = Command::new(bin_dir.join("contract"));
    contract.current_dir(sh::root()).arg("--bin-dir").arg(&bin_dir).args(scenarios);
    Ok(contract)
}

/// Half an hour of hostile clients. The controller has the first processor, everybody else the others.
fn hostile(seed: Option<&str>) -> Result<()> {
    sh::run(sh::cargo().args(["build", "--release", "--bins", "-p", "controllerd", "-p", "hostile"]))?;
    let bins = sh::target_dir().join("release");
    let processors = std::thread::available_parallelism()?.get();
    let others = if processors > 1 { format!("1-{}", processors - 1) } else { "0".to_owned() };
    let mut soak = Command::new("taskset");
    soak.args(["--cpu-list", &others]).arg(bins.join("hostile")).arg("--bin-dir").arg(&bins);
    sh::run(soak.args(seed.iter().flat_map(|seed| ["--seed", seed])))
}

/// The web page with 10,000 nodes in Chromium.
fn page() -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::BROWSER])?;
    sh::run(sh::cargo().args([
        "build",
        "--release",
        "--bins",
        "-p",
        "controllerd",
        "-p",
        "cli",
        "-p",
        "browser",
    ]))?;
    let bins = sh::target_dir().join("release");
    sh::run(Command::new(bins.join("page-budget")).arg("--bin-dir").arg(&bins))
}

/// A hundred kills of a controller whose events a client follows.
fn events() -> Result<()> {
    let mut test = sh::cargo();
    test.args(["test", "--package", "controllerd", "--test", "events", "a_client_that_follows"]);
    sh::run(test.env("ANNEAL_EVENT_KILLS", "100"))
}

/// Fifty times three controllers with a thousand simulated nodes lose one: killed, frozen or cut off. Needs root.
fn fleet(options: &[String]) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::UNIT])?;
    sh::run(sh::cargo().args(["build", "--release", "--bins", "-p", "controllerd", "-p", "fleet"]))?;
    let bins = sh::target_dir().join("release");
    sh::run(Command::new(bins.join("anneal-fleet")).arg("rounds").arg("--bin-dir").arg(&bins).args(options))
}

/// The redfish driver against every recorded tree in a directory; without one, against the trees of our own writing.
fn vendors(trees: Option<&str>) -> Result<()> {
    let mut test = sh::cargo();
    test.args(["test", "--package", "lab", "--test", "vendors", "trees", "--", "--nocapture"]);
    let trees = trees.map(std::path::absolute).transpose()?;
    sh::run(test.envs(trees.map(|trees| ("ANNEAL_REDFISH_TREES", trees))))
}
