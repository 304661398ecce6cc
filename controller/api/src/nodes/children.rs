//! `GET /v1/nodes/{ident}/children`: nodes that name this one as their `parent_node`.

use crate::call::{Call, json};
use crate::error::Reply;
use axum::extract::Path;
use serde_json::json;
use store::{NodeField, NodeFilter, NodeQuery};

/// `GET …/children`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(83)?;
    call.args.only(&[])?;
    let parent = call.node(&ident).await?.uuid.to_string();
    let filter =
        NodeFilter { equal: vec![(NodeField::ParentNode, parent.as_str().into())], ..NodeFilter::default() };
    let found = call.app.store.node_page(NodeQuery::first(usize::MAX, filter)).await?;
    let children: Vec<_> = found.nodes.iter().map(|node| node.uuid).collect();
    let link = call.links.v1(&format!("nodes/?parent_node={parent}"));
    Ok(json(200, &json!({"children": children, "links": {"href": link, "rel": "children"}})))
}
