//! `cargo xtask soak --part upgrade`: three controllers of an earlier commit are replaced by those of this checkout, one after
//! another, while simulated nodes are cleaned and deployed (`tests/fleet/src/upgrade`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use fs_err as fs;

use crate::args::Args;
use crate::{deps, sh};

/// Below the target directory: the other checkout …
const CHECKOUT: &str = "upgrade/checkout";
/// … and what cargo makes of it, which stays for the next time.
const BUILD: &str = "upgrade/build";

/// `[--from COMMIT | --old PROGRAM] [--debug]`: the commit that is upgraded from, by default the one before this, or an
/// `anneal-controller` that was built before; without optimisation. All other options are those of `anneal-fleet upgrade`.
pub fn run(mut args: Args) -> Result<()> {
    let (from, old) = (args.option("--from")?, args.option("--old")?);
    let is_debug = args.flag("--debug");
    if from.is_some() && old.is_some() {
        bail!("--from names a commit to build, --old a program that was built: one of them");
    }
    deps::ensure(&[deps::BUILD, deps::UNIT])?;
    sh::run(sh::cargo().args(build(&["controllerd", "fleet"], is_debug)))?;
    let bins = sh::target_dir().join(profile(is_debug));
    let upgrade = |old: &Path| {
        let mut upgrade = Command::new(bins.join("anneal-fleet"));
        upgrade.arg("upgrade").arg("--old").arg(old).arg("--new").arg(bins.join("anneal-controller"));
        upgrade
    };
    if let Some(old) = old {
        return sh::run(upgrade(Path::new(&old)).args(args.rest()));
    }
    let checkout = Checkout::of(from.as_deref().unwrap_or("HEAD^"))?;
    sh::run(upgrade(&checkout.controller(is_debug)?).args(args.rest()))
}

fn profile(is_debug: bool) -> &'static str {
    if is_debug { "debug" } else { "release" }
}

/// What cargo is to do.
fn build<'a>(packages: &[&'a str], is_debug: bool) -> Vec<&'a str> {
    let mut words = vec!["build", "--bins"];
    words.extend(packages.iter().flat_map(|package| ["--package", *package]));
    if !is_debug {
        words.push("--release");
    }
    words
}

/// A checkout of another commit, which is removed with this value.
struct Checkout(PathBuf);

impl Checkout {
    fn of(commit: &str) -> Result<Self> {
        let name = format!("{commit}^{{commit}}");
        let id = sh::output(git().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]))?;
        let dir = sh::target_dir().join(CHECKOUT);
        // What a run that was killed has left.
        remove(&dir);
        println!(
            "upgrade from {}",
            sh::output(git().args(["log", "-1", "--format=%h %s", id.trim()]))?.trim()
        );
        sh::run(git().args(["worktree", "add", "--force", "--detach"]).arg(&dir).arg(id.trim()))?;
        Ok(Self(dir))
    }

    /// Its `anneal-controller`.
    fn controller(&self, is_debug: bool) -> Result<PathBuf> {
        let target = sh::target_dir().join(BUILD);
        let mut cargo = sh::cargo();
        cargo.args(build(&["controllerd"], is_debug)).arg("--target-dir").arg(&target).current_dir(&self.0);
        sh::run(&mut cargo)?;
        Ok(target.join(profile(is_debug)).join("anneal-controller"))
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(dir: &Path) {
    if !dir.exists() {
        return;
    }
    let removed = git().args(["worktree", "remove", "--force", "--force"]).arg(dir).status();
    if !removed.is_ok_and(|status| status.success()) {
        // It is none of git's any more.
        let _ = fs::remove_dir_all(dir);
        let _ = git().args(["worktree", "prune"]).status();
    }
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(sh::root());
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_controller_is_built_alone_and_as_the_new_one() {
        assert_eq!(
            build(&["controllerd"], false),
            ["build", "--bins", "--package", "controllerd", "--release"]
        );
        let both = ["build", "--bins", "--package", "controllerd", "--package", "fleet"];
        assert_eq!(build(&["controllerd", "fleet"], true), both);
        assert_eq!((profile(false), profile(true)), ("release", "debug"));
    }

    #[test]
    fn one_thing_is_upgraded_from() {
        let words = ["--from=HEAD", "--old=x"].map(str::to_owned).to_vec();
        assert!(run(Args::new(words)).unwrap_err().to_string().contains("one of them"));
    }
}
