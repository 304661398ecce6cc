//! Directories with hardware managers in shell, as the agent finds them.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

/// A directory for `--external`.
pub struct Vendors {
    pub directory: TempDir,
}

impl Vendors {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    /// Put a manager there: the good one, with these functions instead of its own.
    pub fn add(&self, name: &str, instead: &str) {
        self.add_as(name, name, instead, &json!({}));
    }

    /// In a directory of another name, and with these grants.
    pub fn add_as(&self, directory: &str, name: &str, instead: &str, grants: &Value) {
        let place = self.directory.path().join(directory);
        let bin = place.join("root/bin");
        fs::create_dir_all(&bin).expect("root");
        for path in [&place, &place.join("root"), &bin] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        fs::copy("/usr/bin/busybox", bin.join("busybox")).expect("package busybox-static");
        symlink("busybox", bin.join("sh")).expect("sh");
        let good = include_str!("manager.sh");
        fs::write(place.join("root/manager"), format!("NAME={name}\n{good}\n{instead}\nserve\n"))
            .expect("manager");
        let manifest = json!({
            "format": 1, "name": name, "version": "1.0", "vendor": "ACME", "protocol_versions": [1],
            "entry": ["/bin/sh", "/manager"], "grants": grants, "root_sha256": "0".repeat(64), "root_size": 4096,
        });
        fs::write(place.join("manifest.json"), manifest.to_string()).expect("manifest");
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}
