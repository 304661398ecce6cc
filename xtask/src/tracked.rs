//! The files that git tracks, or would track, in a checkout: what the checks of texts read.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

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
    // A file that is deleted but not yet committed is still listed.
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The texts of all files that are chosen by their path.
pub fn texts(root: &Path, chosen: impl Fn(&str) -> bool) -> Result<Texts> {
    let paths = paths(root)?.into_iter().filter(|path| chosen(path));
    paths.map(|path| Ok((path.clone(), fs::read_to_string(root.join(&path))?))).collect()
}

/// The Rust source of all product crates, without their tests and build scripts.
pub fn product_source(root: &Path) -> Result<Texts> {
    texts(root, |path| path.ends_with(".rs") && product_crate(path).is_some())
}

/// The crate of the product whose source this is, with its directory: `("block", "agent/block")`.
pub fn product_crate(path: &str) -> Option<(&str, &str)> {
    let wing = PRODUCT.iter().find(|wing| path.starts_with(**wing))?;
    let name = path[wing.len()..].split('/').next()?;
    let dir = &path[..wing.len() + name.len()];
    path[dir.len()..].starts_with("/src/").then_some((name, dir))
}

/// The Rust files and manifests of all crates.
pub struct Workspace {
    /// The files.
    pub texts: Texts,
    /// The directory of each crate, by its name.
    crates: BTreeMap<String, String>,
}

impl Workspace {
    /// Reads the checkout at `root`.
    pub fn read(root: &Path) -> Result<Self> {
        Self::of(texts(root, |path| path.ends_with(".rs") || is_manifest(path))?)
    }

    /// The workspace that these files make.
    pub fn of(texts: Texts) -> Result<Self> {
        let mut crates = BTreeMap::new();
        for (path, text) in texts.iter().filter(|(path, _)| is_manifest(path)) {
            let table: toml::Table = text.parse().with_context(|| path.clone())?;
            let name = table.get("package").and_then(|package| package.get("name")?.as_str());
            let dir = path.strip_suffix("/Cargo.toml");
            crates.extend(name.zip(dir).map(|(name, dir)| (name.to_owned(), dir.to_owned())));
        }
        Ok(Self { texts, crates })
    }

    /// Names and directories of all crates.
    pub fn crates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.crates.iter().map(|(name, dir)| (name.as_str(), dir.as_str()))
    }

    /// The directory of a crate.
    pub fn dir(&self, krate: &str) -> Result<&str> {
        self.crates.get(krate).map(String::as_str).with_context(|| format!("there is no crate {krate}"))
    }

    /// The files below a directory, by their path below it.
    pub fn below(&self, dir: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .filter_map(move |(path, text)| Some((path.strip_prefix(dir)?.strip_prefix('/')?, text.as_str())))
    }
}

/// True for the manifest of a crate of the workspace: those of fixtures lie deeper.
fn is_manifest(path: &str) -> bool {
    path.ends_with("/Cargo.toml") && path.matches('/').count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_source_is_known_by_its_directory() {
        assert_eq!(product_crate("agent/block/src/sys/blk.rs"), Some(("block", "agent/block")));
        assert_eq!(product_crate("shared/bundle/src/lib.rs"), Some(("bundle", "shared/bundle")));
        assert_eq!(product_crate("agent/block/tests/docs.rs"), None);
        assert_eq!(product_crate("tests/lab/src/lib.rs"), None);
    }

    #[test]
    fn files_and_crates_of_this_repository_are_found() {
        let workspace = Workspace::read(&sh::root()).unwrap();
        assert_eq!(workspace.dir("agentd").unwrap(), "agent/agentd");
        assert!(workspace.below("xtask").any(|(path, _)| path == "src/tracked.rs"));
        assert!(workspace.dir("nosuch").is_err());
    }
}
