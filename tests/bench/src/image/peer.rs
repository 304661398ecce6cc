//! ironic-python-agent's own code, which streams a raw image and leaves qcow2 to qemu-img.

use super::content::Kind;
use anyhow::{Context, Result, bail, ensure};
use contract::peers::{IPA, Peers};
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installed ironic-python-agent.
#[derive(Debug)]
pub struct Peer {
    python: PathBuf,
    /// Its /tmp: in a ramdisk that is memory, too.
    scratch: tempfile::TempDir,
}

/// What it took.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Wrote {
    /// Until its function came back.
    pub seconds: f64,
    /// Bytes of its scratch file.
    pub scratch: u64,
}

impl Peer {
    /// Installs it below `peers` if it is not there; its scratch file goes below `memory`.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn install(peers: &Path, memory: &Path) -> Result<Self> {
        let python = Peers::install(peers, &[IPA])?.program(IPA.0, "python3");
        let scratch = tempfile::Builder::new().prefix("anneal-bench-ipa-").tempdir_in(memory)?;
        let bin = scratch.path().join("bin");
        std::fs::create_dir(&bin)?;
        std::fs::write(scratch.path().join("ipa_write.py"), include_str!("../../peers/ipa_write.py"))?;
        // `sync` would wait for all other file systems of this machine; there may be no udev here.
        for idle in ["sync", "udevadm"] {
            std::os::unix::fs::symlink("/bin/true", bin.join(idle))?;
        }
        Ok(Peer { python, scratch })
    }

    /// Writes what is at `url`.
    ///
    /// # Errors
    /// When it fails.
    pub fn write(&self, kind: Kind, url: &str, sha256: &str, device: &Path) -> Result<Wrote> {
        let format = kind.peer.context("it does not take this format")?;
        let info = json!({"id": "image", "urls": [url], "disk_format": format, "stream_raw_images": true,
            "os_hash_algo": "sha256", "os_hash_value": sha256});
        let path = std::env::var("PATH")?;
        // It asks fuser(1) who uses the disk, which fails at processes that it may not look at: it sees only its own.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]).arg(&self.python);
        command.arg(self.scratch.path().join("ipa_write.py")).arg(info.to_string()).arg(device);
        command.env("TMPDIR", self.scratch.path()).current_dir(self.scratch.path());
        command.env("PATH", format!("{}:{path}", self.scratch.path().join("bin").display()));
        let output = command.output().context("python3")?;
        if !output.status.success() {
            bail!("ironic-python-agent: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let text = String::from_utf8(output.stdout)?;
        let wrote: Wrote = serde_json::from_str(text.lines().last().unwrap_or_default())?;
        ensure!(wrote.seconds > 0.0, "it took no time");
        let left = self.scratch.path().join("image");
        if left.exists() {
            std::fs::remove_file(left)?;
        }
        Ok(wrote)
    }
}
