//! The address that a request came from.

use axum::http::Extensions;
use axum::serve::{IncomingStream, Listener};
use axum::{Extension, Router};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use tower::Service;

/// The client of a connection, among the extensions of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// A router that [`axum::serve`] serves, with the address of the client noted in each request.
#[derive(Debug, Clone)]
pub struct ClientAddressService(pub Router);

impl<L: Listener<Addr = SocketAddr>> Service<IncomingStream<'_, L>> for ClientAddressService {
    type Response = Router;
    type Error = Infallible;
    type Future = Ready<Result<Router, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, stream: IncomingStream<'_, L>) -> Self::Future {
        let client = ClientAddress(stream.remote_addr().ip().to_canonical());
        ready(Ok(self.0.clone().layer(Extension(client))))
    }
}

/// The address of the client, where the listener has noted it.
pub(crate) fn of(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ClientAddress>().map(|client| client.0)
}
