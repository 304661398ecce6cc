//! The files that git tracks, or would track, in a checkout: what the checks of texts read.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::sh;

/// Directories whose crates are part of the product; all other crates are tests and tools.
const PRODUCT: [&str; 4] = ["agent/", "controller/", "hardware-managers/", "shared/"];

/// Texts by their path below the root, `/` between the parts.
pub type Texts = BTreeMap<String, String>;

/// Paths of all files that are tracked or neither tracked nor ignored.
pub fn paths(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut paths: Vec<String> =
        sh::output(&mut git)?.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The texts of all files that are chosen by their path.
pub fn texts(root: &Path, chosen: impl Fn(&str) -> bool) -> Result<Texts> {
    let mut texts = Texts::new();
    for path in paths(root)?.into_iter().filter(|path| chosen(path)) {
        let text =
            std::fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        texts.insert(path, text);
    }
    Ok(texts)
}

/// The crate of the product whose source this is, with its directory: `("block", "agent/block")`.
pub fn product_crate(path: &str) -> Option<(&str, &str)> {
    let wing = PRODUCT.iter().find(|wing| path.starts_with(**wing))?;
    let name = path[wing.len()..].split('/').next()?;
    let dir = &path[..wing.len() + name.len()];
    path[dir.len()..].starts_with("/src/").then_some((name, dir))
}

/// True for Rust source of a product crate; its tests and its build script are not.
pub fn is_product_source(path: &str) -> bool {
    path.ends_with(".rs") && product_crate(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_source_is_known_by_its_directory() {
        assert_eq!(product_crate("agent/block/src/sys/blk.rs"), Some(("block", "agent/block")));
        assert!(is_product_source("shared/bundle/src/lib.rs"));
        assert!(!is_product_source("agent/block/tests/docs.rs"));
        assert!(!is_product_source("tests/lab/src/lib.rs"));
        assert!(!is_product_source("controller/store-sqlite/src/one.sql"));
    }

    #[test]
    fn files_of_this_repository_are_found() {
        let paths = paths(&sh::root()).unwrap();
        assert!(paths.iter().any(|path| path == "xtask/src/tracked.rs"), "{paths:?}");
    }
}
