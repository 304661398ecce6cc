//! Packing twice gives the same bytes.

use crate::Options;
use anyhow::{Context, Result, ensure};
use contract::process::check;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Both directories have the same files with the same bytes, which are those of the checksums.
pub fn twice_from_the_same_programs(options: &Options, _dir: &Path) -> Result<()> {
    let names = |dir: &Path| -> Result<BTreeSet<String>> {
        let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    let first = names(&options.first)?;
    let again = names(&options.again)?;
    ensure!(first == again, "{first:?} and then {again:?}");
    for kind in ["_amd64.deb", ".tar.gz", ".oci.tar", ".cdx.json", "SHA256SUMS"] {
        ensure!(first.iter().any(|name| name.ends_with(kind)), "no file is a {kind}: {first:?}");
    }
    for name in &first {
        check(Command::new("cmp").arg(options.first.join(name)).arg(options.again.join(name)))?;
    }
    check(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&options.first))?;
    let sums = fs::read_to_string(options.first.join("SHA256SUMS"))?;
    ensure!(sums.lines().count() == first.len() - 1, "not every file has a checksum: {sums}");
    Ok(())
}
