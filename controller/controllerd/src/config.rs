//! The configuration file. Every setting has a default, documented in `anneal-controller.toml` next to this crate; a test
//! compares the two.

mod agent;
mod api;
mod boot;
mod bundles;
mod discovery;
mod events;
mod metrics;
mod ui;

pub use agent::Agent;
pub use api::{Api, AuthStrategy};
pub use boot::{Boot, DhcpMode};
pub use bundles::Bundles;
pub use discovery::{AfterDiscovery, Discovery};
pub use events::EventSettings;
pub use metrics::MetricsSettings;
pub use ui::UiSettings;

use crate::connections::Connections;
use crate::database_url::{DatabaseSettings, without_urls};
use anyhow::{Context, Result, ensure};
use ipnet::IpNet;
use model::provision::Budget;
use model::{ProvisionState, StepKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use webhooks::Webhook;

/// Most MiB of nodes that are kept in memory; above, a wrong unit is more likely than a machine that has so many.
const MAX_NODE_CACHE_MIB: usize = 1 << 20;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub state_dir: PathBuf,
    pub database_key_file: PathBuf,
    pub database_check_hours: u32,
    pub node_cache_mib: usize,
    pub log: String,
    pub log_format: LogFormat,
    pub host: String,
    pub enabled_hardware_types: Vec<String>,
    pub database: DatabaseSettings,
    pub api: Api,
    pub agent: Agent,
    pub bmc: bmc::Settings,
    pub connections: Connections,
    pub conductor: conductor::Settings,
    pub boot: Boot,
    pub discovery: Discovery,
    pub bundles: Bundles,
    pub images: images::Settings,
    pub metrics: MetricsSettings,
    pub ui: UiSettings,
    pub events: EventSettings,
    pub webhooks: BTreeMap<String, Webhook>,
}

/// `log_format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state_dir: "/var/lib/anneal".into(),
            database_key_file: PathBuf::new(),
            database_check_hours: 24,
            node_cache_mib: 96,
            log: "info".into(),
            log_format: LogFormat::Text,
            host: String::new(),
            enabled_hardware_types: bmc::DRIVERS.iter().map(|name| (*name).to_owned()).collect(),
            database: DatabaseSettings::default(),
            api: Api::default(),
            agent: Agent::default(),
            bmc: bmc::Settings::default(),
            connections: Connections::default(),
            conductor: conductor::Settings::default(),
            boot: Boot::default(),
            discovery: Discovery::default(),
            bundles: Bundles::default(),
            images: images::Settings::default(),
            metrics: MetricsSettings::default(),
            ui: UiSettings::default(),
            events: EventSettings::default(),
            webhooks: BTreeMap::new(),
        }
    }
}

impl Config {
    /// What the API needs of this.
    pub fn api_settings(&self) -> ::api::Settings {
        ::api::Settings {
            public_endpoint: self.api.public_endpoint.clone(),
            heartbeat_timeout_s: f64::from(self.agent.heartbeat_timeout_s),
            available_below_1_11: self.api.available_below_1_11,
            automated_clean: self.conductor.automated_clean_enable,
            max_limit: self.api.max_limit,
            list_time_limit: std::time::Duration::from_secs(self.api.list_time_limit_s.into()),
            require_agent_tls: self.agent.require_tls,
            agent_requests: self.agent.requests(),
            lookup_without_nonce: self.agent.lookup_without_nonce,
            boot_proofs: self.boot.enabled,
            add_on_firmware: self.boot.firmware_dir().is_some(),
            require_tpm: self.boot.require_tpm,
            callback_networks: self.agent.callback_networks.clone(),
            own_addresses: self.own_addresses(),
            trusted_proxies: self.agent.trusted_proxies.clone(),
            rescue_archive: self.rescue_archive(),
            hello_url: self.hello_url(),
            root_disk: self.conductor.root_disk_rules(),
            discovery: self.discovery(),
        }
    }

    /// How unknown machines are discovered; `None`: they are not.
    pub fn discovery(&self) -> Option<::api::DiscoverySettings> {
        self.discovery.settings(self.conductor.inspection_add_ports)
    }

