//! Lists that are sorted by a field of which the store has no index: what the field shows depends on the caller, on the
//! settings or on other rows, or few clients sort by it. All nodes that match are read, some at a time.

use crate::call::Call;
use crate::error::ApiError;
use crate::first_page::{AT_ONCE, FirstPage};
use crate::page::Page;
use crate::view::NodeView;
use model::Node;
use serde_json::Value;
use std::cmp::Ordering;
use store::{NodeFilter, NodePage, NodeQuery, Place};

/// A node with what the list is sorted by.
type Keyed = (Value, Node);

/// The page after `marker` of those nodes that `keep` lets pass.
///
/// # Errors
/// 400: it takes longer than the time limit of lists.
pub async fn page(
    call: &Call,
    page: &Page,
    filter: NodeFilter,
    marker: Option<Node>,
    keep: impl Fn(&Node) -> bool,
) -> Result<NodePage, ApiError> {
    let after = match marker {
        None => None,
        Some(node) => keyed(call, page, vec![node]).await?.pop(),
    };
    let time_limit = call.app.settings.list_time_limit;
    let mut query = NodeQuery { time_limit, ..NodeQuery::first(AT_ONCE, filter) };
    let mut first =
        FirstPage::new(&call.app, page, |one: &Keyed, other: &Keyed| order(page, one, other), after);
    loop {
        let mut read = call.app.store.node_page(query.clone()).await?;
        query.after = read.nodes.last().map(|node| Place::of_node(node, None));
        read.nodes.retain(|node| keep(node));
        if !first.take(keyed(call, page, read.nodes).await?, read.more)? {
            break;
        }
    }
    let (nodes, more) = first.end();
    Ok(NodePage { nodes: nodes.into_iter().map(|(_, node)| node).collect(), more })
}

async fn keyed(call: &Call, page: &Page, nodes: Vec<Node>) -> Result<Vec<Keyed>, ApiError> {
    let wanted = [page.sort_key.clone()];
    let views = NodeView::gather_all(call, nodes, Some(&wanted)).await?;
    let key = |view: &NodeView| view.field(&call.app, call.version, &page.sort_key);
    Ok(views.into_iter().map(|view| (key(&view), view.into_node())).collect())
}

fn order(page: &Page, (key, node): &Keyed, (other_key, other): &Keyed) -> Ordering {
    page.order(key, other_key).then((node.created_at, node.uuid).cmp(&(other.created_at, other.uuid)))
}
