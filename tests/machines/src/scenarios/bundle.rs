//! A vendor's bundle, added to a running controller: the node's next boot has its manager, and its step runs in the
//! cleaning. The ramdisk is the same.

use std::fs;

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;
use lab::disk::Bus;

use crate::desk::Desk;
use crate::stage::{ERASE, NO_METADATA, NODE, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "a vendor's bundle added to a running controller: the next boot has its manager, its step runs";

/// On an interface that cleaning knows.
const STEPS: &str = r#"on_steps() { answer '{"steps":[{"interface":"deploy","step":"acme_light","priority":7,"abortable":true,"idempotent":true}]}'; }"#;
const STEP: &str = "deploy.acme_light";

pub async fn story(stage: Stage) -> Result<()> {
    let image = fs::read(image_dir()?.join("initramfs"))?;
    let desk = Desk::new(stage.dir.join("desk")).await?;
    desk.manager("acme", STEPS)?;
    let disk = stage.disk("BUNDLE", Bus::Sata, 32)?;
    let mut site = stage.site(&format!("{NO_METADATA}{}", desk.trusted()?)).await?;
    let node = manageable(&mut site, &[&disk]).await?;
    let controller = &site.controller;

    let clean = through(controller, verb("provide"), "available").await?;
    ensure!(clean.results(ERASE).len() == 1 && clean.results(STEP).is_empty(), "{}", clean.anneal()["run"]);
    through(controller, verb("manage"), "manageable").await?;

    desk.build("acme", false).await?;
    let refused = desk.add("acme", "all").await.err().context("an unsigned bundle was taken")?.to_string();
    ensure!(refused.contains("unsigned ones are not allowed"), "{refused}");
    desk.build("acme", true).await?;
    desk.add("acme", "driver:redfish").await?;
    let list = controller.get(&format!("/v1/anneal/bundles?node={NODE}")).await?;
    let digest = list["bundles"][0]["digest"].as_str().with_context(|| format!("{list}"))?.to_owned();

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
