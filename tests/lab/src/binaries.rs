//! Where the programs under test are.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Directories of the programs and of the image, when they were set.
static DIRS: OnceLock<(Option<PathBuf>, Option<PathBuf>)> = OnceLock::new();

/// Says where programs and image are, before either is asked for; the first call counts.
pub fn use_dirs(programs: Option<PathBuf>, image: Option<PathBuf>) {
    DIRS.get_or_init(|| (programs, image));
}

/// A program of this workspace, such as `anneal-controller`: in `ANNEAL_BIN`, or next to the program that
/// runs now (tests run from `deps/` below it).
///
/// # Errors
/// When it was not built.
pub fn binary(name: &str) -> Result<PathBuf> {
    let set = DIRS.get().and_then(|dirs| dirs.0.clone());
    let dir = match set.or_else(|| std::env::var_os("ANNEAL_BIN").map(PathBuf::from)) {
        Some(dir) => dir,
        None => {
            let this = std::env::current_exe().context("where am I?")?;
            let dir = this.parent().unwrap_or(Path::new("/"));
            let dir = if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir };
            dir.to_owned()
        }
    };
    let path = dir.join(name);
    ensure!(path.is_file(), "{} is missing: cargo xtask builds it", path.display());
    Ok(path)
}

/// The directory with `vmlinuz` and `initramfs`: `ANNEAL_IMAGE`, or what `cargo xtask image` made.
///
/// # Errors
/// When they are not there.
pub fn image_dir() -> Result<PathBuf> {
    let set = DIRS.get().and_then(|dirs| dirs.1.clone());
    let dir = match set.or_else(|| std::env::var_os("ANNEAL_IMAGE").map(PathBuf::from)) {
        Some(dir) => dir,
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../image/out"),
    };
    for file in ["vmlinuz", "initramfs"] {
        let path = dir.join(file);
        ensure!(path.is_file(), "{} is missing: run cargo xtask image", path.display());
    }
    Ok(dir)
}

/// The directory of an iPXE that has IPv6, below [`image_dir`].
///
/// # Errors
/// When it is not there.
pub fn ipxe_dir() -> Result<PathBuf> {
    let dir = image_dir()?.join("ipxe");
    ensure!(dir.join("snponly.efi").is_file(), "{} is missing: run cargo xtask image --ipxe", dir.display());
    Ok(dir)
}
