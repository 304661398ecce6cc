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

mod app;
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
mod format;
mod front;
mod links;
mod microversion;
mod node_resolver;
mod nodes;
pub mod openapi;
mod page;
mod patch;
mod ports;
mod ramdisk;
mod request_id;
mod resources;
mod retry;
mod root;
mod schema;
mod steps;
mod token;
mod traits;
mod vendor;
mod view;
mod write;

pub use app::{App, Settings};
pub use auth::Auth;
pub use bundles::BundleStore;
pub use driver_queries::{
    BootDevice, DriverDescription, DriverError, DriverQueries, Indicator, IndicatorId, InterfaceChoice,
    Validity,
};

use std::sync::Arc;

pub use front::endpoints;

/// The API as a service that takes everybody for an administrator: for loopback.
pub fn router(app: App) -> axum::Router {
    guarded_router(app, Auth::NoAuth)
}

/// The API as a service for those whom `auth` lets in.
pub fn guarded_router(app: App, auth: Auth) -> axum::Router {
    front::wrap(Arc::new(app), auth)
}
