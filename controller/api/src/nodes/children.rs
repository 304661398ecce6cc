//! `GET /v1/nodes/{ident}/children`: nodes that name this one as their `parent_node`.

use crate::call::{Call, json};
use crate::error::Reply;
use crate::fields;
use axum::extract::Path;
use serde_json::json;

/// `GET …/children`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(83)?;
    call.args.only(&[])?;
    let parent = call.node(&ident).await?.uuid.to_string();
    let nodes = call.app.store.nodes().await?;
    let children: Vec<_> = nodes
        .iter()
        .filter(|node| fields::read(node, "parent_node").as_str() == Some(&parent))
        .map(|node| node.uuid)
        .collect();
    let link = call.links.v1(&format!("nodes/?parent_node={parent}"));
    Ok(json(200, &json!({"children": children, "links": {"href": link, "rel": "children"}})))
}
