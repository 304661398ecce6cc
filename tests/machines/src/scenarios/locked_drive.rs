//! The power goes in the middle of a SATA drive's secure erase, which leaves it locked with a password. The next boot
//! finds it locked, knows the password, and erases it after all.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::wait;
use serde_json::json;
use std::fs;

use crate::rig::Rig;
use crate::stage::{ERASE, LONG, NODE, Stage, cleaned};

pub const ABOUT: &str =
    "the power goes in a secure erase: the drive is found locked, unlocked, and erased after all";

const SERIAL: &str = "HOSTAGE";
const BEGINS: &str = "drive HOSTAGE: SECURITY ERASE UNIT, enhanced, begins";

pub async fn story(stage: Stage) -> Result<()> {
    let rig = Rig::new(&stage, &["ata,HOSTAGE,security,spins,takes=8"])?;
    let mut site = rig.site(&stage).await?;
    let node = rig.node(&mut site).await?;
    let step = json!({"interface": "deploy", "step": "erase_devices", "args": {"level": "purge"}});
    site.controller.provision_with(NODE, json!({"target": "clean", "clean_steps": [step]})).await?;

    let log = node.machine.spec().serial_log();
    let begun = || fs::read(&log).map_or(0, |text| String::from_utf8_lossy(&text).matches(BEGINS).count());
    wait::until("the secure erase to begin", LONG, || async { Ok((begun() == 1).then_some(())) }).await?;
    node.machine.power_off().await?;
    ensure!(rig.has_password(SERIAL)?, "the drive has no password in the middle of its erase");
    ensure!(rig.disk(SERIAL)?.findings()?.unchanged > 0, "the erase ended too early for this scenario");

    let after = cleaned(&site.controller, "manageable").await?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    ensure!(text.contains("drive HOSTAGE: unlocked"), "the drive was not found locked");
    ensure!(begun() == 2, "the drive was not erased anew");
    ensure!(!rig.has_password(SERIAL)?, "the drive was left with its password");
    let record = after.record(ERASE, SERIAL)?;
    let method = record.method.as_deref();
    ensure!(record.outcome == Outcome::Erased && method == Some("ata-secure-erase-enhanced"), "{record:?}");
    let found = rig.disk(SERIAL)?.findings()?;
    ensure!(found.held_data > 0 && found.unchanged == 0 && found.tags == 0, "{found:?}");
    Ok(())
}
