//! `cargo xtask book`: the documentation as a book, and its generated parts.
//!
//! ```text
//! controller/model/tests/provision_*.txt ──► states ──► diagram ──► docs/images/*.svg, tables of docs/concepts.md
//! docs/images/quick-start.txt ◄── record ──► terminal ──► docs/images/quick-start.svg
//! docs/*.md, README.md … ──► pages ──► target/book-src ──► mdbook ──► target/book
//! ```
//!
//! Every generated file is a pure function of committed files, except the transcript that `--record` writes.

mod diagram;
mod generated;
mod mdbook;
mod pages;
mod record;
mod states;
mod svg;
mod terminal;

use anyhow::Result;

pub use generated::check;
pub use pages::blocks;

use crate::args::Args;

/// `cargo xtask book [--check | --record]`
///
/// Without a flag: write the generated files that are stale, and build the book into `target/book`. `--check` fails if
/// a generated file is stale, and builds nothing. `--record` runs the quick start and writes its transcript first.
///
/// # Errors
/// A stale file with `--check`; a command that fails.
pub fn run(mut args: Args) -> Result<()> {
    let (check, record) = (args.flag("--check"), args.flag("--record"));
    args.finish()?;
    if check {
        return generated::check();
    }
    if record {
        record::run()?;
    }
    generated::write()?;
    mdbook::build()
}
