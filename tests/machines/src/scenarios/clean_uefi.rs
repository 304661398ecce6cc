//! The main job: a UEFI server with a disk of every kind, from old data to available. A tenant's kernel has also left a record of
//! its crash in the firmware's variables.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::Bus;
use lab::node::Firmware;
use lab::signatures::{Content, Table};
use lab::uefi_variables;

use crate::stage::{METADATA, NODE, Stage, enrol_redfish, through, verb};

pub const ABOUT: &str = "a UEFI node with a disk of every kind, from old data to available";

/// Before the disks are erased.
const ERASE_PSTORE: &str = "clean_step_priority_override = { \"deploy.erase_pstore\" = 20 }\n";

pub async fn story(stage: Stage) -> Result<()> {
    let disks = [
        stage.disk("S-NVME", Bus::Nvme, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?,
        stage.disk("S-SATA", Bus::Sata, 64)?.labelled(Table::Mbr, Content::MdMember)?,
        stage.disk("S-SCSI", Bus::Scsi, 64)?.labelled(Table::Gpt, Content::Data)?,
        stage.disk("S-VIRTIO", Bus::Virtio, 64)?,
    ];
    let mut site = stage.site(ERASE_PSTORE).await?;
    let specs = disks.iter().map(|disk| disk.spec.clone()).collect();
    let node = site.node(NODE, Firmware::Uefi, specs).await?;
    node.machine.spec().ensure_files()?;
    let variables = node.machine.spec().uefi_variables();
    uefi_variables::leave_crash_record(&variables)?;
    enrol_redfish(&site, &node).await?;
    let after = through(&site.controller, verb("provide"), "available").await?;
    ensure!(!node.machine.is_on().await, "an available node is off");
    let record = uefi_variables::value(&variables, uefi_variables::CRASH_RECORD)?;
    ensure!(record.is_none(), "the record of a crash is still in the firmware's variables");
    ensure!(uefi_variables::value(&variables, "BootOrder")?.is_some(), "other variables are gone as well");
    for disk in &disks {
        let record = after.record(METADATA, disk.serial())?;
        ensure!(record.outcome == Outcome::MetadataErased, "{record:?}");
        let record = after.erased(disk.serial())?;
        ensure!(record.size == 64 << 20, "{record:?}");
        disk.ensure_erased()?;
    }
    Ok(())
}
