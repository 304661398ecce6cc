//! A disk that refuses writes may hold data: the node is not cleaned, and no other disk is touched.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::{Bus, Fault};

use crate::stage::{METADATA, NODE, Stage, held, manageable};

pub const ABOUT: &str = "refused with its reason, and nothing is written to any disk";

pub async fn story(stage: Stage) -> Result<()> {
    let locked = stage.disk("LOCKED", Bus::Scsi, 32)?.with(Fault::ReadOnly);
    let free = stage.disk("FREE", Bus::Nvme, 32)?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&locked, &free]).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = held(&site.controller).await?;

    let record = after.record(METADATA, "LOCKED")?;
    ensure!(record.outcome == Outcome::Skipped, "{record:?}");
    let reason = record.reason.unwrap_or_default();
    ensure!(reason.contains("read-only"), "the record's reason is {reason:?}");
    after.ensure_says(&[&record.device, "LOCKED", "read-only"])?;
    let record = after.record(METADATA, "FREE")?;
    ensure!(record.outcome == Outcome::Skipped && record.bytes_erased == 0, "{record:?}");

    node.machine.power_off().await?;
    locked.ensure_untouched()?;
    free.ensure_untouched()
}
