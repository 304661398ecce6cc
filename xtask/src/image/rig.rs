//! `image/out/rig`: an archive to be put behind the initramfs, with the drive in user space of `tests/drive` and the
//! kernel modules that it needs. Only tests have it; the image itself stays as it is.

use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use super::cpio::Archive;
use super::{agent, kernel, modules};

/// What plugs the drives in; `sd_mod` and what it needs are the agent's to load, as for any disk.
const MODULES: [&str; 2] = ["target_core_user", "tcm_loop"];

/// The archive, not compressed.
pub fn archive(work: &Path) -> Result<Vec<u8>> {
    let kernel = kernel::fetch(work)?;
    let program = agent::build("drive", "drive")?;
    let drive = fs::read(&program)?;
    agent::ensure_static(&drive, &program)?;
    let mut archive = Archive::default();
    archive.file("rig/drive", 0o755, &drive)?;
    let mut order = String::new();
    for path in modules::ordered(&kernel, &MODULES)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        archive.file(&format!("rig/modules/{name}"), 0o644, &fs::read(&path)?)?;
        order.push_str(&name);
        order.push('\n');
    }
    archive.file("rig/modules/order", 0o644, order.as_bytes())?;
    Ok(archive.finish())
}
