//! `GET /v1/anneal/images/{name}`: an image that the controller has, for the agent of a node whose run deploys it. The
//! agent sends its node and its token in headers, because URLs are logged.

use crate::app::App;
use crate::bundles;
use crate::endpoint::{Endpoint, OPEN, rows};
use crate::error::{ApiError, Reply};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use http_server::file;
use images::{Ready, Wanted};
use model::{Node, RunKind};
use std::sync::Arc;

/// Its endpoint. The handler rejects a request without the token.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let rows =
        rows![GET "/v1/anneal/images/{name}" 1 OPEN, "an image, for the agent that writes it" => image;];
    rows.into_iter().map(Endpoint::own).collect()
}

async fn image(State(app): State<Arc<App>>, Path(name): Path<String>, headers: HeaderMap) -> Reply {
    let agent = bundles::agent(&app, &headers).await?;
    let node = agent.ok_or_else(|| ApiError::client(403, "Invalid or missing agent token received."))?;
    let none = || ApiError::client(404, "This node's run deploys no image of this name.");
    let node = app.store.node(node).await?;
    let wanted = Some(&node).filter(|node| is_deployed(node)).and_then(|node| Wanted::of(node).ok());
    let wanted = wanted.filter(|wanted| app.images.serves(&wanted.origin)).ok_or_else(none)?;
    let images = app.images.clone();
    let found = tokio::task::spawn_blocking(move || images.state(&wanted)).await;
    let Ready { file, bytes, .. } = match found.map_err(|_| ApiError::internal("looking for an image"))? {
        images::State::Ready(ready) if ready.name == name => ready,
        images::State::Ready(_) => return Err(none()),
        // After a restart, a file is compared with its digest once more.
        images::State::Waiting(what) => {
            return Err(ApiError::client(503, format!("The controller waits for {what}.")));
        }
        images::State::Failed(why) => return Err(ApiError::client(404, why)),
    };
    let etag = format!("\"{name}\"");
    file::answer(file, bytes, &etag, &headers).map_err(|error| {
        tracing::error!(%error, node_uuid = %node.uuid, "an image cannot be read");
        ApiError::client(500, "The controller cannot read the image; see its log.")
    })
}

/// Whether a run of the node may need its image now.
fn is_deployed(node: &Node) -> bool {
    node.run
        .as_ref()
        .is_some_and(|run| run.is_active() && matches!(run.kind, RunKind::Deploy | RunKind::Rebuild))
}
