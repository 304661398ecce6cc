//! `cargo xtask ci`: what a machine can see in the text: format, lints, licences, arrows and circles, words, terms, links,
//! long functions, sentences of the specifications, generated pages.

use anyhow::Result;

use crate::args::Args;
use crate::{deps, functions, fuzz, generated, graph, links, sh, specs, terms, words as banned_words};

/// `cargo xtask ci`
pub fn run(words: Vec<String>) -> Result<()> {
    Args::new(words).finish()?;
    deps::ensure(&[deps::BUILD])?;
    sh::run(sh::cargo().args(["fmt", "--all", "--check"]))?;
    // What takes seconds comes before what compiles.
    fuzz::lock_follows()?;
    graph::run(Vec::new())?;
    functions::run(Vec::new())?;
    banned_words::run(Vec::new())?;
    terms::run(Vec::new())?;
    links::run(Vec::new())?;
    specs::run(Vec::new())?;
    sh::run(sh::cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    generated::check()?;
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