    /// Base URL under which instances say hello, without a slash at its end; empty: they cannot.
    pub fn hello_url(&self) -> String {
        let Some(address) = self.boot.http_addresses().next() else { return String::new() };
        match self.boot.hello_url.trim_end_matches('/') {
            "" => format!("http://{address}"),
            named => named.to_owned(),
        }
    }

    /// The archive with the login of rescued nodes, where nodes boot from here and their ramdisk names no login of its own.
    fn rescue_archive(&self) -> Option<PathBuf> {
        let own_login = self.boot.kernel_append.contains("anneal.login-program=");
        (self.boot.enabled && !own_login).then(|| self.boot.rescue.clone())
    }

    /// Read a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).context("cannot be read")?;
        // The error quotes the line, which may be that of database.url.
        let quoting = |error: toml::de::Error| anyhow::Error::msg(without_urls(&error.to_string()));
        toml::from_str(&text).map_err(quoting).context("is not valid")
    }

    /// Check what the types of the settings do not.
    pub fn check(&self) -> Result<()> {
        ensure!(self.database_check_hours > 0, "database_check_hours must be above 0");
        self.database.check()?;
        self.check_hardware_types()?;
        ensure!(
            self.node_cache_mib <= MAX_NODE_CACHE_MIB,
            "node_cache_mib must be at most {MAX_NODE_CACHE_MIB}"
        );
        self.api.check()?;
        self.agent.check()?;
        self.connections.check()?;
        let settings = &self.conductor;
        ensure!(
            settings.agent_silence_s >= 2 * u64::from(self.agent.heartbeat_timeout_s),
            "conductor.agent_silence_s must be at least twice agent.heartbeat_timeout_s"
        );
        self.bmc.check().map_err(anyhow::Error::msg)?;
        ensure!(settings.agent_poll_s > 0, "conductor.agent_poll_s must be above 0");
        let floats = |map: &BTreeMap<String, u64>| -> BTreeMap<String, f64> {
            map.iter().map(|(step, priority)| (step.clone(), *priority as f64)).collect()
        };
        bmc::check_priorities(&BTreeMap::from([
            (StepKind::Clean, settings.clean_step_priority_override.clone()),
            (StepKind::Deploy, floats(&settings.deploy_step_priority_override)),
        ]))
        .context("conductor.clean_step_priority_override, deploy_step_priority_override")?;
        // An agent's response has at most 64 MiB; base64 makes of 48 MiB 64.
        ensure!((1..=48).contains(&settings.logs_max_mib), "conductor.logs_max_mib must be 1 to 48");
        ensure!(settings.logs_keep > 0, "conductor.logs_keep must be above 0");
        ensure!((8..=10_000).contains(&settings.max_passes), "conductor.max_passes must be 8 to 10000");
        ensure!(settings.max_passes_per_bmc > 0, "conductor.max_passes_per_bmc must be above 0");
        for state in settings.state_timeout_s.keys() {
            let known = ProvisionState::parse(state);
            ensure!(
                known.is_some_and(|known| known.budget() != Budget::User),
                "conductor.state_timeout_s: {state:?} is not a state with a time budget"
            );
        }
        self.bundles.check()?;
        self.images.check().map_err(anyhow::Error::msg)?;
        self.metrics.check()?;
        self.ui.check(self.api.auth_strategy == AuthStrategy::HttpBasic)?;
        self.events.check()?;
        self.check_webhooks()?;
        self.discovery.check(self.boot.enabled, &self.enabled_hardware_types)?;
        self.boot.check_hello_url()?;
        self.boot.check_dns()?;
        self.boot.check_ntp()?;
        self.boot.check_tpm()?;
        if self.boot.enabled {
            self.boot.check_addresses()?;
            for address in self.boot.addresses() {
                let name = if address.is_ipv4() { "boot.address" } else { "boot.ipv6_address" };
                ensure!(
                    self.agent_endpoint(address).is_some(),
                    "{name} {address} is none of api.listen: nodes could not reach the API"
                );
            }
            self.boot.check_services()?;
        }
        Ok(())
    }

    /// Names are a part of URLs and headers.
    fn check_webhooks(&self) -> Result<()> {
        for (name, webhook) in &self.webhooks {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            ensure!(
                (1..=64).contains(&name.len()) && name.bytes().all(is_plain),
                "webhooks: the name {name:?} must be 1 to 64 letters, digits, '-', '_' and '.'"
            );
            webhook.check().map_err(|why| anyhow::anyhow!("webhooks.{name}: {why}"))?;
        }
        Ok(())
    }

    /// A controller without a driver, or with one that it does not have, would refuse every node.
    fn check_hardware_types(&self) -> Result<()> {
        ensure!(!self.enabled_hardware_types.is_empty(), "enabled_hardware_types names no driver");
        for name in &self.enabled_hardware_types {
            ensure!(
                bmc::DRIVERS.contains(&name.as_str()),
                "enabled_hardware_types: {name:?} is none of {}",
                bmc::DRIVERS.join(", ")
            );
        }
        Ok(())
    }

    /// The file of the database, where it is not PostgreSQL's.
    pub fn database_file(&self) -> PathBuf {
        self.state_dir.join("anneal.sqlite")
    }

    /// The socket of operators where no users are configured: in the directory that systemd made for sockets, or with
    /// the database.
    pub fn operator_socket(&self) -> PathBuf {
        if !self.api.socket.as_os_str().is_empty() {
            return self.api.socket.clone();
        }
        let runtime = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
        runtime.unwrap_or_else(|| self.state_dir.clone()).join("api.sock")
    }

    /// Where bundles are kept.
    pub fn bundle_directory(&self) -> PathBuf {
        match self.bundles.directory.as_os_str().is_empty() {
            true => self.state_dir.join("bundles"),
            false => self.bundles.directory.clone(),
        }
    }

    /// `[images]`, with the directory of the cache filled in.
    pub fn images(&self) -> images::Settings {
        let mut settings = self.images.clone();
        if settings.cache_directory.as_os_str().is_empty() {
            settings.cache_directory = self.state_dir.join("images");
        }
        settings
    }

    /// Where images are fetched from only if `images.hosts` names it: BMCs and this controller.
    pub fn closed_to_images(&self) -> Vec<IpNet> {
        let own = self.own_addresses().into_iter().filter(|address| !address.is_unspecified());
        let mut closed: Vec<IpNet> = own.map(IpNet::from).chain(self.bmc.networks.iter().copied()).collect();
        closed.sort_unstable();
        closed.dedup();
        closed
    }

    /// The listener at which nodes get images: the one of `[boot]`, or else the first that has an address, at best off
    /// loopback.
    pub fn image_endpoint(&self) -> Option<SocketAddr> {
        let booted = self.boot.http_addresses().next();
        let named = || self.api.listen.iter().filter(|listen| !listen.ip().is_unspecified());
        let off_loopback = || named().find(|listen| !listen.ip().is_loopback()).copied();
        let booting = booted.and_then(|address| self.agent_endpoint(address.ip()));
        booting
            .or_else(off_loopback)
            .or_else(|| named().next().copied())
            .filter(|address| address.port() != 0)
    }

    /// The conductor's settings, with the directory of the logs filled in, and what `[boot]` says of them.
    pub fn conductor(&self) -> conductor::Settings {
        let mut settings = self.conductor.clone();
        if settings.logs_directory.as_os_str().is_empty() {
            settings.logs_directory = self.state_dir.join("logs");
        }
        settings.require_tpm = self.boot.require_tpm;
        settings
    }

    /// The API listener that nodes reach at `address`, if there is one.
    pub fn agent_endpoint(&self, address: IpAddr) -> Option<SocketAddr> {
        // A socket of any address of IPv6 hears IPv4, too.
        let hears = |listen: IpAddr| {
            listen == address || (listen.is_unspecified() && (listen.is_ipv6() || address.is_ipv4()))
        };
        let found = self.api.listen.iter().find(|listen| hears(listen.ip()))?;
        Some(SocketAddr::new(address, found.port()))
    }

    /// The addresses of this host: those of its interfaces, and those that it listens on.
    fn own_addresses(&self) -> Vec<IpAddr> {
        let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
        let addresses = interfaces.filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        });
        let listens = self.api.listen.iter().map(SocketAddr::ip);
        addresses.chain(listens).chain(self.boot.addresses()).collect()
    }

    /// Name of this controller.
    pub fn name(&self) -> String {
        if !self.host.is_empty() {
            return self.host.clone();
        }
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match name.trim() {
            "" => "anneal".to_owned(),
            name => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
