//! A layer around the API's router that counts and times its answers by row of the API and status.

use crate::counts::Counts;
use crate::labels;
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::Response;
use axum::middleware::{Next, from_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The row of the API that takes heartbeats.
const HEARTBEAT: &str = "/v1/heartbeat/{ident}";

/// The router with the layer.
pub fn measured(router: Router, counts: Arc<Counts>) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| {
        let counts = counts.clone();
        async move {
            let method = labels::http_method(request.method().as_str());
            let began = Instant::now();
            let response = next.run(request).await;
            note(&counts, method, &response, began.elapsed());
            response
        }
    }))
}

fn note(counts: &Counts, method: &'static str, response: &Response<Body>, took: Duration) {
    let route = response.extensions().get::<MatchedPath>();
    let route = route.map_or(labels::OTHER, |path| labels::route(path.as_str()));
    let status = response.status();
    counts.requests.count([method, route, labels::status(status.as_u16())]);
    counts.request_times.took([method, route], took);
    if status.is_server_error() {
        counts.request_failures.count([]);
    }
    if route.starts_with(HEARTBEAT) || route == "/v1/heartbeat" {
        counts.heartbeats.count([if status.is_success() { "accepted" } else { "refused" }]);
    }
}
