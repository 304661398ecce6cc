//! The address that a request came from.

use axum::http::Extensions;
use http_server::ClientAddress;
use std::net::IpAddr;

/// The address of the client, where the server has noted it.
pub(crate) fn of(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ClientAddress>().map(|client| client.0)
}
