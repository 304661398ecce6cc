//! The section `[discovery]`.

use anyhow::{Result, ensure};
use ipnet::IpNet;
use model::discovery::{DiscoveryLimits, MOST};
use model::interface::AddPorts;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[discovery]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Discovery {
    pub enabled: bool,
    pub networks: Vec<IpNet>,
    pub wait_s: u32,
    pub after: AfterDiscovery,
    pub per_minute: usize,
    pub max_waiting: usize,
    pub driver: String,
}

/// `[discovery] after`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterDiscovery {
    PowerOff,
    BootDisk,
}

impl AfterDiscovery {
    /// As the agent reads it.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::PowerOff => "power-off",
            Self::BootDisk => "boot-disk",
        }
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            enabled: false,
            networks: Vec::new(),
            wait_s: 3600,
            after: AfterDiscovery::PowerOff,
            per_minute: 10,
            max_waiting: 64,
            driver: "redfish".into(),
        }
    }
}

impl Discovery {
    /// Check what the types do not. `drivers`: those that are enabled.
    pub(super) fn check(&self, boots_nodes: bool, drivers: &[String]) -> Result<()> {
        ensure!((60..=86_400).contains(&self.wait_s), "discovery.wait_s must be 60 to 86400");
        ensure!((1..=1000).contains(&self.per_minute), "discovery.per_minute must be 1 to 1000");
        ensure!((1..=MOST).contains(&self.max_waiting), "discovery.max_waiting must be 1 to {MOST}");
        for network in &self.networks {
            ensure!(network.prefix_len() > 0, "discovery.networks: {network} is every address");
        }
        if !self.enabled {
            return Ok(());
        }
        ensure!(boots_nodes, "discovery.enabled needs boot.enabled");
        ensure!(!self.networks.is_empty(), "discovery.enabled needs discovery.networks");
        ensure!(
            drivers.contains(&self.driver),
            "discovery.driver: {:?} is none of enabled_hardware_types: {}",
            self.driver,
            drivers.join(", ")
        );
        Ok(())
    }

    /// What API and boot services need of this; `None`: nothing is discovered.
    pub(super) fn settings(&self, add_ports: AddPorts) -> Option<api::DiscoverySettings> {
        let limits = DiscoveryLimits {
            wait: Duration::from_secs(self.wait_s.into()),
            per_minute: self.per_minute,
            waiting: self.max_waiting,
        };
        let (networks, driver) = (self.networks.clone(), self.driver.clone());
        self.enabled.then_some(api::DiscoverySettings { networks, limits, driver, add_ports })
    }
}
