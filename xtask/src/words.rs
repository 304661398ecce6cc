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
use crate::ratchet;
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
        let still = list::STILL_TO_SWEEP;
        let wrong = judge(&findings, still);
        if !wrong.is_empty() {
            bail!("words that do not belong here:\n  {}", wrong.join("\n  "));
        }
        println!(
            "words: {} places, all below the {} paths that are still to be swept",
            findings.len(),
            still.len()
        );
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

fn judge(findings: &[Finding], still: &[&str]) -> Vec<String> {
    let findings = findings
        .iter()
        .map(|finding| ratchet::Finding { place: finding.path.clone(), text: finding.to_string() })
        .collect::<Vec<_>>();
    ratchet::judge(&findings, still, "STILL_TO_SWEEP (xtask/src/words/list.rs)")
}
