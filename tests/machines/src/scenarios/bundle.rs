//! A vendor's bundle, added to a running controller: the node's next boot has its manager, and its step runs in the
//! cleaning. The ramdisk is the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::binaries::{binary, image_dir};
use lab::disk::Bus;
use serde_json::json;
use tokio::process::Command;

use crate::stage::{ERASE, NO_METADATA, NODE, Stage, manageable, through, verb};

/// The manager is the agent's own test of a good one, in shell.
const MANAGER: &str = include_str!("../../../../agent/agentd/tests/vendor/manager.sh");
/// On an interface that cleaning knows.
const STEPS: &str = r#"on_steps() { answer '{"steps":[{"interface":"deploy","step":"acme_light","priority":7,"abortable":true,"idempotent":true}]}'; }"#;
const STEP: &str = "deploy.acme_light";

pub async fn story(stage: Stage) -> Result<()> {
    let image = fs::read(image_dir()?.join("initramfs"))?;
    let desk = stage.dir.join("desk");
    vendor(&desk)?;
    anneal(&desk, &["bundle", "keygen", "acme.key"]).await?;
    let key = fs::read_to_string(desk.join("acme.key.pub"))?;
    let settings = format!("{NO_METADATA}[bundles]\ntrusted_keys = [{:?}]\n", key.trim());
    let disk = stage.disk("BUNDLE", Bus::Sata, 32)?;
    let mut site = stage.site(&settings).await?;
    let node = manageable(&mut site, &[&disk]).await?;
    let controller = &site.controller;

    let clean = through(controller, verb("provide"), "available").await?;
    ensure!(clean.results(ERASE).len() == 1 && clean.results(STEP).is_empty(), "{}", clean.anneal()["run"]);
    through(controller, verb("manage"), "manageable").await?;

    anneal(&desk, &["bundle", "build", "root", "manifest.json", "acme.bundle"]).await?;
    let refused = anneal(&desk, &["bundle", "add", "acme.bundle"]).await;
    let refused = refused.err().context("an unsigned bundle was taken")?.to_string();
    ensure!(refused.contains("unsigned ones are not allowed"), "{refused}");
    anneal(&desk, &["bundle", "build", "root", "manifest.json", "acme.bundle", "--key", "acme.key"]).await?;
    anneal(&desk, &["bundle", "add", "acme.bundle", "--scope", "driver:redfish"]).await?;
    let told = controller.get(&format!("/v1/anneal/bundles?node={NODE}")).await?;
    let digest = told["bundles"][0]["digest"].as_str().with_context(|| format!("{told}"))?.to_owned();

    let clean = through(controller, verb("provide"), "available").await?;
    let run = &clean.anneal()["run"];
    let results = clean.results(STEP);
    ensure!(clean.results(ERASE).len() == 1 && results.len() == 1, "{run}");
    ensure!(results[0]["result"].to_string().contains(r#""by":"acme""#), "its result: {}", results[0]);
    let version = format!(r#"manager="acme" version="1.0@{}""#, &digest[..12]);
    let console = fs::read_to_string(node.machine.spec().serial_log())?;
    ensure!(console.contains(&version), "{version} is not on the console");
    ensure!(fs::read(image_dir()?.join("initramfs"))? == image, "the image was built anew");
    Ok(())
}

/// What the vendor has on its desk: a root file system with busybox and the manager, and the manifest.
fn vendor(desk: &Path) -> Result<()> {
    let bin = desk.join("root/bin");
    fs::create_dir_all(&bin)?;
    fs::copy("/usr/bin/busybox", bin.join("busybox")).context("package busybox-static")?;
    symlink("busybox", bin.join("sh"))?;
    let manager = bin.join("manager");
    fs::write(&manager, format!("#!/bin/sh\nNAME=acme\n{MANAGER}\n{STEPS}\nserve\n"))?;
    fs::set_permissions(&manager, fs::Permissions::from_mode(0o755))?;
    let manifest = json!({
        "format": 1, "name": "acme", "version": "1.0", "vendor": "ACME", "protocol_versions": [1],
        "entry": ["/bin/manager"],
    });
    fs::write(desk.join("manifest.json"), manifest.to_string())?;
    Ok(())
}

/// The command line on the vendor's desk; its complaint is the error.
async fn anneal(desk: &Path, words: &[&str]) -> Result<()> {
    let output = Command::new(binary("anneal")?).args(words).current_dir(desk).output().await?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "anneal {}: {told}", words.join(" "));
    Ok(())
}
