//! A vendor's desk: hardware managers in shell, and the command line that makes bundles of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use lab::binaries::binary;
use serde_json::json;
use tokio::process::Command;

/// A good manager in shell, the one of the agent's own tests.
const MANAGER: &str = include_str!("../../../agent/agentd/tests/vendor/manager.sh");
/// The vendor's private key; the public one is next to it.
const KEY: &str = "acme.key";

/// A directory with a key.
pub struct Desk {
    dir: PathBuf,
}

impl Desk {
    /// An empty desk in this directory, with a new key.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn new(dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(&dir)?;
        let desk = Self { dir };
        desk.anneal(&["bundle", "keygen", KEY]).await?;
        Ok(desk)
    }

    /// A part of the configuration that trusts this vendor.
    ///
    /// # Errors
    /// When the key is not there.
    pub fn trusted(&self) -> Result<String> {
        let key = fs::read_to_string(self.dir.join(format!("{KEY}.pub")))?;
        Ok(format!("[bundles]\ntrusted_keys = [{:?}]\n", key.trim()))
    }

    /// What is bundled as this name: busybox, the good manager with these functions instead of its own, a manifest.
    ///
    /// # Errors
    /// When it cannot be written, or there is no busybox.
    pub fn manager(&self, name: &str, instead: &str) -> Result<()> {
        let place = self.dir.join(name);
        let bin = place.join("root/bin");
        fs::create_dir_all(&bin)?;
        fs::copy("/usr/bin/busybox", bin.join("busybox")).context("package busybox-static")?;
        symlink("busybox", bin.join("sh"))?;
        let manager = bin.join("manager");
        fs::write(&manager, format!("#!/bin/sh\nNAME={name}\n{MANAGER}\n{instead}\nserve\n"))?;
        fs::set_permissions(&manager, fs::Permissions::from_mode(0o755))?;
        let manifest = json!({
            "format": 1, "name": name, "version": "1.0", "vendor": "ACME", "protocol_versions": [1],
            "entry": ["/bin/manager"],
        });
        fs::write(place.join("manifest.json"), manifest.to_string())?;
        Ok(())
    }

    /// Make a bundle of it, signed with the key or not.
    ///
    /// # Errors
    /// What the command says.
    pub async fn build(&self, name: &str, signed: bool) -> Result<()> {
        let (root, manifest, file) =
            (format!("{name}/root"), format!("{name}/manifest.json"), format!("{name}.bundle"));
        let mut words = vec!["bundle", "build", &root, &manifest, &file];
        words.extend(if signed { ["--key", KEY].as_slice() } else { &[] });
        self.anneal(&words).await
    }

    /// Give the bundle to the controller, for these nodes.
    ///
    /// # Errors
    /// What the command says.
    pub async fn add(&self, name: &str, scope: &str) -> Result<()> {
        self.anneal(&["bundle", "add", &format!("{name}.bundle"), "--scope", scope]).await
    }

    /// The command line, here; its complaint is the error.
    async fn anneal(&self, words: &[&str]) -> Result<()> {
        let output = Command::new(binary("anneal")?).args(words).current_dir(&self.dir).output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "anneal {}: {errors}", words.join(" "));
        Ok(())
    }
}
