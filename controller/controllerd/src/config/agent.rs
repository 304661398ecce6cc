//! Section `[agent]`: what is asked of agents, and of requests whose sender is unknown.

use anyhow::{Result, ensure};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// `[agent]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    pub heartbeat_timeout_s: u32,
    pub require_tls: bool,
    pub requests_per_s: u32,
    pub requests_burst: u32,
    pub lookup_without_nonce: bool,
    pub callback_networks: Vec<IpNet>,
    pub trusted_proxies: Vec<IpNet>,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            heartbeat_timeout_s: 60,
            require_tls: true,
            requests_per_s: 10,
            requests_burst: 100,
            lookup_without_nonce: false,
            callback_networks: Vec::new(),
            trusted_proxies: Vec::new(),
        }
    }
}

impl Agent {
    /// How many requests one address may send where senders are unknown.
    pub fn requests(&self) -> api::RequestRate {
        api::RequestRate { per_s: self.requests_per_s, burst: self.requests_burst }
    }

    /// Bounds of the numbers.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            (5..=3600).contains(&self.heartbeat_timeout_s),
            "agent.heartbeat_timeout_s must be 5 to 3600"
        );
        ensure!(self.requests_per_s == 0 || self.requests_burst > 0, "agent.requests_burst must be above 0");
        Ok(())
    }
}
