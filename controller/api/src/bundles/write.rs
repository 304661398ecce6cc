//! Adding and removing bundles.

use super::{read, scope};
use crate::app::App;
use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use axum::body::Body;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::{HeaderMap, Response, header};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use model::{Bundle, Scope};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Most bytes that are read of a file whose request is refused.
const DRAINED: usize = 1 << 20;

/// `POST /v1/anneal/bundles[?scope=all][&digest=SHA-256]`: the file is the body. 201, with the bundle that it
/// replaces as `replaced`.
pub async fn add(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    // Unlike the body of every other request, this one is not read into memory.
    let (parts, body) = request.into_parts();
    let headers = parts.headers.clone();
    match Call::from_request(Request::from_parts(parts, Body::empty()), &app).await {
        Ok(call) => receive(call, &headers, body).await.into_response(),
        Err(refused) => refused,
    }
}

async fn receive(call: Call, headers: &HeaderMap, body: Body) -> Reply {
    let bundle_store = call.app.bundle_store()?;
    let scope = match asked_scope(&call).await {
        Ok(scope) => scope,
        Err(refused) => {
            drain(body).await;
            return Err(refused);
        }
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let (upload, found) = bundle_store.receive(body, length).await?;
    if let Some(expected) = call.args.text("digest").filter(|expected| *expected != found.digest) {
        return Err(ApiError::invalid(format!(
            "The file has arrived with digest {}, not {expected}: it was changed on its way",
            found.digest
        )));
    }
    let manifest = match serde_json::to_value(&found.manifest) {
        Ok(Value::Object(manifest)) => manifest,
        _ => Map::new(),
    };
    let bundle = Bundle {
        name: found.manifest.name,
        scope,
        digest: found.digest,
        size: found.size,
        version: found.manifest.version,
        vendor: found.manifest.vendor,
        signed_by: found.signed_by,
        manifest,
        created_at: call.now(),
    };
    let mut shown = read::view(&bundle);
    let added = call.change("added by a user".to_owned());
    let replaced = bundle_store.keep(&*call.app.store, upload, bundle, added).await?;
    shown["replaced"] = replaced.map_or(Value::Null, |old| read::view(&old));
    Ok(json(201, &shown))
}

async fn asked_scope(call: &Call) -> Result<Scope, ApiError> {
    call.args.only(&["scope", "digest"])?;
    Ok(scope::read(call).await?.unwrap_or(Scope::All))
}

/// Read the beginning of a file that is not wanted: a client that still sends when the connection is closed does not see the
/// answer.
async fn drain(mut body: Body) {
    let mut left = DRAINED;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, |data| data.len());
        let Some(rest) = left.checked_sub(length) else { return };
        left = rest;
    }
}

/// `DELETE /v1/anneal/bundles/{digest}[?scope=…]`: from one scope, or from all. 204.
pub async fn delete(Path(digest): Path<String>, call: Call) -> Reply {
    let bundle_store = call.app.bundle_store()?;
    call.args.only(&["scope"])?;
    let scope = scope::read(&call).await?;
    let removed = call.change("removed by a user".to_owned());
    bundle_store.remove(&*call.app.store, &digest, scope.as_ref(), removed).await?;
    Ok(empty(204, None))
}
