//! A client that reads the power state of a fleet over Redfish, and does nothing else.

use crate::bmc::{SYSTEM, USER};
use crate::fleet::Fleet;
use anyhow::{Context, Result, ensure};
use reqwest::Client;
use serde_json::Value;

/// The client: a fresh connection for each reading, as the controller has one for a BMC that it has not asked for minutes.
pub struct Reader {
    client: Client,
    urls: Vec<String>,
}

impl Reader {
    /// Of all BMCs of a fleet.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn new(fleet: &Fleet) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().no_proxy().pool_max_idle_per_host(0);
        let client = builder.tls_danger_accept_invalid_certs(true).build()?;
        let nodes = 0..fleet.shared.setup.nodes;
        let urls = nodes.map(|number| format!("{}{SYSTEM}", fleet.bmc_url(number))).collect();
        Ok(Self { client, urls })
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the BMC does not say what its power state is.
    pub async fn read(&self, number: u32) -> Result<()> {
        let url = self.urls.get(usize::try_from(number)?).context("a node")?;
        let request = self.client.get(url).basic_auth(USER.0, Some(USER.1));
        let system: Value = request.send().await?.error_for_status()?.json().await?;
        ensure!(system["PowerState"].is_string(), "{url}: {system}");
        Ok(())
    }
}
