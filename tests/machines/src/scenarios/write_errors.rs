//! One sector of one disk cannot be written. The step fails and names that disk; what was done to the others
//! is kept, and true.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};

use crate::stage::{ERASE, METADATA, NODE, Stage, held, manageable};

pub const ABOUT: &str = "a disk that cannot be written: named, the node held, the other disks' records kept";

/// 512-byte sector: 30 MiB in.
const BAD_SECTOR: u64 = 61_440;

pub async fn story(stage: Stage) -> Result<()> {
    let good = stage.disk("GOOD-NVME", Bus::Nvme, 64)?;
    let bad = stage.disk("BAD-SATA", Bus::Sata, 64)?.with(Fault::WriteError(Some(BAD_SECTOR)));
    let other = stage.disk("GOOD-SCSI", Bus::Scsi, 64)?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&good, &bad, &other]).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = held(&site.controller).await?;
    ensure!(node.machine.is_on().await, "a failed node is left on for the operator");

    let record = after.record(ERASE, "BAD-SATA")?;
    ensure!(record.outcome == Outcome::Failed, "{record:?}");
    let reason = record.reason.unwrap_or_default();
    ensure!(!reason.is_empty(), "no reason in the record");
    after.ensure_says(&[&record.device, "BAD-SATA", &reason])?;
    let place = (BAD_SECTOR * 512).to_string();
    ensure!(reason.contains(&place), "byte {place} is not named: {reason}");
    for serial in ["GOOD-NVME", "GOOD-SCSI"] {
        after.erased(serial)?;
        ensure!(!after.last_error().contains(serial), "{serial} is blamed: {}", after.last_error());
    }
    ensure!(after.records(METADATA)?.len() == 3, "the records of the step before are kept");
    good.ensure_erased()?;
    other.ensure_erased()?;
    ensure!(bad.findings()?.unchanged > 0, "the bad sector was written after all");
    Ok(())
}
