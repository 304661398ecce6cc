//! `GET /v1/nodes/{ident}`.

use crate::call::{Call, json_text};
use crate::error::{ApiError, Reply};
use crate::fields;
use crate::view::NodeView;
use axum::body::Body;
use axum::extract::Path;
use axum::http::Response;
use model::Node;
use std::sync::Arc;

/// `GET /v1/nodes/{ident}[?fields=a,b]`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["fields"])?;
    let wanted = call.args.list("fields");
    let node = call.shared_node(&ident).await?;
    if let Some(wanted) = &wanted {
        call.version.needs(8)?;
        fields::check_wanted(wanted, call.version)?;
    }
    answer(&call, 200, node, wanted.as_deref()).await
}

/// The answer that shows a node.
pub async fn answer(
    call: &Call,
    status: u16,
    node: impl Into<Arc<Node>> + Send,
    wanted: Option<&[String]>,
) -> Result<Response<Body>, ApiError> {
    let view = NodeView::gather(call, node, wanted).await?;
    Ok(json_text(status, view.text(&call.app, &call.links, call.version, wanted)))
}
