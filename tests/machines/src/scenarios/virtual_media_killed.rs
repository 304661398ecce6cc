//! The controller is killed at ten points of a boot by virtual media: afterwards no medium is in, and the node arrives.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use lab::site::{Site, SiteNode};
use lab::wait;
use serde_json::json;
use std::time::{Duration, Instant};

use crate::stage::{LONG, NO_METADATA, NODE, Stage, cleaned, enrol_redfish, through};

pub const ABOUT: &str = "SIGKILL of the controller at ten points of a boot by virtual media";

/// How often it is killed.
pub const POINTS: u32 = 10;

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("KILLED", Bus::Sata, 32)?;
    let mut site = stage.site(NO_METADATA).await?;
    let specs = vec![disk.spec.clone()];
    let node = site.node_like(NODE, Firmware::Bios, specs, |_| {}, MediaQuirks::default()).await?;
    enrol_redfish(&site, &node).await?;
    site.controller.set(NODE, json!({"/boot_interface": "redfish-virtual-media"})).await?;

    let begun = Instant::now();
    site.controller.provision(NODE, "provide").await?;
    wait::until("a medium to be in", LONG, || async { Ok(is_in(&node).then_some(())) }).await?;
    wait::until("it to be out", LONG, || async { Ok((!is_in(&node)).then_some(())) }).await?;
    let boot = begun.elapsed();
    let after = cleaned(&site.controller, "available").await?;
    after.erased(disk.serial())?;
    disk.ensure_erased()?;

    let mut moments = stage.moments();
    for point in 0..POINTS {
        through(&site.controller, json!({"target": "manage"}), "manageable").await?;
        let from = boot * point / POINTS;
        let at = from + moments.within(boot / POINTS);
        killed_at(at, &mut site, &node)
            .await
            .with_context(|| format!("killed {:.1} s after the request", at.as_secs_f64()))?;
    }
    Ok(())
}

/// One cleaning whose controller is killed so long after the request.
async fn killed_at(at: Duration, site: &mut Site, node: &SiteNode) -> Result<()> {
    site.controller.provision(NODE, "provide").await?;
    tokio::time::sleep(at).await;
    site.controller.kill().await?;
    site.controller.restart().await?;
    cleaned(&site.controller, "available").await?;
    ensure!(!is_in(node), "left in: {:?}", node.bmc.inserted_media());
    ensure!(!node.machine.is_on().await, "an available node is off");
    Ok(())
}

fn is_in(node: &SiteNode) -> bool {
    !node.bmc.inserted_media().is_empty()
}
