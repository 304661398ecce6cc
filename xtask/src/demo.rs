//! `cargo xtask demo`: builds everything and starts `tests/demo`, as root.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{deps, image, os_image, sh};

/// `--quick` ends when the nodes are clean. All other options are those of `anneal-demo`; see there.
pub fn run(mut words: Vec<String>) -> Result<()> {
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
    let quick = words.iter().any(|word| word == "--quick");
    words.retain(|word| word != "--quick");
    // Whose disks these are decides what is written to them.
    let own_disks = words.iter().any(|word| word.starts_with("--disk"));
    if !quick && !own_disks {
        words.extend(["--os-image".to_owned(), os_image::build()?.display().to_string()]);
    }

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
