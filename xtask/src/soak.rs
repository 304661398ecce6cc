//! `cargo xtask soak`: what `cargo xtask test` does in minutes, for as long as it takes.

mod api;
mod erase;
mod kill;
mod lab;
mod quickstart;
mod sim;

use anyhow::{Result, bail};

use crate::args::Args;

/// `cargo xtask soak [--part sim|kill|erase|lab|api|quickstart] [--seed N]`, and with `--part sim` the options of `sim`
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let part = args.option("--part")?;
    if part.as_deref() == Some("sim") {
        return sim::run(args.rest());
    }
    let seed = args.option("--seed")?;
    args.finish()?;
    match part.as_deref() {
        Some("kill") => kill::run(),
        Some("erase") => erase::run(seed.as_deref()),
        Some("lab") => lab::run(seed.as_deref()),
        Some("api") => api::run(seed.as_deref()),
        Some("quickstart") => quickstart::run(),
        Some(other) => {
            bail!("there is no part {other:?}; there are sim, kill, erase, lab, api and quickstart")
        }
        None => {
            sim::run(Vec::new())?;
            kill::run()?;
            erase::run(seed.as_deref())?;
            lab::run(seed.as_deref())?;
            api::run(seed.as_deref())?;
            quickstart::run()
        }
    }
}
