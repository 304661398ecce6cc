//! A node that is never powered off is cleaned: it is reset at the beginning and at the end, and its certificate says that no
//! power-off was observed.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::site::Site;
use serde_json::{Value, json};

use crate::node::{Node, history};
use crate::stage::{NO_METADATA, NODE, Stage, manageable, through, verb};

pub const ABOUT: &str = "a node that is never powered off is reset instead, and its certificate says so";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("KEPT", Bus::Sata, 16)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&disk]).await?;
    site.controller.set(NODE, json!({"/disable_power_off": true})).await?;
    // Its workload runs when the cleaning begins.
    node.machine.power_on().await?;
    let cleaned = through(&site.controller, verb("provide"), "available").await?;
    disk.ensure_erased()?;
    ensure!(node.machine.is_on().await, "it was powered off at the end of the cleaning");
    says_so(&site, &cleaned).await?;
    let events = history(&site.controller, NODE).await?;
    let resets = events.iter().filter(|event| event.contains("reset, and no power-off was observed")).count();
    ensure!(resets == 1, "{resets} resets: {events:?}");
    Ok(())
}

/// The certificate of the only step of the cleaning.
async fn says_so(site: &Site, cleaned: &Node) -> Result<()> {
    let result = &cleaned.anneal()["run"]["results"][0];
    let id = result["certificate"].as_str().with_context(|| format!("no certificate: {result}"))?;
    let file = site.controller.get(&format!("/v1/anneal/certificates/{id}")).await?;
    let payload: Value = serde_json::from_str(file["payload"].as_str().context("no payload")?)?;
    ensure!(payload["run"]["power_off"] == "not_observed", "the certificate says {}", payload["run"]);
    Ok(())
}
