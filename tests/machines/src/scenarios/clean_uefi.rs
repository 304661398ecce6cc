//! The main job: a UEFI server with a disk of every kind, from old data to available.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::signatures::{Content, Table};

use crate::stage::{METADATA, NODE, Stage, enrol_redfish, through, verb};

pub const ABOUT: &str = "a UEFI node with a disk of every kind, from old data to available";

pub async fn story(stage: Stage) -> Result<()> {
    let disks = [
        stage.disk("S-NVME", Bus::Nvme, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?,
        stage.disk("S-SATA", Bus::Sata, 64)?.labelled(Table::Mbr, Content::MdMember)?,
        stage.disk("S-SCSI", Bus::Scsi, 64)?.labelled(Table::Gpt, Content::Data)?,
        stage.disk("S-VIRTIO", Bus::Virtio, 64)?,
    ];
    let mut site = stage.site("").await?;
    let specs = disks.iter().map(|disk| disk.spec.clone()).collect();
    let node = site.node(NODE, Firmware::Uefi, specs).await?;
    enrol_redfish(&site, &node).await?;
    let after = through(&site.controller, verb("provide"), "available").await?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    for disk in &disks {
        let record = after.record(METADATA, disk.serial())?;
        ensure!(record.outcome == Outcome::MetadataErased, "{record:?}");
        let record = after.erased(disk.serial())?;
        ensure!(record.size == 64 << 20, "{record:?}");
        disk.ensure_erased()?;
    }
    Ok(())
}
