//! Members of arrays and volume groups that are not assembled. Metadata first, alone, then everything; outside
//! judges (util-linux) find nothing after either.

use std::path::Path;

use agent_protocol::record::Outcome;
use anyhow::{Context, Result, bail, ensure};
use lab::disk::Bus;
use lab::signatures::{Content, PARTITION_START, Table};
use serde_json::json;
use tokio::process::Command;

use crate::disk::OldDisk;
use crate::stage::{METADATA, Stage, manageable, through, verb};

pub const ABOUT: &str = "members of md and LVM: metadata alone, then everything; blkid finds nothing";

pub async fn story(stage: Stage) -> Result<()> {
    let volume = stage.disk("LVM", Bus::Scsi, 64)?.labelled(Table::Gpt, Content::LvmPhysicalVolume)?;
    let member = stage.disk("MD", Bus::Sata, 64)?.labelled(Table::Mbr, Content::MdMember)?;
    let disks = [&volume, &member];
    ensure!(labels(&volume).await?.contains("LVM2_member"), "no LVM label to begin with");
    ensure!(labels(&member).await?.contains("linux_raid_member"), "no md label to begin with");

    let mut site = stage.site("").await?;
    let _node = manageable(&mut site, &disks).await?;
    let clean = json!({
        "target": "clean",
        "clean_steps": [{"interface": "deploy", "step": "erase_devices_metadata"}],
    });
    let after = through(&site.controller, clean, "manageable").await?;
    for disk in disks {
        let record = after.record(METADATA, disk.serial())?;
        ensure!(record.outcome == Outcome::MetadataErased, "{record:?}");
        ensure!(labels(disk).await?.is_empty(), "{} still has: {}", disk.serial(), labels(disk).await?);
        ensure!(disk.findings()?.tags > 0, "{}: only metadata was to be erased", disk.serial());
    }

    through(&site.controller, verb("provide"), "available").await?;
    for disk in disks {
        disk.ensure_erased()?;
        ensure!(labels(disk).await?.is_empty(), "{} has labels", disk.serial());
    }
    Ok(())
}

/// What `blkid` recognises on the disk and where its partition was.
async fn labels(disk: &OldDisk) -> Result<String> {
    let whole = blkid(&disk.spec.file, 0).await?;
    Ok(format!("{whole}{}", blkid(&disk.spec.file, PARTITION_START * 512).await?))
}

async fn blkid(file: &Path, offset: u64) -> Result<String> {
    const NOTHING_FOUND: i32 = 2;
    let out = Command::new("blkid")
        .args(["--probe", "--output", "export", "--offset", &offset.to_string()])
        .arg(file)
        .output()
        .await
        .context("cannot start blkid (util-linux)")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    match out.status.code() {
        Some(0) => Ok(text),
        Some(NOTHING_FOUND) => Ok(String::new()),
        _ => bail!("blkid of {}: {}", file.display(), String::from_utf8_lossy(&out.stderr)),
    }
}
