//! A disk that refuses writes may hold data: the node is not cleaned, and no other disk is touched.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};

use crate::node::Node;
use crate::stage::{LONG, METADATA, NODE, Stage, manageable};

pub async fn story(stage: Stage) -> Result<()> {
    let locked = stage.disk("LOCKED", Bus::Scsi, 32)?.with(Fault::ReadOnly);
    let free = stage.disk("FREE", Bus::Nvme, 32)?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&locked, &free]).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = Node(site.controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    after.ensure_held()?;

    let record = after.record(METADATA, "LOCKED")?;
    ensure!(record.outcome == Outcome::Skipped, "{record:?}");
    let reason = record.reason.unwrap_or_default();
    ensure!(reason.contains("read-only"), "the record's reason is {reason:?}");
    for part in [record.device.as_str(), "LOCKED", "read-only"] {
        ensure!(after.last_error().contains(part), "{part:?} is not in last_error: {}", after.last_error());
    }
    let record = after.record(METADATA, "FREE")?;
    ensure!(record.outcome == Outcome::Skipped && record.bytes_erased == 0, "{record:?}");

    node.machine.power_off().await?;
    locked.ensure_untouched()?;
    free.ensure_untouched()
}
