//! `cargo xtask ci`: what a machine can see in the text: format, lints, arrows, licences, sentences of the specifications.

use anyhow::Result;

use crate::args::Args;
use crate::{deps, fuzz, graph, sh, specs};

/// `cargo xtask ci`
pub fn run(words: Vec<String>) -> Result<()> {
    Args::new(words).finish()?;
    deps::ensure(&[deps::BUILD])?;
    sh::run(sh::cargo().args(["fmt", "--all", "--check"]))?;
    sh::run(sh::cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    fuzz::lock_follows()?;
    graph::run(Vec::new())?;
    specs::run(Vec::new())?;
    if sh::succeeds(sh::cargo().args(["deny", "--version"])) {
        // Advisories need a database from outside; licences, bans and sources do not.
        sh::run(sh::cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
    } else {
        println!(
            "cargo-deny is not installed (cargo install cargo-deny): licences and bans were NOT checked"
        );
    }
    println!("ci: all checks passed");
    Ok(())
}
