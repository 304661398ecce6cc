//! `cargo xtask soak`: what `cargo xtask test` does in minutes, for as long as it takes.

mod kill;
mod lab;

use anyhow::{Result, bail};

use crate::args::Args;

/// `cargo xtask soak [--part kill|lab] [--seed N]`
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let part = args.option("--part")?;
    let seed = args.option("--seed")?;
    args.finish()?;
    match part.as_deref() {
        Some("kill") => kill::run(),
        Some("lab") => lab::run(seed.as_deref()),
        Some(other) => bail!("there is no part {other:?}; there are kill and lab"),
        None => kill::run().and_then(|()| lab::run(seed.as_deref())),
    }
}
