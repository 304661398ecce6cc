//! "No matter what tasks are performed during CLEANING, the apparent configuration of the system must not change"
//! (specs/state-machine.txt): boot mode, boot order, persistent boot device and BIOS settings, as the BMC shows
//! them. First a step that is asked to change a setting does so, so that the settings are not those of the factory.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::redfish::RedfishBmc;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::{BMC_PASSWORD, BMC_USER, SiteNode};
use lab::wait;
use serde_json::{Value, json};

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

/// The BMC, asked by the administrator.
struct Bmc {
    client: reqwest::Client,
    url: String,
}

impl Bmc {
    fn new(node: &SiteNode) -> Result<Self> {
        let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build()?;
        Ok(Self { client, url: node.bmc.url() })
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let request = self.client.get(format!("{}{path}", self.url));
        let answer = request.basic_auth(BMC_USER, Some(BMC_PASSWORD)).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    async fn patch(&self, body: &Value) -> Result<()> {
        let request = self.client.patch(format!("{}{}", self.url, RedfishBmc::system_id()));
        let answer = request.basic_auth(BMC_USER, Some(BMC_PASSWORD)).json(body).send().await?;
        answer.error_for_status()?;
        Ok(())
    }

    /// All that a user of the machine would find changed.
    async fn configuration(&self) -> Result<Value> {
        let system = self.get(RedfishBmc::system_id()).await?;
        let bios = self.get(system["Bios"]["@odata.id"].as_str().context("no Bios")?).await?;
        let settings = &bios["@Redfish.Settings"]["SettingsObject"]["@odata.id"];
        let pending = self.get(settings.as_str().context("no settings object")?).await?;
        Ok(json!({"boot": system["Boot"], "bios": bios["Attributes"], "pending": pending["Attributes"]}))
    }
}
