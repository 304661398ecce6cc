//! Ironic's REST API, version 1, microversions 1.1 to 1.115, over the store.
//!
//! ```text
//!  request ─▶ http ─▶ routes ─▶ one file a resource ─▶ model (pure: is it allowed?) ─▶ store (at a version)
//!             │ microversion, request id, trailing slash, every error in Ironic's body
//! ```
//!
//! A handler reads, lets the model decide, and writes at the version that it read; after a conflict with another writer
//! it starts again ([`write::change`]). It never contacts a node: the conductor does, woken by the store's bell. The
//! exception is [`DriverQueries`], for questions that only a driver, or the agent of the node, can answer.
//!
//! Invariants:
//! - A rejected request changes nothing.
//! - No input leads to a 5xx answer; only a failing store or BMC does.
//! - Values of secret keys and the agent's token never leave in an answer, except the token once, in the
//!   answer to the lookup (or to the inspection report) of the agent that it is made for.
//! - Nothing newer than the microversion asked for is shown or accepted.
//! - Handlers run only after authorization, and project users see only their own objects ([`auth`]).

mod app;
mod args;
pub mod auth;
mod body;
mod boot_nonce;
mod bounded_json;
mod bundles;
mod call;
mod certificates;
mod client_address;
mod discovery;
pub mod driver_queries;
mod drivers;
pub mod endpoint;
mod error;
mod events;
mod fields;
mod first_page;
mod fleet;
mod format;
mod health;
mod hidden_paths;
mod http;
mod image_file;
mod links;
mod list_body;
mod lock;
mod lock_waits;
mod metrics;
mod metrics_text;
mod microversion;
mod node_feed;
mod node_resolver;
mod nodes;
mod old_paths;
pub mod openapi;
mod origin_check;
mod page;
mod patch;
mod ramdisk;
mod request_id;
mod request_rate;
mod resources;
mod retry;
mod rights;
mod root;
mod schema;
mod server_sent;
mod session;
mod shown;
mod steps;
mod stream_places;
mod token;
mod traits;
mod vendor;
mod view;
mod webhooks;
mod write;

pub use app::{App, Settings};
pub use auth::Auth;
pub use boot_nonce::NONCE_PATH;
pub use bundles::BundleStore;
pub use discovery::DiscoverySettings;
pub use driver_queries::{
    BootDevice, BootMediumKind, DriverDescription, DriverError, DriverQueries, Indicator, IndicatorId,
    InterfaceChoice, Validity,
};
pub use events::feed::EventFeed;
pub use events::view::view as view_event;
pub use http_server::ClientAddress;
pub use lock_waits::LockWaits;
pub use metrics_text::MetricsText;
pub use node_feed::NodeFeed;
pub use ramdisk::Rates;
pub use ramdisk::boot_proof::ChallengeKey;

pub use request_rate::RequestRate;

pub use http::endpoints;
pub use origin_check::OriginCheck;

/// The API as a service that treats every caller as an administrator: for loopback.
pub fn router(app: App) -> axum::Router {
    guarded_router(app, Auth::NoAuth)
}

/// The API as a service with this authentication.
pub fn guarded_router(app: App, auth: Auth) -> axum::Router {
    http::wrap(app, auth, None)
}

/// The same for an address on loopback, which every page in a browser on this machine reaches.
pub fn loopback_router(app: App, auth: Auth, site: OriginCheck) -> axum::Router {
    http::wrap(app, auth, Some(site))
}
