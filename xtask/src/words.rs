//! `cargo xtask words`: words and phrases that are out of prose and identifiers.
//!
//! A single place keeps one with a comment on the same line or on the line before it: `// wording: REASON`.

mod count;
mod find;
mod list;
mod text;

pub use text::split;

use std::path::Path;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::{sh, tracked};
use find::Finding;

/// `cargo xtask words [--all | --count] [--root DIR] [PATH ...]`
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let (all, count) = (args.flag("--all"), args.flag("--count"));
    let root = args.option("--root")?.map_or_else(sh::root, Into::into);
    let only = args.words();
    args.finish()?;
    let mut findings = read(&root)?;
    findings.retain(|finding| only.is_empty() || only.iter().any(|path| finding.path.starts_with(path)));
    if count {
        print!("{}", count::table(&findings));
    } else if all || !only.is_empty() {
        findings.iter().for_each(|finding| println!("{finding}"));
        println!("words: {} places", findings.len());
    } else {
        if !findings.is_empty() {
            let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
            bail!("words that do not belong here:\n  {}", lines.join("\n  "));
        }
        println!("words: none that does not belong here");
    }
    Ok(())
}

/// The words of a text, as they stand there.
pub fn text_words(text: &str) -> Vec<&str> {
    text::words(text).into_iter().map(|word| word.text).collect()
}

/// The findings in all texts of a checkout.
fn read(root: &Path) -> Result<Vec<Finding>> {
    let texts = tracked::texts(root, list::is_read)?;
    Ok(texts.iter().flat_map(|(path, text)| find::in_file(path, text)).collect())
}
