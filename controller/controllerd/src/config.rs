//! The configuration file. Every setting has a default, documented in `anneal-controller.toml` next to this crate; a test
//! compares the two.

mod boot;
mod discovery;
mod events;
mod metrics;
mod ui;

pub use boot::{Boot, DhcpMode};
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
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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

/// `[api]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Api {
    pub listen: Vec<SocketAddr>,
    pub socket: PathBuf,
    pub public_endpoint: String,
    pub allowed_hosts: Vec<String>,
    pub max_limit: usize,
    pub list_time_limit_s: u32,
    pub available_below_1_11: bool,
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub auth_strategy: AuthStrategy,
    pub http_basic_auth_user_file: PathBuf,
    pub roles_file: Option<PathBuf>,
}

/// `[api] auth_strategy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthStrategy {
    Token,
    Noauth,
    HttpBasic,
}

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

/// `[bundles]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bundles {
    pub directory: PathBuf,
    pub trusted_keys: Vec<String>,
    pub allow_unsigned: bool,
    pub max_mib: u64,
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

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6385)],
            socket: PathBuf::new(),
            public_endpoint: String::new(),
            allowed_hosts: Vec::new(),
            max_limit: 1000,
            list_time_limit_s: 10,
            available_below_1_11: false,
            tls_certificate: None,
            tls_key: None,
            auth_strategy: AuthStrategy::Token,
            http_basic_auth_user_file: "/etc/anneal/htpasswd".into(),
            roles_file: None,
        }
    }
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

impl Default for Bundles {
    fn default() -> Self {
        Self { directory: PathBuf::new(), trusted_keys: Vec::new(), allow_unsigned: false, max_mib: 512 }
    }
}

impl Api {
    /// The users of `http_basic`.
    pub fn users(&self) -> Result<api::auth::Users> {
        let users = api::auth::Users::open(self.http_basic_auth_user_file.clone(), self.roles_file.clone());
        users.context("api.http_basic_auth_user_file, api.roles_file")
    }

    fn check(&self) -> Result<()> {
        ensure!(!self.listen.is_empty(), "api.listen names no address");
        ensure!(
            self.tls_certificate.is_some() == self.tls_key.is_some(),
            "api.tls_certificate and api.tls_key belong together"
        );
        if self.auth_strategy == AuthStrategy::HttpBasic {
            return self.users().map(drop);
        }
        ensure!(
            self.roles_file.is_none(),
            "api.roles_file has no effect without api.auth_strategy = \"http_basic\""
        );
        Ok(())
    }
}

impl Bundles {
    /// Which bundles are accepted.
    pub fn trust(&self) -> Result<bundle::Trust> {
        let keys = self.trusted_keys.iter().map(|key| key.parse());
        let keys = keys.collect::<Result<Vec<bundle::PublicKey>, _>>().context("bundles.trusted_keys")?;
        Ok(bundle::Trust::Keys { keys, unsigned: self.allow_unsigned })
    }
}

impl Config {
    /// What the API needs of this.
    pub fn api_settings(&self) -> api::Settings {
        api::Settings {
            public_endpoint: self.api.public_endpoint.clone(),
            heartbeat_timeout_s: f64::from(self.agent.heartbeat_timeout_s),
            available_below_1_11: self.api.available_below_1_11,
            automated_clean: self.conductor.automated_clean_enable,
            max_limit: self.api.max_limit,
            list_time_limit: std::time::Duration::from_secs(self.api.list_time_limit_s.into()),
            require_agent_tls: self.agent.require_tls,
            agent_requests: self.agent_requests(),
            lookup_without_nonce: self.agent.lookup_without_nonce,
            callback_networks: self.agent.callback_networks.clone(),
            own_addresses: self.own_addresses(),
            trusted_proxies: self.agent.trusted_proxies.clone(),
            rescue_archive: self.rescue_archive(),
            hello_url: self.hello_url(),
            root_disk: self.conductor.root_disk_rules(),
            discovery: self.discovery(),
        }
    }

    /// How many requests one address may send where senders are unknown.
    pub fn agent_requests(&self) -> api::RequestRate {
        api::RequestRate { per_s: self.agent.requests_per_s, burst: self.agent.requests_burst }
    }

