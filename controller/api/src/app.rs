//! What every handler is given: the store, the clock, the drivers and the settings.

use crate::auth::Sessions;
use crate::bundles::BundleStore;
use crate::discovery::DiscoverySettings;
use crate::driver_queries::{DriverDescription, DriverQueries};
use crate::error::ApiError;
use crate::events::feed::EventFeed;
use crate::lock_waits::LockWaits;
use crate::metrics_text::MetricsText;
use crate::node_feed::NodeFeed;
use crate::ramdisk::boot_proof::ChallengeKey;
use crate::request_rate::RequestRate;
use images::ImageStore;
use ipnet::IpNet;
use model::root_disk::Rules;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{ApiStore, Clock, Members, NodeQuery, Remarks, SystemClock};

/// The parts that handlers use.
#[derive(Clone)]
pub struct App {
    /// Nodes, ports and every other resource.
    pub store: Arc<dyn ApiStore>,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// Questions that only a driver can answer.
    pub drivers: Arc<dyn DriverQueries>,
    /// Files of hardware managers' bundles; `None`: this controller serves none.
    pub bundles: Option<Arc<BundleStore>>,
    /// Images that the controller has itself, and which hosts images may come from.
    pub images: ImageStore,
    /// Public key of the certificates that the conductor issues; `None`: it issues none.
    pub certificate_key: Option<String>,
    /// The requests that wait for a locked node.
    pub lock_waits: LockWaits,
    /// What strangers asked for, in the histories of nodes.
    pub remarks: Remarks,
    /// This controller, and those that share its store.
    pub members: Members,
    /// The streams of events.
    pub events: EventFeed,
    /// The streams of nodes.
    pub nodes: NodeFeed,
    /// The sessions of the web page.
    pub sessions: Sessions,
    /// What `GET /metrics` answers.
    pub metrics: MetricsText,
    /// Makes the challenges of agents that prove their boots.
    pub challenge_key: ChallengeKey,
    /// Settings.
    pub settings: Settings,
}

impl App {
    /// The only controller, of this name, over a store and drivers: by the machine's clock, with default settings, without bundles,
    /// images, certificates, metrics and sessions.
    pub fn alone(name: &str, store: Arc<dyn ApiStore>, drivers: Arc<dyn DriverQueries>) -> Self {
        Self {
            store,
            drivers,
            clock: Arc::new(SystemClock::default()),
            bundles: None,
            images: ImageStore::default(),
            certificate_key: None,
            lock_waits: LockWaits::default(),
            remarks: Remarks::default(),
            members: Members::alone(name),
            events: EventFeed::default(),
            nodes: NodeFeed::default(),
            sessions: Sessions::default(),
            metrics: MetricsText::default(),
            challenge_key: ChallengeKey::default(),
            settings: Settings::default(),
        }
    }

    /// The enabled driver of this name.
    ///
    /// # Errors
    /// 404: no enabled driver has this name.
    pub(crate) fn driver(&self, name: &str) -> Result<&DriverDescription, ApiError> {
        let found = self.drivers.drivers().iter().find(|driver| driver.name == name);
        found.ok_or_else(|| ApiError::no_driver(name))
    }

    /// The store of bundles.
    ///
    /// # Errors
    /// 404: this controller has none.
    pub(crate) fn bundle_store(&self) -> Result<&BundleStore, ApiError> {
        self.bundles.as_deref().ok_or_else(|| ApiError::client(404, "This controller keeps no bundles."))
    }
}

/// Settings of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `https://controller.example:6385`, the start of every link, without a trailing slash. Empty:
    /// `http://` and the request's Host header, as Ironic does without `[api]public_endpoint`.
    pub public_endpoint: String,
    /// Seconds within which an agent must send its next heartbeat; part of the answer to its lookup.
    pub heartbeat_timeout_s: f64,
    /// Whether nodes of every driver that are created below 1.11 begin in AVAILABLE; without it those of fake-hardware do.
    pub available_below_1_11: bool,
    /// Whether `provide` cleans nodes whose `automated_clean` is null.
    pub automated_clean: bool,
    /// Most items of one page; larger limits are lowered to it.
    pub max_limit: usize,
    /// How long a list may be looked for that no index serves.
    pub list_time_limit: Duration,
    /// Whether agents must serve TLS (`[agent]require_tls`).
    pub require_agent_tls: bool,
    /// How many requests one address may send to the endpoints of agents.
    pub agent_requests: RequestRate,
    /// Whether an agent is accepted that shows no nonce, where the boot script was not fetched from this controller.
    pub lookup_without_nonce: bool,
    /// Whether this controller serves boot media, of which a TPM can prove that some were booted.
    pub boot_proofs: bool,
    /// Whether boots carry add-on firmware, except by such media.
    pub add_on_firmware: bool,
    /// Whether a node gets its token only after its TPM has proved its boot, unless its `driver_info` decides.
    pub require_tpm: bool,
    /// Networks in which agents may be called although their heartbeats come from elsewhere.
    pub callback_networks: Vec<IpNet>,
    /// Addresses of this controller, which are no agent's.
    pub own_addresses: Vec<IpAddr>,
    /// Proxies whose `Forwarded` header counts.
    pub trusted_proxies: Vec<IpNet>,
    /// The archive that gives a rescued node its login; `None` where this controller boots no nodes.
    pub rescue_archive: Option<PathBuf>,
    /// Base URL under which instances say hello; empty: they cannot.
    pub hello_url: String,
    /// By which rules agents choose the disk of an image; `validate` names it.
    pub root_disk: Rules,
    /// How unknown machines are discovered; `None`: they are not.
    pub discovery: Option<DiscoverySettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_endpoint: String::new(),
            heartbeat_timeout_s: 300.0,
            available_below_1_11: false,
            automated_clean: true,
            max_limit: 1000,
            list_time_limit: NodeQuery::TIME_LIMIT,
            require_agent_tls: true,
            agent_requests: RequestRate { per_s: 10, burst: 100 },
            lookup_without_nonce: false,
            boot_proofs: false,
            add_on_firmware: false,
            require_tpm: false,
            callback_networks: Vec::new(),
            own_addresses: Vec::new(),
            trusted_proxies: Vec::new(),
            rescue_archive: None,
            hello_url: String::new(),
            root_disk: Rules::default(),
            discovery: None,
        }
    }
}
