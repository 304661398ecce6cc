//! What stands before the routes: microversion, request id, trailing slashes, and Ironic's body for every
//! error, also for those that the web framework makes.

use crate::app::App;
use crate::auth::Auth;
use crate::auth::guard::{self, RequestOrigin};
use crate::boot_nonce;
use crate::client_address;
use crate::endpoint::{Endpoint, OPEN};
use crate::error::{ApiError, Shaped};
use crate::hidden_paths::HiddenPaths;
use crate::microversion::{self, HEADER, MAX, MAX_HEADER, MIN, MIN_HEADER, Version};
use crate::node_resolver::Suffixed;
use crate::old_paths;
use crate::origin_check::OriginCheck;
use crate::ramdisk::{self, Rates};
use crate::request_id::{RequestId, record_path};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::http::uri::PathAndQuery;
use axum::http::{Extensions, HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::{Extension, Router};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use std::sync::Arc;
use tower::ServiceExt;
use tracing::Instrument;
use uuid::Uuid;

/// Largest body of a request, in bytes. The largest honest ones are heartbeats with the progress of many
/// disks and nodes with a long `network_data`: some tens of kilobytes.
const BODY_LIMIT: usize = 2 << 20;
/// Largest body of a request whose sender is unknown, in bytes. A heartbeat with the progress of 1,024 disks has as much.
const OPEN_BODY_LIMIT: usize = 256 << 10;

/// The whole API behind its front.
pub fn wrap(mut app: App, auth: Auth, site: Option<OriginCheck>) -> Router {
    // Only loopback is served without TLS.
    app.sessions.by_tls = site.is_none();
    let app = Arc::new(app);
    let proxies = app.settings.trusted_proxies.as_slice().into();
    let routes = routes(&auth, &app).layer(DefaultBodyLimit::max(BODY_LIMIT)).with_state(app);
    let hidden = Arc::new(HiddenPaths::of(&endpoints()));
    let front = Front { auth, site: site.map(Arc::new), proxies, hidden, routes };
    Router::new().fallback(move |request: Request| identified(front.clone(), request))
}

/// What stands before the handlers.
#[derive(Clone)]
struct Front {
    auth: Auth,
    /// `None`: requests may come from other sites.
    site: Option<Arc<OriginCheck>>,
    /// Proxies that say whom they speak for.
    proxies: Arc<[IpNet]>,
    /// Paths that are not there before their version.
    hidden: Arc<HiddenPaths>,
    routes: Router,
}

/// Gives the request its id, and what is logged on its behalf the span with it.
async fn identified(front: Front, mut request: Request) -> Response<Body> {
    let id = RequestId::generate();
    let span = id.span(request.method().as_str(), request.headers());
    request.extensions_mut().insert(id.clone());
    async move {
        let mut response = handle(front, request).await;
        id.put(response.headers_mut());
        tracing::debug!(status = response.status().as_u16(), "request answered");
        response
    }
    .instrument(span)
    .await
}

/// Every row of the API, in the order of its documents.
pub fn endpoints() -> Vec<Endpoint> {
    use crate::{
        bundles, certificates, discovery, drivers, events, fleet, health, image_file, metrics, nodes,
        openapi, resources, rights, root, session, webhooks,
    };
    [
        root::endpoints(),
        nodes::endpoints(),
        drivers::endpoints(),
        resources::endpoints(),
        ramdisk::endpoints(),
        bundles::endpoints(),
        image_file::endpoints(),
        certificates::endpoints(),
        events::endpoints(),
        webhooks::endpoints(),
        discovery::endpoints(),
        session::endpoints(),
        rights::endpoints(),
        fleet::endpoints(),
        openapi::endpoints(),
        health::endpoints(),
        metrics::endpoints(),
    ]
    .concat()
}

fn routes(auth: &Auth, app: &Arc<App>) -> Router<Arc<App>> {
    let rates: Arc<Rates> = Rates::new(app.settings.agent_requests);
    let nodes: Arc<Rates<Uuid>> = Rates::new(app.settings.agent_requests);
    endpoints()
        .into_iter()
        .map(|endpoint| match endpoint.policy {
            OPEN => endpoint.map(|handler| handler.layer(DefaultBodyLimit::max(OPEN_BODY_LIMIT))),
            _ => endpoint,
        })
        .map(|endpoint| guard::guarded(endpoint, auth, app))
        .map(|endpoint| match ramdisk::PATHS.contains(&endpoint.path) {
            true => rates.limited(endpoint).map(|handler| handler.layer(Extension(nodes.clone()))),
            false => endpoint,
        })
        .fold(Router::new(), |router, endpoint| router.route(endpoint.path, endpoint.into_handler()))
        .layer(Extension(auth.clone()))
        .route_layer(from_fn(|path: MatchedPath, request: Request, next: Next| async move {
            record_path(path.as_str());
            let mut response = next.run(request).await;
            response.extensions_mut().insert(path);
            response
        }))
}

async fn handle(front: Front, mut request: Request) -> Response<Body> {
    let Front { auth, site, proxies, hidden, routes } = front;
    boot_nonce::take(&mut request);
    client_address::behind_proxies(&mut request, &proxies);
    let (credentials, origin) = (credentials(request.headers()), RequestOrigin::of(request.extensions()));
    let negotiated = microversion::negotiate(request.headers());
    let foreign = site.and_then(|site| site.check(request.headers(), request.uri()).err());
    let mut response = match negotiated {
        _ if foreign.is_some() => foreign.map(IntoResponse::into_response).unwrap_or_default(),
        Ok(version) => {
            request.extensions_mut().insert(version);
            match plain_path(request.uri()) {
                Some(mut uri) => {
                    if request.headers().contains_key(HEADER)
                        && !version.has(91)
                        && let Some((shorter, suffixed)) = without_json(&uri)
                    {
                        request.extensions_mut().insert(suffixed);
                        uri = shorter;
                    }
                    let uri = old_paths::modern(&uri).unwrap_or(uri);
                    let is_hidden = hidden.hide(uri.path(), version);
                    *request.uri_mut() = uri;
                    // The router never fails: its error type is uninhabited.
                    let mut response = routes.oneshot(request).await.into_response();
                    if is_hidden && is_unrouted_method(&response) {
                        *response.status_mut() = StatusCode::NOT_FOUND;
                        response.headers_mut().remove(header::ALLOW);
                    }
                    guard::unrouted(&auth, &credentials, origin, response).await
                }
                None => ApiError::plain(400, "The path or the query is not valid UTF-8 once it is decoded.")
                    .into_response(),
            }
        }
        Err(ref error) => error.clone().into_response(),
    };
    if (response.status().is_client_error() || response.status().is_server_error())
        && response.extensions().get::<Shaped>().is_none()
    {
        let path = response.extensions_mut().remove::<MatchedPath>();
        response = shaped(response).await;
        response.extensions_mut().extend(path.map(extension).unwrap_or_default());
    }
    decorate(response.headers_mut(), negotiated.ok());
    response
}

/// The extensions of an answer that know the row of the API that the request was for: what measures answers reads them.
fn extension(path: MatchedPath) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(path);
    extensions
}

