//! The address that a request came from.

use axum::http::Extensions;
use http_server::Peer;
use std::net::IpAddr;

/// The client of a request, among its extensions, where another server than ours serves the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The address of the client, where the server has noted it.
pub(crate) fn of(extensions: &Extensions) -> Option<IpAddr> {
    let peer = extensions.get::<Peer>().map(|peer| peer.address.ip().to_canonical());
    peer.or_else(|| extensions.get::<ClientAddress>().map(|client| client.0))
}
