//! One sector of one disk cannot be written. The step fails and names that disk; what was done to the others
//! is kept, and true.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};

use crate::node::Node;
use crate::stage::{ERASE, LONG, METADATA, NODE, Stage, manageable};

/// 512-byte sector: 30 MiB in.
const BAD_SECTOR: u64 = 61_440;

pub async fn story(stage: Stage) -> Result<()> {
    let good = stage.disk("GOOD-NVME", Bus::Nvme, 64)?;
    let bad = stage.disk("BAD-SATA", Bus::Sata, 64)?.with(Fault::WriteError(Some(BAD_SECTOR)));
    let other = stage.disk("GOOD-SCSI", Bus::Scsi, 64)?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&good, &bad, &other]).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = Node(site.controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    after.ensure_held()?;
    ensure!(node.machine.is_on().await, "a failed node is left on for the operator");

    let record = after.record(ERASE, "BAD-SATA")?;
    ensure!(record.outcome == Outcome::Failed, "{record:?}");
    let reason = record.reason.unwrap_or_default();
    ensure!(!reason.is_empty(), "no reason in the record");
    for part in [record.device.as_str(), "BAD-SATA", reason.as_str()] {
        ensure!(after.last_error().contains(part), "{part:?} is not in last_error: {}", after.last_error());
    }
    let place = (BAD_SECTOR * 512).to_string();
    ensure!(reason.contains(&place), "byte {place} is not named: {reason}");
    for serial in ["GOOD-NVME", "GOOD-SCSI"] {
        let record = after.record(ERASE, serial)?;
        let verified = record.verification.as_ref().is_some_and(|seen| seen.passed);
        ensure!(record.outcome == Outcome::Erased && verified, "{record:?}");
        ensure!(!after.last_error().contains(serial), "{serial} is blamed: {}", after.last_error());
    }
    ensure!(after.records(METADATA)?.len() == 3, "the records of the step before are kept");
    good.ensure_erased()?;
    other.ensure_erased()?;
    ensure!(bad.findings()?.unchanged > 0, "the bad sector was written after all");
    Ok(())
}
