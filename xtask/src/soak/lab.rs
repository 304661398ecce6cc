//! Fifty kills of the controller and fifty power cuts at random moments of real erases.

use std::process::Command;

use anyhow::Result;

use crate::{deps, image, sh};

const TIMES: &str = "50";

pub fn run(seed: Option<&str>) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::IMAGE, deps::LAB])?;
    sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))?;
    image::run(Vec::new())?;
    let bins = sh::target_dir().join("debug");
    let mut command = Command::new(bins.join("machines"));
    command.current_dir(sh::root()).arg("--bin-dir").arg(&bins).args(["--image", "image/out"]);
    command.args(["--filter", "mid_erase", "--times", TIMES]);
    sh::run(command.args(seed.iter().flat_map(|seed| ["--seed", seed])))
}
