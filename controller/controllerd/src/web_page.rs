//! The web page: where it is served, and with which sessions.

use crate::config::Config;
use api::auth::Sessions;
use axum::Router;
use store_sqlite::DatabaseKey;

/// Where the page is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// On an address on loopback.
    Loopback,
    /// On another one.
    Network,
}

/// Whether the page is served there.
pub fn is_served(config: &Config, reach: Reach) -> bool {
    match reach {
        Reach::Loopback => config.ui.enabled,
        Reach::Network => config.ui.enabled && config.ui.off_loopback,
    }
}

/// The sessions of the page. Controllers that share a database share its key, and so each other's sessions.
pub fn sessions(config: &Config, key: &DatabaseKey) -> Sessions {
    match config.ui.enabled {
        true => Sessions::signed_with(key.to_text().as_bytes()),
        false => Sessions::default(),
    }
}

/// The sessions of a listener there.
pub fn sessions_at(config: &Config, reach: Reach, sessions: &Sessions) -> Sessions {
    match is_served(config, reach) {
        true => sessions.clone(),
        false => Sessions::default(),
    }
}

/// The API, with the page in front of it where it is served.
pub fn in_front_of(config: &Config, reach: Reach, api: Router) -> Router {
    match is_served(config, reach) {
        true => ui::in_front_of(api),
        false => api,
    }
}
