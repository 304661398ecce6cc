//! Serves the API: a bounded number of connections, each with time limits, drained at the end.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_server::{Clients, Limits, Places, Server, Timeouts};
use rustls::ServerConfig;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Connections at once. The controller opens a few; one address cannot take the places of the others.
const CONNECTIONS: Limits = Limits { total: 64, per_address: 8 };
/// Limits in time of each connection.
const TIMEOUTS: Timeouts =
    Timeouts { head: Duration::from_secs(15), body: Duration::from_secs(30), idle: Duration::from_secs(60) };
/// For answers on their way when the agent ends.
const DRAIN_TIME: Duration = Duration::from_secs(3);

/// Serve until `stop`, then let answers go out for at most [`DRAIN_TIME`].
pub async fn run(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    stop: CancellationToken,
) {
    let router = router.layer(axum::middleware::map_response(sign));
    let clients =
        Clients { timeouts: TIMEOUTS, places: Places::new("controllers", CONNECTIONS), operators: None };
    if !(Server { listener: listener.into(), tls, router, clients }).run(stop, DRAIN_TIME).await {
        tracing::warn!("some answers did not go out in time");
    }
}

async fn sign(mut response: Response) -> Response {
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("anneal-agent"));
    response
}
