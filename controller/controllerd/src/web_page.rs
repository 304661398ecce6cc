//! The web page: where it is served, and with which sessions.

use crate::config::Config;
use api::App;
use api::auth::Sessions;
use axum::Router;
use std::sync::Arc;
use store::Store;
use store_sqlite::DatabaseKey;

/// Where the page is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerScope {
    /// On an address on loopback.
    Loopback,
    /// On another one.
    Network,
}

/// Whether the page is served there.
pub fn is_served(config: &Config, scope: ListenerScope) -> bool {
    match scope {
        ListenerScope::Loopback => config.ui.enabled,
        ListenerScope::Network => config.ui.enabled && config.ui.off_loopback,
    }
}

/// The sessions of the page. Controllers that share a database share its key, and so each other's sessions.
pub fn sessions(config: &Config, key: &DatabaseKey) -> Sessions {
    match config.ui.enabled {
        true => Sessions::signed_with(key.to_text().as_bytes()),
        false => Sessions::default(),
    }
}

/// The app of addresses off loopback, over this store.
pub fn off_loopback(config: &Config, app: &App, store: Arc<dyn Store>) -> App {
    let sessions = match is_served(config, ListenerScope::Network) {
        true => app.sessions.clone(),
        false => Sessions::default(),
    };
    App { store, sessions, ..app.clone() }
}

/// The API, with the page in front of it where it is served.
pub fn in_front_of(config: &Config, scope: ListenerScope, api: Router) -> Router {
    match is_served(config, scope) {
        true => ui::in_front_of(api),
        false => api,
    }
}
