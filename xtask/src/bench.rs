//! `cargo xtask bench steps`, `bench api`, `bench erase` and `bench image`: build what is measured and start `tests/bench`; `cargo xtask bench fleet`
//! and `bench media` the same with `tests/fleet`, `bench boot` with `tests/machines`, `bench hwm` with the example `hwm_bench` of `agentd`.

use std::process::Command;

use anyhow::Result;

use crate::{deps, image, sh};

/// All options are those of `bench`; see there, and `docs/benchmarks.md`.
pub fn run(words: Vec<String>) -> Result<()> {
    if words.first().is_some_and(|word| word == "hwm") {
        return hwm();
    }
    deps::ensure(&[deps::BUILD])?;
    if words.first().is_some_and(|word| word == "fleet") {
        return fleet(&words[1..]);
    }
    if words.first().is_some_and(|word| word == "boot") {
        return boot(&words[1..]);
    }
    if words.first().is_some_and(|word| word == "media") {
        deps::ensure(&[deps::IMAGE])?;
        image::build(None, None, false)?;
        return simulate("media", &words[1..]);
    }
    if words.first().is_some_and(|word| word == "erase") {
        deps::ensure(&[deps::BENCH])?;
        sh::run(sh::cargo().args(["build", "--release", "--bins", "--package", "bench"]))?;
        return erase(words);
    }
    if words.first().is_some_and(|word| word == "image") {
        deps::ensure(&[deps::BENCH_IMAGE, deps::PEER])?;
        sh::run(sh::cargo().args(["build", "--release", "--bins", "--package", "bench"]))?;
        return measure(words);
    }
    if words.iter().any(|word| word == "--peer" || word.starts_with("--peer=")) {
        deps::ensure(&[deps::PEER])?;
    }
    if words.iter().any(|word| word == "--store" || word.starts_with("--store=")) {
        deps::ensure(&[deps::UNIT])?;
    }
    let packages = ["--package", "bench", "--package", "controllerd"];
    sh::run(sh::cargo().args(["build", "--release", "--bins"]).args(packages))?;
    measure(words)
}

/// `--no-node` leaves the node out; all other options are those of `bench erase`.
fn erase(mut words: Vec<String>) -> Result<()> {
    let all = words.len();
    words.retain(|word| word != "--no-node");
    if words.len() == all {
        deps::ensure(&[deps::LAB])?;
        let image = sh::target_dir().join("bench-node");
        image::build_bench(&sh::target_dir().join("release/bench"), &image)?;
        words.push(format!("--node-image={}", image.display()));
    }
    measure(words)
}

fn measure(words: Vec<String>) -> Result<()> {
    sh::run(Command::new(sh::target_dir().join("release/bench")).current_dir(sh::root()).args(words))
}

/// How long nodes take to boot: options are those of `machines`. The programs are those of tests: the ramdisk is measured, and its
/// controller waits.
fn boot(words: &[String]) -> Result<()> {
    deps::ensure(&[deps::IMAGE, deps::LAB])?;
    sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))?;
    image::build_for_tests()?;
    let bins = sh::target_dir().join("debug");
    let mut machines = Command::new(bins.join("machines"));
    machines.current_dir(sh::root()).arg("--bin-dir").arg(&bins).args(["--image", "image/out"]);
    sh::run(machines.args(["--table", "boot-times", "--times", "5"]).args(words))
}

/// What an external hardware manager costs its host. Needs root.
fn hwm() -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::UNIT])?;
    sh::run(sh::cargo().args(["build", "--release", "--package", "agentd", "--example", "hwm_bench"]))?;
    sh::run(&mut Command::new(sh::target_dir().join("release/examples/hwm_bench")))
}

/// One controller with many simulated nodes: all options are those of `anneal-fleet bench`, with `--images` those of
/// `anneal-fleet images`, with `--power` those of `anneal-fleet power`.
fn fleet(words: &[String]) -> Result<()> {
    let what = ["images", "power"].into_iter().find(|what| words.contains(&format!("--{what}")));
    if what == Some("power") {
        deps::ensure(&[deps::UNIT])?;
    }
    let what = what.unwrap_or("bench");
    let flag = format!("--{what}");
    let options: Vec<String> = words.iter().filter(|word| **word != flag).cloned().collect();
    simulate(what, &options)
}

/// A measurement of `anneal-fleet`.
fn simulate(what: &str, options: &[String]) -> Result<()> {
    sh::run(sh::cargo().args([
        "build",
        "--release",
        "--bins",
        "--package",
        "fleet",
        "--package",
        "controllerd",
    ]))?;
    let program = sh::target_dir().join("release/anneal-fleet");
    sh::run(Command::new(program).current_dir(sh::root()).arg(what).args(options))
}
