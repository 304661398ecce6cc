//! Listeners of the API: plain on loopback, TLS and only what agents need elsewhere.

use crate::config::Config;
use crate::identity::Identity;
use crate::listener::TlsListener;
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use anyhow::{Context, Result};
use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Serve `router` on every configured address.
pub async fn serve_all(
    config: &Config,
    identity: &Identity,
    router: Router,
    stop: &CancellationToken,
    tasks: &mut JoinSet<Result<()>>,
) -> Result<()> {
    for address in &config.api.listen {
        let listener = TcpListener::bind(address).await.with_context(|| format!("api.listen {address}"))?;
        let bound = listener.local_addr()?;
        let stopped = stop.clone().cancelled_owned();
        if address.ip().is_loopback() {
            let service = router.clone();
            tasks.spawn(
                async move { Ok(axum::serve(listener, service).with_graceful_shutdown(stopped).await?) },
            );
            tracing::info!("API on http://{bound}");
        } else {
            let service = router.clone().layer(from_fn(agents_only));
            let listener = TlsListener::new(listener, identity.server()?);
            tasks.spawn(
                async move { Ok(axum::serve(listener, service).with_graceful_shutdown(stopped).await?) },
            );
            tracing::info!("lookup, heartbeat, inspection and bundles of agents on https://{bound}");
        }
    }
    Ok(())
}

/// Off loopback nobody is authenticated yet, so nothing but the agents' part is there.
async fn agents_only(request: Request, next: Next) -> Response {
    if is_for_agents(request.uri().path()) || is_bundle_for_agent(&request) {
        return next.run(request).await;
    }
    let fault = json!({
        "faultcode": "Client",
        "faultstring": "Only lookup, heartbeat, inspection and bundles of agents are served on this address; use the controller's loopback address.",
        "debuginfo": null,
    });
    let body = json!({ "error_message": fault.to_string() }).to_string();
    (StatusCode::FORBIDDEN, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn is_for_agents(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    matches!(path, "" | "/v1" | "/v1/lookup" | "/v1/continue_inspection")
        || path.starts_with("/v1/heartbeat/")
}

/// A file is for an agent that says who it is; whether that is so, the API sees. Without the headers it would be for an
/// operator.
fn is_bundle_for_agent(request: &Request) -> bool {
    let path = request.uri().path();
    let digest = path.strip_prefix("/v1/anneal/bundles/").and_then(|rest| rest.strip_suffix("/file"));
    request.method() == Method::GET
        && digest.is_some_and(bundle::is_digest)
        && [NODE_HEADER, TOKEN_HEADER].iter().all(|name| request.headers().contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::{is_bundle_for_agent, is_for_agents};
    use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
    use axum::body::Body;
    use axum::extract::Request;

    #[test]
    fn bundles_leave_loopback_for_agents_only() {
        let file = format!("/v1/anneal/bundles/{}/file", "ab".repeat(32));
        let open = |method: &str, path: &str, headers: &[&str]| {
            let mut request = Request::builder().method(method).uri(path);
            for name in headers {
                request = request.header(*name, "x");
            }
            is_bundle_for_agent(&request.body(Body::empty()).unwrap())
        };
        let both = [NODE_HEADER, TOKEN_HEADER];
        assert!(open("GET", &file, &both));
        assert!(
            !open("GET", &file, &[]) && !open("GET", &file, &both[..1]) && !open("GET", &file, &both[1..])
        );
        assert!(!open("POST", &file, &both) && !open("DELETE", &file, &both));
        for path in ["/v1/anneal/bundles", "/v1/anneal/bundles/x/file", "/v1/nodes", &file[..file.len() - 5]]
        {
            assert!(!open("GET", path, &both), "{path}");
        }
    }

    #[test]
    fn only_lookup_and_heartbeat_leave_loopback() {
        for open in [
            "/",
            "/v1",
            "/v1/",
            "/v1/lookup",
            "/v1/lookup/",
            "/v1/heartbeat/some-uuid",
            "/v1/continue_inspection",
            "/v1/continue_inspection/",
        ] {
            assert!(is_for_agents(open), "{open}");
        }
        for shut in [
            "/v1/nodes",
            "/v1/nodes/",
            "/v1/continue_inspection/x",
            "/v1/nodes/n/inventory",
            "/v1/heartbeatx",
            "/v1/lookup/../nodes",
            "/v1/ports",
            "/v1/drivers",
        ] {
            assert!(!is_for_agents(shut), "{shut}");
        }
    }
}
