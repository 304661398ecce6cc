//! Fifty kills of the controller and fifty power cuts at random moments of real erases, and twenty cuts of one erase that
//! goes on from its checkpoint each time.

use std::process::Command;

use anyhow::Result;

use crate::{deps, image, sh};

/// Scenarios, their `--times` (`resumed` cuts at a fifth of it), and the seed that is taken without another: one that was
/// seen to pass, so that a failure is news.
const PARTS: [(&str, &str, &str); 2] = [("mid_erase", "50", "298966"), ("resumed", "100", "328018")];

pub fn run(seed: Option<&str>) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::IMAGE, deps::LAB])?;
    sh::run(sh::cargo().args(["build", "--workspace", "--bins"]))?;
    image::run(Vec::new())?;
    let bins = sh::target_dir().join("debug");
    for (filter, times, known) in PARTS {
        let mut command = Command::new(bins.join("machines"));
        command.current_dir(sh::root()).arg("--bin-dir").arg(&bins).args(["--image", "image/out"]);
        sh::run(command.args(["--filter", filter, "--times", times, "--seed", seed.unwrap_or(known)]))?;
    }
    Ok(())
}
