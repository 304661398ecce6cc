//! Ironic's REST API, version 1, microversions 1.1 to 1.115, over the store.
//!
//! ```text
//!  request ─▶ front ─▶ routes ─▶ one file a resource ─▶ model (pure: may it be?) ─▶ store (at a version)
//!             │ microversion, request id, trailing slash, every error in Ironic's body
//! ```
//!
//! A handler reads, lets the model decide, and writes at the version it read; when somebody else wrote
//! meanwhile it does so again ([`write::change`]). It never talks to a node: the conductor does, woken by
//! the store's bell. The one exception is [`DriverQueries`], for questions that only a driver, or the agent of the node,
//! can answer.
//!
//! Invariants:
//! - A refused request changed nothing.
//! - No input leads to a 5xx answer; those are left for a store or a BMC that fails.
//! - Values of secret keys and the agent's token never leave in an answer, except the token once, in the
//!   answer to the lookup (or to the inspection report) of the agent that it is made for.
//! - Nothing newer than the microversion asked for is shown or accepted.
//! - No handler is reached by somebody who may not call it, and none can tell a project of what is not its own ([`auth`]).

mod args;
pub mod auth;
mod body;
mod bundles;
mod call;
mod certificates;
pub mod driver_queries;
mod drivers;
pub mod endpoint;
mod error;
mod fields;
mod front;
mod links;
mod microversion;
mod nodes;
pub mod openapi;
mod page;
mod patch;
mod ports;
mod ramdisk;
mod request_id;
mod resources;
mod root;
mod schema;
mod steps;
mod templates;
mod token;
mod traits;
mod vendor;
mod view;
mod write;

pub use auth::Auth;
pub use bundles::BundleStore;
pub use driver_queries::{
    BootDevice, DriverDescription, DriverError, DriverQueries, Indicator, InterfaceChoice, LampId, Validity,
};

use std::sync::Arc;
use store::{Clock, Store};

/// What the API is made of.
#[derive(Clone)]
pub struct App {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
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

pub use front::endpoints;

/// The API as a service that takes everybody for an administrator: for loopback.
pub fn router(app: App) -> axum::Router {
    guarded_router(app, Auth::Everybody)
}

/// The API as a service for those whom `auth` lets in.
pub fn guarded_router(app: App, auth: Auth) -> axum::Router {
    front::wrap(Arc::new(app), auth)
}