/// Whether the router has the path, but not the method.
fn is_unrouted_method(response: &Response<Body>) -> bool {
    response.status() == StatusCode::METHOD_NOT_ALLOWED && response.extensions().get::<Shaped>().is_none()
}

/// The header that says who the caller is, for an answer to a path that no row has.
fn credentials(headers: &HeaderMap) -> HeaderMap {
    let given = headers.get(header::AUTHORIZATION).map(|value| (header::AUTHORIZATION, value.clone()));
    given.into_iter().collect()
}

/// The path without slashes at its end, without doubled ones, and with `/v1` before a resource that comes
/// without it, since Ironic takes `/nodes` for `/v1/nodes`. `None` when path or query are not UTF-8 once decoded.
fn plain_path(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    if !decodes(path) || !uri.query().is_none_or(decodes) {
        return None;
    }
    if path.starts_with("/v1/") && !path.ends_with('/') && !path.contains("//") {
        return Some(uri.clone());
    }
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut plain = match segments.first() {
        None => return Some(uri.clone()),
        Some(&"v1") => String::new(),
        Some(_) => "/v1".to_owned(),
    };
    for segment in &segments {
        plain.push('/');
        plain.push_str(segment);
    }
    if let Some(query) = uri.query() {
        plain.push('?');
        plain.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(plain).ok()?);
    Uri::from_parts(parts).ok()
}

/// A path without `.json` at its end, if it has it.
fn without_json(uri: &Uri) -> Option<(Uri, Suffixed)> {
    let stem = uri.path().strip_suffix(".json")?;
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{stem}{query}")).ok()?);
    let last = stem.rsplit('/').next().unwrap_or_default().to_owned();
    Some((Uri::from_parts(parts).ok()?, Suffixed(last)))
}

/// Whether a percent-encoded text is UTF-8 once decoded.
fn decodes(text: &str) -> bool {
    percent_decode_str(text).decode_utf8().is_ok()
}

/// An error of the framework in Ironic's body.
async fn shaped(response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let description = match status.as_u16() {
        404 | 405 => String::new(),
        _ => match axum::body::to_bytes(response.into_body(), 4096).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => error.to_string(),
        },
    };
    ApiError::plain(status.as_u16(), description).into_response()
}

fn decorate(headers: &mut HeaderMap, version: Option<Version>) {
    // Answers contain tokens, configuration and what a user may see now.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut put = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    put(MIN_HEADER, Version(MIN).to_string());
    put(MAX_HEADER, Version(MAX).to_string());
    if let Some(version) = version {
        put(HEADER, version.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        let plain = |text: &str| plain_path(&text.parse().unwrap()).unwrap().to_string();
        assert_eq!(plain("/"), "/");
        assert_eq!(plain("/v1/"), "/v1");
        assert_eq!(plain("/v1/nodes/?retired=True"), "/v1/nodes?retired=True");
        assert_eq!(plain("/nodes/x%2Fy"), "/v1/nodes/x%2Fy");
        assert_eq!(plain("//v1//nodes"), "/v1/nodes");
        assert!(plain_path(&"/v1/nodes/%ff".parse().unwrap()).is_none());
    }
}
