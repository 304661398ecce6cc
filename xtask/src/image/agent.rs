//! The agent for the ramdisk: static, small, and the same bytes whichever directory it is built in.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::sh;

/// Static needs no more than this target (glibc), which every toolchain has.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds a program of ours for the ramdisk, such as `anneal-agent`, and returns its path.
pub fn build(package: &str, program: &str) -> Result<PathBuf> {
    let home = cargo_home()?;
    let flags = [
        "-C target-feature=+crt-static".to_owned(),
        // Panic messages carry source paths: without these the bytes would contain the build directory.
        format!("--remap-path-prefix={}=/anneal", sh::root().display()),
        format!("--remap-path-prefix={}=/cargo", home.display()),
    ]
    .join(" ");
    sh::run(
        sh::cargo()
            .args(["build", "--profile", "ramdisk", "--target", TARGET])
            .args(["--package", package, "--bin", program])
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", flags),
    )
    .with_context(|| format!("cannot build {program} (an image with another agent: --agent FILE)"))?;
    Ok(sh::target_dir().join(TARGET).join("ramdisk").join(program))
}

pub fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cargo"))
}

/// Refuses a binary that the kernel could not start in an otherwise empty ramdisk: one that is no x86-64
/// ELF executable (ELF specification, figure 1-3), or asks for a dynamic loader (program header
/// `PT_INTERP`, figure 2-2).
pub fn ensure_static(bytes: &[u8], path: &Path) -> Result<()> {
    let shown = path.display();
    let field = |at: usize, len: usize| -> Result<u64> {
        let raw = bytes.get(at..at + len).with_context(|| format!("{shown}: cut off at byte {at}"))?;
        Ok(raw.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") || field(18, 2)? != 62 {
        bail!("{shown} is no ELF executable for x86-64");
    }
    let table = usize::try_from(field(32, 8)?)?;
    let (size, count) = (usize::try_from(field(54, 2)?)?, usize::try_from(field(56, 2)?)?);
    for entry in 0..count {
        const PT_INTERP: u64 = 3;
        if field(table + entry * size, 4)? == PT_INTERP {
            bail!("{shown} is linked dynamically; the ramdisk has no libraries");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_and_foreign_files_are_refused() {
        let this = std::env::current_exe().unwrap();
        let error = ensure_static(&std::fs::read(&this).unwrap(), &this).unwrap_err();
        assert!(error.to_string().contains("dynamically"), "{error}");
        let error = ensure_static(b"#!/bin/sh\n", Path::new("script")).unwrap_err();
        assert!(error.to_string().contains("script is no ELF"), "{error}");
        assert!(ensure_static(b"\x7fELF\x02\x01", Path::new("cut")).is_err());
    }
}
