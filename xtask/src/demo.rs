//! `cargo xtask demo`: builds everything and starts `tests/demo`, as root.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{deps, image, sh};

/// All options are those of `anneal-demo`; see there.
pub fn run(words: Vec<String>) -> Result<()> {
    let Some(prefix) = deps::privilege() else {
        bail!(
            "the demo makes a network namespace and a bridge, for which it needs root: \
             run it as root, or as a user who may use sudo without a password"
        );
    };
    deps::ensure(&[deps::BUILD, deps::IMAGE, deps::LAB])?;
    let packages = ["--package", "demo", "--package", "cli", "--package", "controllerd"];
    sh::run(sh::cargo().args(["build", "--bins"]).args(packages))?;
    let demo = sh::target_dir().join("debug/anneal-demo");
    if words.iter().any(|word| ["--help", "-h"].contains(&word.as_str())) {
        return sh::run(Command::new(demo).arg("--help"));
    }
    image::build(None, None, false)?;

    let disks = sh::target_dir().join("demo");
    fs_err::create_dir_all(&disks)?;
    let mut command = match prefix.split_first() {
        Some((sudo, rest)) => {
            let mut command = Command::new(sudo);
            command.args(rest).arg(&demo);
            command
        }
        None => Command::new(&demo),
    };
    command.arg("--dir").arg(&disks).args(&words);
    let status = command.status().with_context(|| format!("cannot start {}", demo.display()))?;
    if !status.success() {
        // The demo has printed the error.
        bail!("the demo ended with {status}");
    }
    Ok(())
}
