//! `cargo xtask ci`: what a machine can see in the text: format, lints (long functions are one), licences, arrows and
//! circles, words, terms, links, sentences of the specifications, generated pages.

use anyhow::Result;

use crate::args::Args;
use crate::{deps, fuzz, generated, graph, links, sh, specs, terms, words};

/// `cargo xtask ci`
pub fn run(args: Args) -> Result<()> {
    args.finish()?;
    deps::ensure(&[deps::BUILD])?;
    sh::run(sh::cargo().args(["fmt", "--all", "--check"]))?;
    // What takes seconds comes before what compiles.
    fuzz::lock_follows()?;
    for check in [graph::run, words::run, terms::run, links::run, specs::run] {
        check(Args::default())?;
    }
    sh::run(sh::cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    generated::check()?;
    if sh::succeeds(sh::cargo().args(["deny", "--version"])) {
        sh::run(sh::cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
        advisories()?;
    } else {
        println!(
            "cargo-deny is not installed (cargo install cargo-deny): licences and bans were NOT checked"
        );
    }
    println!("ci: all checks passed");
    Ok(())
}

/// Check for known vulnerabilities. Their database comes from outside: without it, say so.
fn advisories() -> Result<()> {
    if sh::succeeds(sh::cargo().args(["deny", "fetch", "db"])) {
        return sh::run(sh::cargo().args(["deny", "--offline", "check", "advisories"]));
    }
    println!("the database of advisories cannot be reached: known vulnerabilities were NOT checked");
    Ok(())
}
