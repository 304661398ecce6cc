//! A hardware manager of a vendor, as agents outside the ramdisk find it: a directory.

use anyhow::{Context, Result};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Its name, by which its steps are listed.
pub const NAME: &str = "contract_vendor";

/// Where the managers of a scenario's nodes are, if it has any.
pub fn directory(dir: &Path) -> PathBuf {
    dir.join("vendors")
}

/// Puts `peers/vendor.sh` there.
pub fn install(dir: &Path) -> Result<()> {
    let root = directory(dir).join(NAME).join("root");
    std::fs::create_dir_all(root.join("bin"))?;
    // The sandbox runs it as a user of its own.
    for path in [dir, &directory(dir), &directory(dir).join(NAME), &root, &root.join("bin")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    std::fs::copy("/usr/bin/busybox", root.join("bin/busybox"))
        .or_else(|_| std::fs::copy("/bin/busybox", root.join("bin/busybox")))
        .context("busybox (Debian: apt install busybox-static)")?;
    symlink("busybox", root.join("bin/sh"))?;
    std::fs::write(root.join("manager"), include_str!("../peers/vendor.sh"))?;
    let manifest = json!({
        "format": 1, "name": NAME, "version": "1.0", "vendor": "ACME", "protocol_versions": [1],
        "entry": ["/bin/sh", "/manager"], "grants": {}, "root_sha256": "0".repeat(64), "root_size": 4096,
    });
    std::fs::write(directory(dir).join(NAME).join("manifest.json"), manifest.to_string())?;
    release(dir, '1')
}

/// A release of it: agents that boot from now on report a version with this digit, those that run do not.
pub fn release(dir: &Path, digit: char) -> Result<()> {
    let digest = digit.to_string().repeat(64);
    std::fs::write(directory(dir).join(NAME).join("digest"), digest).context("the digest")
}
