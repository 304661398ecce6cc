//! A disk is pulled in the middle of its erase. It is named as failed, the other disk is done to the end.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};
use serde_json::json;

use crate::node::{Node, erasing};
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, Stage, manageable};

pub async fn story(stage: Stage) -> Result<()> {
    // Larger than what is asked for at once: QEMU ends requests that are under way when a disk is pulled.
    let pulled = stage.disk("PULLED", Bus::Scsi, 256)?.with(Fault::SlowWrites(8 << 20));
    let stays = stage.disk("STAYS", Bus::Sata, 64)?.with(Fault::SlowWrites(8 << 20));
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&pulled, &stays]).await?;
    site.controller.provision(NODE, "provide").await?;
    erasing(&site.controller, NODE, "PULLED", 0.0, LONG).await?;
    ensure!(pulled.findings()?.unchanged > 0, "the erase ended too early for this scenario");
    node.machine.qmp("device_del", json!({"id": "dev0"})).await?;

    let after = Node(site.controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    after.ensure_held()?;
    let record = after.record(ERASE, "PULLED")?;
    ensure!(record.outcome == Outcome::Failed, "{record:?}");
    for part in [record.device.as_str(), "PULLED"] {
        ensure!(after.last_error().contains(part), "{part:?} is not in last_error: {}", after.last_error());
    }
    let reason = record.reason.unwrap_or_default();
    ensure!(reason.contains("vanished"), "the record's reason is {reason:?}");
    let record = after.record(ERASE, "STAYS")?;
    let verified = record.verification.as_ref().is_some_and(|seen| seen.passed);
    ensure!(record.outcome == Outcome::Erased && verified, "{record:?}");
    ensure!(!after.last_error().contains("STAYS"), "STAYS is blamed: {}", after.last_error());
    ensure!(pulled.findings()?.unchanged > 0, "it was erased after all");
    stays.ensure_erased()
}
