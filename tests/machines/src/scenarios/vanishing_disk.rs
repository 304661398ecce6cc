//! A disk is pulled in the middle of its erase. It is named as failed, the other disk is done to the end.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};
use serde_json::json;

use crate::node::erasing;
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, Stage, held, manageable};

pub const ABOUT: &str = "a disk pulled during its erase: named, the node held, the other disk done";

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

    let after = held(&site.controller).await?;
    let record = after.record(ERASE, "PULLED")?;
    ensure!(record.outcome == Outcome::Failed, "{record:?}");
    after.ensure_says(&[&record.device, "PULLED"])?;
    let reason = record.reason.unwrap_or_default();
    ensure!(reason.contains("vanished"), "the record's reason is {reason:?}");
    after.erased("STAYS")?;
    ensure!(!after.last_error().contains("STAYS"), "STAYS is blamed: {}", after.last_error());
    ensure!(pulled.findings()?.unchanged > 0, "it was erased after all");
    stays.ensure_erased()
}
