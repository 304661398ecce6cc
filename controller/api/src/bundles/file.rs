//! `GET /v1/anneal/bundles/{digest}/file`: the file itself.
//!
//! An agent sends its node and its token in headers, because URLs are logged. It receives the bundles of its node and no
//! others. A caller that sends neither header is an operator, whom the guard has authorized.

use crate::app::App;
use crate::error::{ApiError, Reply};
use crate::token;
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use std::sync::Arc;
use store::StoreError;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

/// Bytes read from the disk at once.
const CHUNK: usize = 256 << 10;

/// `GET /v1/anneal/bundles/{digest}/file`.
pub async fn file(State(app): State<Arc<App>>, Path(digest): Path<String>, headers: HeaderMap) -> Reply {
    let bundle_store = app.bundles.as_deref().ok_or_else(|| ApiError::no_bundle(&digest))?;
    let bundles = app.store.bundles().await?;
    let known = match agent(&app, &headers).await? {
        Some(node) => {
            let node = app.store.node(node).await?;
            model::bundle::of_node(&bundles, &node).into_iter().any(|bundle| bundle.digest == digest)
        }
        None => bundles.iter().any(|bundle| bundle.digest == digest),
    };
    if !known {
        return Err(ApiError::no_bundle(&digest));
    }
    let (file, size) = bundle_store.open_file(&digest).await?;
    let mut response = Response::new(Body::from_stream(ReaderStream::with_capacity(file, CHUNK)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    Ok(response)
}

/// The node of the agent that asks; `None` if the caller is not an agent. 403, with the same text for every reason, if
/// the token does not prove the node.
pub(crate) async fn agent(app: &App, headers: &HeaderMap) -> Result<Option<Uuid>, ApiError> {
    if !headers.contains_key(NODE_HEADER) && !headers.contains_key(TOKEN_HEADER) {
        return Ok(None);
    }
    let refused = || ApiError::client(403, "Invalid or missing agent token received.");
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let node = text(NODE_HEADER).and_then(|node| Uuid::parse_str(node).ok()).ok_or_else(refused)?;
    let contact = match app.store.contact(node).await {
        Err(StoreError::NotFound { .. }) => return Err(refused()),
        contact => contact?,
    };
    match (contact.token, text(TOKEN_HEADER)) {
        (Some(known), Some(given)) if token::same(&known, given) => Ok(Some(node)),
        _ => {
            tracing::warn!(node_uuid = %node, "rejected a download: wrong agent token");
            Err(refused())
        }
    }
}
