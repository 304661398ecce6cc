//! A node's BMC as its administrator sees it.

use anyhow::{Context, Result};
use lab::redfish::RedfishBmc;
use lab::site::{BMC_PASSWORD, BMC_USER, SiteNode};
use serde_json::{Value, json};

/// The BMC, asked by the administrator.
pub struct Bmc {
    client: reqwest::Client,
    url: String,
}

impl Bmc {
    pub fn new(node: &SiteNode) -> Result<Self> {
        let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build()?;
        Ok(Self { client, url: node.bmc.url() })
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let request = self.client.get(format!("{}{path}", self.url));
        let answer = request.basic_auth(BMC_USER, Some(BMC_PASSWORD)).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    pub async fn patch(&self, body: &Value) -> Result<()> {
        let request = self.client.patch(format!("{}{}", self.url, RedfishBmc::system_id()));
        let answer = request.basic_auth(BMC_USER, Some(BMC_PASSWORD)).json(body).send().await?;
        answer.error_for_status()?;
        Ok(())
    }

    /// All that a user of the machine would find changed.
    pub async fn configuration(&self) -> Result<Value> {
        let system = self.get(RedfishBmc::system_id()).await?;
        let bios = self.get(system["Bios"]["@odata.id"].as_str().context("no Bios")?).await?;
        let settings = &bios["@Redfish.Settings"]["SettingsObject"]["@odata.id"];
        let pending = self.get(settings.as_str().context("no settings object")?).await?;
        Ok(json!({"boot": system["Boot"], "bios": bios["Attributes"], "pending": pending["Attributes"]}))
    }
}
