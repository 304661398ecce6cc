//! The chains of a directory of certificates, against the log of their heads.

use super::log::LogFile;
use super::offline::{read, wrong};
use crate::failure::Failure;
use crate::output::{Format, show, table};
use certificate::{Chain, PublicKey, verify_chains};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Verify every file of the directory, as `anneal certificate export` writes them.
pub fn verify(
    directory: &Path,
    keys: &[PublicKey],
    log: &LogFile,
    node: Option<&str>,
) -> Result<Vec<Chain>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| wrong(directory, error))? {
        let path = entry.map_err(|error| wrong(directory, error))?.path();
        if path.is_file() {
            files.push((path.display().to_string(), read(&path)?));
        }
    }
    files.sort();
    let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    verify_chains(texts, keys, &log.log, node)
        .map_err(|(name, refused)| Failure::Usage(format!("{name}: refused ({}): {refused}", refused.name())))
}

/// What was found.
pub fn report(format: Format, chains: &[Chain], stamps: Vec<Value>) -> Result<(), Failure> {
    let chain = |chain: &Chain| {
        json!({"node": chain.node, "certificates": chain.certificates, "head": chain.head,
               "newer_than_log": chain.newer_than_log})
    };
    let found = json!({"chains": chains.iter().map(chain).collect::<Vec<_>>(), "time_stamps": stamps});
    show(format, &found, |_| {
        let row = |chain: &Chain| {
            let (count, newer) = (chain.certificates.to_string(), chain.newer_than_log.to_string());
            vec![chain.node.clone(), count, newer, chain.head.clone()]
        };
        let rows: Vec<_> = chains.iter().map(row).collect();
        let mut text = table(&["NODE", "CERTIFICATES", "NEWER THAN LOG", "HEAD"], &rows);
        for stamp in &stamps {
            let (line, at) = (&stamp["index"], stamp["at"].as_str().unwrap_or_default());
            text.push_str(&format!("the log up to line {line} existed at {at}\n"));
        }
        text
    })
}
