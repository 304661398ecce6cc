//! "No matter what tasks are performed during CLEANING, the apparent configuration of the system must not change"
//! (specs/state-machine.txt): boot mode, boot order, persistent boot device and BIOS settings, as the BMC shows
//! them. First a step that is asked to change a setting does so, so that the settings are not those of the factory.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::wait;
use serde_json::json;

use crate::bmc::Bmc;
use crate::stage::{NO_METADATA, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "boot mode, boot order, persistent boot device, BIOS settings are the same after a cleaning";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("OLD", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)?;
    let mut site = stage.site(NO_METADATA).await?;
    let node = manageable(&mut site, &[&disk]).await?;

    // Without a ramdisk: the reboot that puts the setting in force is one from the disk.
    let settings = json!([{"name": "ProcTurboMode", "value": "Disabled"}]);
    let step = json!({"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}});
    let clean = json!({"target": "clean", "clean_steps": [step], "disable_ramdisk": true});
    through(&site.controller, clean, "manageable").await?;
    let console = node.machine.spec().serial_log();
    wait::for_line(&console, OLD_SYSTEM, SHORT).await.context("the reboot after the step")?;
    ensure!(!std::fs::read_to_string(&console)?.contains("anneal-agent"), "a ramdisk was booted");

    // As an administrator has it: network first, and yet always from the disk.
    let bmc = Bmc::new(&node)?;
    let disk_always = json!({"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous",
        "BootOrder": ["Boot0002", "Boot0001"]});
    bmc.patch(&json!({"Boot": disk_always})).await?;
    let before = bmc.configuration().await?;
    ensure!(before["bios"]["ProcTurboMode"] == "Disabled", "the step has changed nothing: {before}");
    ensure!(before["boot"]["BootSourceOverrideEnabled"] == "Continuous", "no persistent device: {before}");

    through(&site.controller, verb("provide"), "available").await?;
    ensure!(std::fs::read_to_string(&console)?.contains("anneal-agent"), "no ramdisk was booted");
    disk.ensure_erased()?;
    let after = bmc.configuration().await?;
    ensure!(after == before, "the configuration was\n{before}\nand is\n{after}");
    Ok(())
}
