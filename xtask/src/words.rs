//! `cargo xtask words`: words and phrases that are out of prose and identifiers.
//!
//! A single place keeps one with a comment on the same line or on the line before it: `// wording: REASON`.

mod find;
mod list;
mod text;

pub use text::split;

use anyhow::Result;

use crate::args::Args;
use crate::{findings, tracked};

/// `cargo xtask words [--root DIR] [PATH ...]`
pub fn run(mut args: Args) -> Result<()> {
    let root = args.root()?;
    let only = args.words();
    args.finish()?;
    let texts = tracked::texts(&root, |path| {
        list::is_read(path) && (only.is_empty() || only.iter().any(|only| path.starts_with(only)))
    })?;
    let found: Vec<String> = texts.iter().flat_map(|(path, text)| find::in_file(path, text)).collect();
    findings::none(&found, "words that do not belong here")?;
    println!("words: none that does not belong here");
    Ok(())
}

/// The words of a text, as they stand there.
pub fn text_words(text: &str) -> Vec<&str> {
    text::words(text).into_iter().map(|word| word.text).collect()
}
