//! Where managers come from: a directory with one directory for each.
//!
//! ```text
//!   DIR/NAME/manifest.json   what the bundle's manifest says
//!           /root/           its root file system, mounted or unpacked
//!           /digest          SHA-256 of the bundle, 64 hexadecimal digits; absent: that of manifest.json
//!   DIR/.artifacts/HEX       files for the host service `fetch`, by their SHA-256
//! ```

use bundle::{Manifest, hex, is_digest};
use ring::digest::{SHA256, digest};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Directory of artifacts, next to the managers.
pub const ARTIFACTS: &str = ".artifacts";

/// A manager that could be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its root file system.
    pub root: PathBuf,
    /// The name and version that the manager reports, and its grants.
    pub manifest: Manifest,
    /// SHA-256 of its bundle: 64 hexadecimal digits, lower case.
    pub digest: String,
    /// Where files for `fetch` are, if anywhere.
    pub artifacts: Option<PathBuf>,
}

/// All managers of a directory, by the names of their directories; those that cannot be read as what is wrong.
pub fn read(directory: &Path) -> Vec<Result<Source, String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return vec![Err(format!("{}: {error}", directory.display()))],
    };
    let mut places: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    places.retain(|place| !place.ends_with(ARTIFACTS));
    places.sort();
    let artifacts = Some(directory.join(ARTIFACTS)).filter(|path| path.is_dir());
    places.iter().map(|place| one(place, artifacts.clone())).collect()
}

/// The manager in one directory.
pub fn one(place: &Path, artifacts: Option<PathBuf>) -> Result<Source, String> {
    let at = place.join("manifest.json");
    let wrong = |problem: String| format!("{}: {problem}", at.display());
    let bytes = fs::read(&at).map_err(|error| wrong(error.to_string()))?;
    let manifest = Manifest::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
    let digest = match fs::read_to_string(place.join("digest")) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => hex(digest(&SHA256, &bytes).as_ref()),
        Err(error) => return Err(format!("{}: {error}", place.join("digest").display())),
    };
    if !is_digest(&digest) {
        return Err(format!("{}: is no SHA-256", place.join("digest").display()));
    }
    Ok(Source { root: place.join("root"), manifest, digest, artifacts })
}

impl Source {
    /// `VERSION@DIGEST12`, as controllers see it.
    pub fn version(&self) -> String {
        format!("{}@{}", self.manifest.version, &self.digest[..12])
    }
}
