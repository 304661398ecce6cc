//! `image/out/bench`: an initramfs of its own for `cargo xtask bench erase`. Its init is the bench; next to it are the tools
//! that are measured, with their libraries, and the modules of the node's disks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::cpio::Archive;
use super::{kernel, modules};

const MODULES: [&str; 3] = ["virtio_pci", "virtio_blk", "nvme"];
/// nwipe asks others by way of a shell.
const TOOLS: [&str; 6] = ["fio", "blkdiscard", "dd", "shred", "nwipe", "sh"];

/// The archive, not compressed: it is used once.
pub fn archive(work: &Path, bench: &Path) -> Result<Vec<u8>> {
    let kernel = kernel::fetch(work)?;
    let mut archive = Archive::default();
    archive.dir("dev")?;
    archive.char_device("dev/console", 5, 1)?;
    let mut libraries = libraries(bench)?;
    archive.file("init", 0o755, &fs::read(bench)?)?;
    for tool in TOOLS {
        let path = which(tool)?;
        libraries.extend(self::libraries(&path)?);
        archive.file(&format!("bin/{tool}"), 0o755, &fs::read(&path)?)?;
    }
    for library in &libraries {
        let path = library.to_str().context("a library's path")?.trim_start_matches('/');
        archive.file(path, 0o755, &fs::read(library)?)?;
    }
    for (index, path) in modules::ordered(&kernel, &MODULES)?.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("modules/{index:02}-{name}"), 0o644, &fs::read(path)?)?;
    }
    Ok(archive.finish())
}

fn which(tool: &str) -> Result<PathBuf> {
    let dirs = ["/usr/bin", "/usr/sbin"].map(|dir| Path::new(dir).join(tool));
    dirs.into_iter().find(|path| path.exists()).with_context(|| format!("{tool} is not installed"))
}

/// What a program is linked with, the loader included.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd")?;
    ensure!(output.status.success(), "ldd {}", program.display());
    let listed = String::from_utf8(output.stdout)?;
    let paths = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(PathBuf::from).collect())
}
