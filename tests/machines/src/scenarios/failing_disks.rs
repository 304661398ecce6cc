//! One sector of one disk cannot be written, and another disk is pulled in the middle of its erase. The step fails and names both;
//! what was done to the others is kept, and true.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};
use serde_json::json;

use crate::node::erasing;
use crate::stage::{ERASE, LONG, METADATA, NODE, Stage, held, manageable};

pub const ABOUT: &str =
    "a disk that cannot be written and one that is pulled: named, the node held, the others done";

/// 512-byte sector: 30 MiB in.
const BAD_SECTOR: u64 = 61_440;

pub async fn story(stage: Stage) -> Result<()> {
    // Larger than what is asked for at once: QEMU ends requests that are under way when a disk is pulled.
    let pulled = stage.disk("PULLED", Bus::Scsi, 256)?.with(Fault::SlowWrites(8 << 20));
    let good = stage.disk("GOOD-NVME", Bus::Nvme, 64)?;
    let bad = stage.disk("BAD-SATA", Bus::Sata, 64)?.with(Fault::WriteError(Some(BAD_SECTOR)));
    let other = stage.disk("GOOD-SATA", Bus::Sata, 64)?.with(Fault::SlowWrites(8 << 20));
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&pulled, &good, &bad, &other]).await?;
    site.controller.provision(NODE, "provide").await?;
    erasing(&site.controller, NODE, "PULLED", 0.0, LONG).await?;
    ensure!(pulled.findings()?.unchanged > 0, "the erase ended too early for this scenario");
    node.machine.qmp("device_del", json!({"id": "dev0"})).await?;
    let after = held(&site.controller).await?;
    ensure!(node.machine.is_on().await, "a failed node is left on for the operator");

    let record = after.record(ERASE, "PULLED")?;
    ensure!(record.outcome == Outcome::Failed, "{record:?}");
    after.ensure_says(&[&record.device, "PULLED"])?;
    let reason = record.reason.unwrap_or_default();
    ensure!(reason.contains("vanished"), "the record's reason is {reason:?}");
    ensure!(pulled.findings()?.unchanged > 0, "it was erased after all");

    let record = after.record(ERASE, "BAD-SATA")?;
    ensure!(record.outcome == Outcome::Failed, "{record:?}");
    let reason = record.reason.unwrap_or_default();
    ensure!(!reason.is_empty(), "no reason in the record");
    after.ensure_says(&[&record.device, "BAD-SATA", &reason])?;
    let place = (BAD_SECTOR * 512).to_string();
    ensure!(reason.contains(&place), "byte {place} is not named: {reason}");
    ensure!(bad.findings()?.unchanged > 0, "the bad sector was written after all");

    for disk in [&good, &other] {
        let serial = disk.serial();
        after.erased(serial)?;
        ensure!(!after.last_error().contains(serial), "{serial} is blamed: {}", after.last_error());
        disk.ensure_erased()?;
    }
    ensure!(after.records(METADATA)?.len() == 4, "the records of the step before are kept");
    Ok(())
}
