//! Listeners for Prometheus alone, besides `GET /metrics` of the API: plain HTTP on loopback, TLS and a token elsewhere.

use crate::agent_runtime;
use crate::identity::Identity;
use crate::listeners::{DRAIN, Listeners};
use crate::services::Services;
use anyhow::{Context, Result, ensure};
use api::{MetricsText, OriginCheck};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use http_server::Server;
use metrics::{CONTENT_TYPE, Metrics};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use subtle::ConstantTimeEq;
use tokio::runtime::Handle;

/// Fewer characters could be guessed.
const SHORTEST: usize = 16;

/// What the API answers to `GET /metrics`.
pub fn text(metrics: &Metrics) -> MetricsText {
    let metrics = metrics.clone();
    MetricsText::of(move || metrics.text())
}

/// Follow the nodes of `store`, and serve the metrics on every address of `[metrics] listen`.
pub async fn serve_all(
    listeners: &Listeners<'_>,
    identity: &Identity,
    store: Arc<dyn Store>,
    services: &mut Services,
) -> Result<()> {
    let Listeners { config, classes, agents, metrics, stop } = listeners;
    let (followed, stopped) = ((*metrics).clone(), (*stop).clone());
    services.start("the count of nodes for metrics", async move {
        followed.follow(store, stopped).await;
        Ok(())
    });
    let settings = &config.metrics;
    let token = settings.asks_for_token().then(|| settings.bearer_token_file.clone());
    if let Some(file) = &token {
        read(file).await.with_context(|| format!("metrics.bearer_token_file {}", file.display()))?;
    }
    let own = Handle::current();
    for address in &settings.listen {
        let plain = address.ip().is_loopback();
        let runtime = if plain { &own } else { *agents };
        let listener = agent_runtime::bind(runtime, *address)
            .await
            .with_context(|| format!("metrics.listen {address}"))?;
        let bound = listener.local_addr()?;
        let (tls, clients, site) = match plain {
            true => {
                let site = OriginCheck::new(&config.api.allowed_hosts, &config.api.public_endpoint);
                (None, classes.operators(), Some(site))
            }
            false => (Some(identity.server()?), classes.agents(), None),
        };
        let router = router(text(metrics), token.clone(), site);
        let (server, stopped) = (Server { listener: listener.into(), tls, router, clients }, (*stop).clone());
        services.start_on(runtime, format!("metrics on {bound}"), async move {
            server.run(stopped, DRAIN).await;
            Ok(())
        });
        tracing::info!("metrics on {}://{bound}/metrics", if plain { "http" } else { "https" });
    }
    Ok(())
}

/// The token of a file: its first line.
async fn read(file: &Path) -> Result<String> {
    let text = tokio::fs::read_to_string(file).await?;
    let token = text.lines().next().unwrap_or_default().trim().to_owned();
    ensure!(token.len() >= SHORTEST, "its first line has less than {SHORTEST} characters");
    Ok(token)
}

/// Serves the text to who brings the token, where one is asked for. No page of another site gets it from a browser here.
fn router(text: MetricsText, token: Option<PathBuf>, site: Option<OriginCheck>) -> Router {
    let guard = Arc::new((token, site));
    let answer = move |request: Request| async move {
        let (token, site) = &*guard;
        let headers = request.headers();
        if site.as_ref().is_some_and(|site| site.check(headers, request.uri()).is_err()) {
            return StatusCode::FORBIDDEN.into_response();
        }
        match token {
            Some(file) if !shows(file, headers).await => refused(),
            _ => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text.text().unwrap_or_default()).into_response(),
        }
    };
    Router::new().route("/metrics", get(answer))
}

/// Whether a request shows the token of the file as it is now.
async fn shows(file: &Path, headers: &HeaderMap) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(given) = given.and_then(|value| value.strip_prefix("Bearer ")) else { return false };
    match read(file).await {
        Ok(token) => bool::from(given.as_bytes().ct_eq(token.as_bytes())),
        Err(error) => {
            tracing::error!("metrics.bearer_token_file {}: {error:#}", file.display());
            false
        }
    }
}

fn refused() -> Response<Body> {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response()
}
