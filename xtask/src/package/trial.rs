//! What `cargo xtask test` does with packages (`tests/packages`), and `soak --part package`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::{Plan, SUMS, pack, pack_controller};
use crate::{deps, sh};

/// Of the Debian that packages are tried in.
const SUITE: &str = "bookworm";
/// What they depend on and a minimal Debian has not.
const PACKAGES: &str = "systemd-standalone-sysusers";

/// Builds the programs that are packed and those that try them, and a ramdisk if there is none.
pub fn build() -> Result<()> {
    let mut build = sh::cargo();
    build.args(["build", "--workspace"]);
    sh::run(build.args(
        ["anneal", "anneal-controller", "anneal-fleet", "packages"].map(|name| format!("--bin={name}")),
    ))?;
    super::some_ramdisk()
}

/// Removes the packages that were tried, some 400 MB.
pub fn clear() -> Result<()> {
    let dir = sh::target_dir().join("package-trial");
    ["first", "again", "next", "older"].iter().try_for_each(|name| Ok(fs::remove_dir_all(dir.join(name))?))
}

/// Packs the programs of `target/debug` twice, as the next version, and with an older database. The command that tries
/// them.
pub fn prepare() -> Result<Command> {
    let bins = sh::target_dir().join("debug");
    let dir = sh::target_dir().join("package-trial");
    let debian = debian(&dir)?;
    let plan = Plan { version: "0.1.0~trial1".to_owned(), ..Plan::of_checkout(true)? };
    for name in ["first", "again"] {
        pack(&plan, &bins, &emptied(&dir.join(name))?)?;
    }
    let next = Plan { version: "0.1.0~trial2".to_owned(), ..plan.clone() };
    let older = Plan { version: "0.1.0~trial0".to_owned(), schema: plan.schema - 1, ..plan };
    for (plan, name) in [(next, "next"), (older, "older")] {
        pack_controller(&plan, &bins, &emptied(&dir.join(name))?)?;
    }
    let mut trial = trial_in(&debian);
    for name in ["first", "again", "next", "older"] {
        trial.arg(format!("--{name}")).arg(dir.join(name));
    }
    Ok(trial)
}

/// The program that tries packages, which the caller names, in this Debian.
fn trial_in(debian: &Path) -> Command {
    let bins = sh::target_dir().join("debug");
    let mut trial = Command::new(bins.join("packages"));
    trial.arg("--debian").arg(debian).arg("--bin-dir").arg(&bins);
    trial
}

/// A minimal Debian as a tar archive, made once.
fn debian(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let archive = dir.join("debian.tar");
    if archive.exists() {
        return Ok(archive);
    }
    ensure!(deps::is_root(), "a root file system is made and entered: run this as root");
    let part = dir.join("debian.part.tar");
    sh::run(
        Command::new("mmdebstrap")
            .args(["--quiet", "--mode=root", "--variant=minbase"])
            .arg("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
            .args(["--aptopt=Apt::Install-Recommends \"false\"", &format!("--include={PACKAGES}"), SUITE])
            .arg(&part),
    )?;
    fs::rename(&part, &archive)?;
    Ok(archive)
}

fn emptied(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    Ok(dir.to_owned())
}

/// `cargo xtask soak --part package`: two clones of the commit in directories of different names, each built from scratch, give
/// the same packages, and a new user gets from them to a certificate.
pub fn soak() -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::IMAGE, deps::PACKAGES, deps::BROWSER])?;
    let dir = emptied(&sh::target_dir().join("package-soak"))?;
    let mut sums = Vec::new();
    for name in ["one", "another-place"] {
        let clone = dir.join(name);
        sh::run(Command::new("git").args(["clone", "--quiet"]).arg(sh::root()).arg(&clone))?;
        let mut package = sh::cargo();
        package.args(["xtask", "package"]).current_dir(&clone).env_remove("CARGO_TARGET_DIR");
        sh::run(&mut package)?;
        let out = clone.join("target/packages");
        sums.push(fs::read_to_string(out.join(SUMS))?);
        // The packages stay; a build takes gigabytes.
        fs::rename(&out, dir.join(format!("{name}-packages")))?;
        fs::remove_dir_all(&clone).with_context(|| clone.display().to_string())?;
    }
    print!("{}", sums[0]);
    ensure!(sums[0] == sums[1], "the second build has other bytes:\n{}", sums[1]);
    println!("package: two builds from scratch gave the same bytes");
    new_user(&dir.join("one-packages"))
}

/// The packages in a directory, tried as a new user would.
fn new_user(packages: &Path) -> Result<()> {
    sh::run(sh::cargo().args(["build", "--package", "packages", "--bins"]))?;
    let mut trial = trial_in(&debian(&sh::target_dir().join("package-trial"))?);
    for name in ["first", "again", "next", "older"] {
        trial.arg(format!("--{name}")).arg(packages);
    }
    sh::run(trial.args(["--filter", "new_user"]))
}
