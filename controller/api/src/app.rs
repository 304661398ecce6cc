//! What every handler is given: the store, the clock, the drivers and the settings.

use crate::bundles::BundleStore;
use crate::driver_queries::{DriverDescription, DriverQueries};
use crate::error::ApiError;
use std::sync::Arc;
use store::{ApiStore, Clock};

/// What the API is made of.
#[derive(Clone)]
pub struct App {
    /// Where everything is kept.
    pub store: Arc<dyn ApiStore>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Answers questions to drivers.
    pub drivers: Arc<dyn DriverQueries>,
    /// Keeps the bundles of hardware managers; none: there are none.
    pub bundles: Option<Arc<BundleStore>>,
    /// The public key of the certificates that the conductor makes; none: it makes none.
    pub certificate_key: Option<String>,
    /// Settings.
    pub settings: Settings,
}

impl App {
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
    /// `https://controller.example:6385`, the beginning of every link, without a slash at its end. Empty:
    /// `http://` and the request's Host header, as Ironic does without `[api]public_endpoint`.
    pub public_endpoint: String,
    /// Name of this controller, shown as `conductor` and as host of the drivers.
    pub conductor_host: String,
    /// Seconds within which an agent must be heard again; told to it in the lookup answer.
    pub heartbeat_timeout_s: f64,
    /// Whether `provide` cleans nodes that do not say so themselves.
    pub automated_clean: bool,
    /// Most items of one page; larger limits are lowered to it.
    pub max_limit: usize,
    /// Whether agents must serve TLS (`[agent]require_tls`).
    pub require_agent_tls: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_endpoint: String::new(),
            conductor_host: "anneal".to_owned(),
            heartbeat_timeout_s: 300.0,
            automated_clean: true,
            max_limit: 1000,
            require_agent_tls: true,
        }
    }
}
