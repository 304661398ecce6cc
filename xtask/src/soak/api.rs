//! A million requests of our own fuzzer in one process, then schemathesis against the real controller.

use std::process::Command;

use anyhow::Result;

use crate::{deps, sh};

/// Requests of our own.
const REQUESTS: &str = "1000000";

/// Requests that schemathesis makes up for each operation.
const EXAMPLES: &str = "500";

pub fn run(seed: Option<&str>) -> Result<()> {
    let seed = seed.map(|seed| ("API_SEED", seed));
    let mut fuzz = sh::cargo();
    fuzz.args(["test", "--package", "api", "--test", "fuzz", "--", "--nocapture"]);
    sh::run(fuzz.env("API_REQUESTS", REQUESTS).envs(seed))?;

    deps::ensure(&[deps::BUILD, deps::LAB, deps::JUDGES])?;
    sh::run(sh::cargo().args(["build", "--bins"]).args([
        "-p",
        "controllerd",
        "-p",
        "cli",
        "-p",
        "contract",
    ]))?;
    let bin_dir = sh::target_dir().join("debug");
    let mut contract = Command::new(bin_dir.join("contract"));
    contract.current_dir(sh::root()).arg("--bin-dir").arg(&bin_dir).arg("schemathesis");
    sh::run(contract.env("API_EXAMPLES", EXAMPLES).envs(seed))
}
