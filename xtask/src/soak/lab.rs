//! Fifty kills of the controller and fifty power cuts at random moments of real erases, and twenty cuts of one erase that
//! goes on from its checkpoint each time.

use std::process::Command;

use anyhow::Result;

use crate::{deps, image, sh};

/// Scenarios, and their `--times`; `resumed` cuts at a fifth of it.
const PARTS: [(&str, &str); 2] = [("mid_erase", "50"), ("resumed", "100")];

pub fn run(seed: Option<&str>) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::IMAGE, deps::LAB])?;
    sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))?;
    image::run(Vec::new())?;
    let bins = sh::target_dir().join("debug");
    for (filter, times) in PARTS {
        let mut command = Command::new(bins.join("machines"));
        command.current_dir(sh::root()).arg("--bin-dir").arg(&bins).args(["--image", "image/out"]);
        command.args(["--filter", filter, "--times", times]);
        sh::run(command.args(seed.iter().flat_map(|seed| ["--seed", seed])))?;
    }
    Ok(())
}