    /// How unknown machines are discovered; `None`: they are not.
    pub fn discovery(&self) -> Option<api::DiscoverySettings> {
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
        ensure!(
            (5..=3600).contains(&self.agent.heartbeat_timeout_s),
            "agent.heartbeat_timeout_s must be 5 to 3600"
        );
        ensure!(
            self.agent.requests_per_s == 0 || self.agent.requests_burst > 0,
            "agent.requests_burst must be above 0"
        );
        self.connections.check()?;
        let settings = &self.conductor;
        ensure!(
            settings.agent_silence_s >= 2 * u64::from(self.agent.heartbeat_timeout_s),
            "conductor.agent_silence_s must be at least twice agent.heartbeat_timeout_s"
        );
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
        self.bundles.trust()?;
        self.images.check().map_err(anyhow::Error::msg)?;
        ensure!((1..=4096).contains(&self.bundles.max_mib), "bundles.max_mib must be 1 to 4096");
        self.metrics.check()?;
        self.ui.check(self.api.auth_strategy == AuthStrategy::HttpBasic)?;
        self.events.check()?;
        self.check_webhooks()?;
        self.discovery.check(self.boot.enabled, &self.enabled_hardware_types)?;
        self.boot.check_hello_url()?;
        self.boot.check_dns()?;
        self.boot.check_ntp()?;
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

    /// The conductor's settings, with the directory of the logs filled in.
    pub fn conductor(&self) -> conductor::Settings {
        let mut settings = self.conductor.clone();
        if settings.logs_directory.as_os_str().is_empty() {
            settings.logs_directory = self.state_dir.join("logs");
        }
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
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../anneal-controller.toml");

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        // Settings are commented out with "#key = value"; prose comments begin with "# ".
        let uncommented: String = EXAMPLE
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let documented: Config = toml::from_str(&uncommented).unwrap();
        assert_eq!(documented, Config::default());
        let all = toml::Value::try_from(Config::default()).unwrap();
        for (section, value) in all.as_table().unwrap() {
            let keys: Vec<&String> = value.as_table().map(|table| table.keys().collect()).unwrap_or_default();
            for key in keys.iter().chain([&section]) {
                assert!(EXAMPLE.contains(key.as_str()), "{key} is not documented");
            }
        }
    }

    /// The error of a file with this text.
    fn wrong(text: &str) -> String {
        let parsed: Result<Config, _> = toml::from_str(text);
        match parsed {
            Ok(config) => format!("{:#}", config.check().unwrap_err()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_error_names_the_wrong_setting_of_discovery() {
        let discovery = |lines: &str| wrong(&format!("[discovery]\n{lines}"));
        assert!(discovery("enabled = true").contains("discovery.enabled needs boot.enabled"));
        assert!(discovery("networks = [\"10.9.0.0/33\"]").contains("networks"));
        assert!(
            discovery("networks = [\"0.0.0.0/0\"]")
                .contains("discovery.networks: 0.0.0.0/0 is every address")
        );
        assert!(discovery("wait_s = 59").contains("discovery.wait_s"));
        assert!(discovery("after = \"reboot\"").contains("boot_disk"));
        assert!(discovery("per_minute = 0").contains("discovery.per_minute"));
        assert!(discovery("max_waiting = 5000").contains("discovery.max_waiting"));
        let booting = "[boot]\nenabled = true\naddress = \"127.0.0.1\"\n[discovery]\nenabled = true\n";
        assert!(wrong(booting).contains("discovery.networks"));
        let driver = wrong(&format!("{booting}networks = [\"10.9.0.0/24\"]\ndriver = \"idrac\""));
        assert!(driver.contains("discovery.driver: \"idrac\" is none of"), "{driver}");
    }

    #[test]
    fn an_error_names_the_wrong_setting() {
        assert!(wrong("[api]\nlisen = []").contains("lisen"));
        assert!(wrong("[api]\nlisten = []").contains("api.listen"));
        assert!(wrong("[api]\nauth_strategy = \"keystone\"").contains("http_basic"));
        assert!(wrong("[api]\nroles_file = \"/r\"").contains("auth_strategy"));
        let users = "[api]\nauth_strategy = \"http_basic\"\nhttp_basic_auth_user_file = \"/nonexistent\"";
        assert!(wrong(users).contains("http_basic_auth_user_file") && wrong(users).contains("/nonexistent"));
        assert!(wrong("enabled_hardware_types = []").contains("enabled_hardware_types names no driver"));
        assert!(wrong("enabled_hardware_types = [\"idrac\"]").contains("\"idrac\" is none of redfish, ipmi"));
        assert!(wrong("[database]\nconnections = 0").contains("database.connections"));
        let url = wrong("[database]\nurl = \"mysql://u:hunter2@h/a\"");
        assert!(url.contains("database.url") && !url.contains("hunter2"), "{url}");
        assert!(wrong("node_cache_mib = 67108864").contains("node_cache_mib"));
        assert!(wrong("[agent]\nrequests_burst = 0").contains("agent.requests_burst"));
        assert!(wrong("[connections]\nidle_timeout_s = 0").contains("connections.idle_timeout_s"));
        assert!(wrong("[ui]\noff_loopback = true").contains("ui.off_loopback needs"));
        assert!(wrong("[events]\nkeep_days = 0").contains("events.keep_days"));
        let webhook = |name: &str, url: &str| {
            wrong(&format!("[webhooks.\"{name}\"]\nurl = \"{url}\"\nsecret_file = \"/nonexistent\""))
        };
        assert!(webhook("two words", "https://cmdb.example/").contains("the name \"two words\""));
        assert!(webhook("cmdb", "http://192.0.2.1/").contains("webhooks.cmdb: url"));
        assert!(wrong("[connections]\nboot = 1").contains("connections.boot_per_address"));
        assert!(wrong("[conductor]\nagent_silence_s = 1").contains("agent_silence_s"));
        assert!(wrong("[conductor.clean_step_priority_override]\nerase = 1.0").contains("interface.step"));
        assert!(wrong("[conductor]\nlogs_max_mib = 49").contains("logs_max_mib"));
        assert!(wrong("[conductor]\nlogs_keep = 0").contains("logs_keep"));
        assert!(wrong("[conductor]\nmax_passes = 1").contains("max_passes"));
        assert!(wrong("[conductor]\nmax_passes_per_bmc = 0").contains("max_passes_per_bmc"));
        assert!(wrong("[conductor]\nboot_timout_s = 1").contains("boot_timout_s"));
        assert!(wrong("[conductor.state_timeout_s]\navailable = 1").contains("\"available\""));
        let tie = wrong(
            "[conductor.clean_step_priority_override]\n\"bios.factory_reset\" = 7.0\n\"bios.apply_configuration\" = 7.0",
        );
        assert!(tie.contains("factory_reset") && tie.contains("apply_configuration"), "{tie}");
        assert!(wrong("[boot]\nenabled = true").contains("boot.address"));
        let only_ipv6 = wrong("[boot]\nenabled = true\nipv6_address = \"2001:db8::1\"\ndhcp = \"proxy\"");
        assert!(only_ipv6.contains("boot.dhcp serves IPv4 alone"), "{only_ipv6}");
        let only_ipv4 = wrong("[boot]\nenabled = true\naddress = \"127.0.0.1\"\ndhcpv6 = true");
        assert!(only_ipv4.contains("boot.dhcpv6 needs boot.ipv6_address"), "{only_ipv4}");
        let both = "[boot]\nenabled = true\naddress = \"127.0.0.1\"\nipv6_address = \"::1\"\ndhcpv6 = true\n";
        assert!(wrong(&format!("{both}dhcp = \"server\"")).contains("exclude each other"));
        for url in [
            "10.0.0.1:8089",
            "ftp://10.0.0.1",
            "http://",
            "http:///x",
            "http://u:p@h",
            "http://h?q",
            "http://h/\\\"x",
        ] {
            let why = wrong(&format!("[boot]\nhello_url = \"{url}\""));
            assert!(why.contains("boot.hello_url") && why.contains("is no URL"), "{url}: {why}");
        }
        assert!(wrong("[boot]\nhello_url = \"https://anneal.example\"").contains("needs boot.enabled"));
        assert!(wrong("[bundles]\nmax_mib = 0").contains("bundles.max_mib"));
        assert!(wrong("[images]\nhosts = [\"*.example\"]").contains("images.hosts"));
        assert!(wrong("[images]\ndirectory = \"a\"").contains("images.directory"));
        assert!(wrong("[images]\ncache_max_mib = 0").contains("images.cache_max_mib"));
        assert!(
            wrong("[images.pins]\n\"m\" = [\"sha1:00\"]").contains("images.pins: m: it is no fingerprint")
        );
        assert!(wrong("[boot]\ndns = [\"127.0.0.53\"]").contains("boot.dns 127.0.0.53 is not an address"));
        let four = "\"192.0.2.1\", \"192.0.2.2\", \"192.0.2.3\", \"192.0.2.4\"";
        assert!(wrong(&format!("[boot]\ndns = [{four}]")).contains("boot.dns has more than 3"));
        assert!(wrong("[boot]\nntp = [\"a,b\"]").contains("boot.ntp \"a,b\" is neither"));
        assert!(wrong(&format!("[boot]\nntp = [{four}]")).contains("boot.ntp has more than 3"));
        let key = wrong("[bundles]\ntrusted_keys = [\"ed25519:xyz\"]");
        assert!(key.contains("bundles.trusted_keys") && key.contains("ed25519:xyz"), "{key}");
        assert!(wrong("[boot]\nenabled = true\naddress = \"192.0.2.1\"").contains("none of api.listen"));
    }

    #[test]
    fn nodes_reach_the_api_at_the_addresses_of_both_families() {
        let config = |listen: &str, boot: &str| -> Config {
            toml::from_str(&format!("[api]\nlisten = [{listen}]\n[boot]\nenabled = true\n{boot}")).unwrap()
        };
        let boot = "address = \"192.0.2.1\"\nipv6_address = \"2001:db8::1\"";
        let reached = |listen: &str| {
            let config = config(listen, boot);
            let found = config.boot.addresses().map(|address| config.agent_endpoint(address));
            found.map(|at| at.map(|at| at.to_string()).unwrap_or_default()).collect::<Vec<_>>()
        };
        let both = ["192.0.2.1:6385", "[2001:db8::1]:6385"];
        assert_eq!(reached("\"192.0.2.1:6385\", \"[2001:db8::1]:6385\""), both);
        assert_eq!(reached("\"[::]:6385\""), both);
        assert_eq!(reached("\"0.0.0.0:6385\""), [both[0], ""]);
        let ipv6 = config("\"[::]:6385\"", "ipv6_address = \"2001:db8::1\"");
        assert_eq!(ipv6.hello_url(), "http://[2001:db8::1]:8089");
        assert_eq!(ipv6.image_endpoint().map(|at| at.to_string()).as_deref(), Some(both[1]));
        assert_eq!(config("\"[::]:6385\"", boot).hello_url(), "http://192.0.2.1:8089");
    }
}
