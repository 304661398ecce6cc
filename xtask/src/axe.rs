//! axe-core, which judges the web page: one file of the npm registry, at a pinned version.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::{deps, sh};

const PACKAGE: &str = "axe-core";
const VERSION: &str = "4.14.1";
/// The file in the package; licence MPL-2.0. It is used by tests and is in nothing that is given out.
const FILE: &str = "axe.min.js";
const SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";

/// Puts it into `target/tools/axe-core`, unless it is there.
///
/// # Errors
/// When npm cannot fetch it, or it is another file than it was.
pub fn ensure() -> Result<()> {
    let dir = sh::target_dir().join("tools/axe-core");
    let file = dir.join(FILE);
    if fs::read(&file).is_ok_and(|bytes| sh::sha256(&bytes) == SHA256) {
        return Ok(());
    }
    fs::create_dir_all(&dir)?;
    if !sh::succeeds(Command::new("npm").arg("--version")) {
        deps::ensure(&["npm"])?;
    }
    println!("fetching {PACKAGE} {VERSION}");
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--pack-destination"]).arg(&dir).arg(format!("{PACKAGE}@{VERSION}"));
    sh::run(&mut pack)?;
    let packed = dir.join(format!("{PACKAGE}-{VERSION}.tgz"));
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&packed).arg("-C").arg(&dir);
    sh::run(unpack.args(["--strip-components", "1", &format!("package/{FILE}")]))?;
    fs::remove_file(&packed)?;
    let found = sh::sha256(&fs::read(&file).context("the package has no such file")?);
    if found != SHA256 {
        fs::remove_file(&file)?;
    }
    ensure!(found == SHA256, "{FILE} of {PACKAGE} {VERSION} has the SHA-256 {found}, not {SHA256}");
    Ok(())
}
