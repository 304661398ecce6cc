//! docs/write-a-hardware-manager.md, line by line: its code becomes a bundle by its commands, and a node is cleaned
//! with it. What its `hwm-conformance` prints is looked at by `hwm-conformance/tests/good.rs`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::binaries::binary;
use lab::disk::Bus;
use lab::node::Firmware;
use serde_json::json;
use tokio::process::Command;

use crate::stage::{NODE, Stage, cleaned, enrol_redfish};

pub const ABOUT: &str =
    "the manager of docs/write-a-hardware-manager.md, made and bundled as it says, works on a node";

const TUTORIAL: &str = include_str!("../../../../docs/write-a-hardware-manager.md");
const SDK: &str = include_str!("../../../../hardware-managers/python/anneal_hwm.py");
/// A machine that the manager of the tutorial knows.
const ACME: [&str; 2] = ["-smbios", "type=1,manufacturer=ACME,product=R100"];

pub async fn story(stage: Stage) -> Result<()> {
    let desk = stage.dir.join("desk");
    fs::create_dir_all(&desk)?;
    fs::write(desk.join("anneal_hwm.py"), SDK)?;
    fs::write(desk.join("acme.py"), format!("{}{}\n", blocks("python"), blocks("python last")))?;
    shell(&desk, &blocks("sh")).await?;

    let key = fs::read_to_string(desk.join("acme.key.pub"))?;
    let mut site = stage.site(&format!("[bundles]\ntrusted_keys = [{:?}]\n", key.trim())).await?;
    let disk = stage.disk("TUTORIAL", Bus::Sata, 8)?;
    let node = site.node_with(NODE, Firmware::Bios, vec![disk.spec.clone()], &ACME).await?;
    enrol_redfish(&site, &node).await?;

    shell(&desk, &blocks("sh operator")).await?;
    let clean = cleaned(&site.controller, "manageable").await?;
    let fans = clean.results("management.list_fans");
    let answer = fans.first().map(|result| result["result"].to_string()).unwrap_or_default();
    ensure!(fans.len() == 1 && answer.contains(&json!({"slot": 3, "speed": 40}).to_string()), "{answer}");
    ensure!(clean.results("bios.set_fan_speed").len() == 1, "{}", clean.anneal()["run"]);
    disk.ensure_untouched()
}

/// All blocks of a kind, one after the other.
fn blocks(kind: &str) -> String {
    let all = TUTORIAL.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    all.filter(|(of, _)| *of == kind).fold(String::new(), |mut text, (_, block)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{block}");
        text
    })
}

/// Run commands there, with `anneal` at hand; the first that fails is the error.
async fn shell(desk: &Path, commands: &str) -> Result<()> {
    let anneal = binary("anneal")?;
    let ours = anneal.parent().context("a directory")?.display();
    let path = format!("{ours}:{}", std::env::var("PATH").unwrap_or_default());
    let output =
        Command::new("/bin/sh").args(["-exc", commands]).env("PATH", path).current_dir(desk).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
