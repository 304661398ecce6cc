//! `GET /v1/nodes` and `GET /v1/nodes/detail`.

use super::{filter, scan};
use crate::args;
use crate::call::{Call, json_text};
use crate::error::{ApiError, Reply};
use crate::fields;
use crate::list_body::list_body;
use crate::page::{self, Page};
use crate::shown;
use crate::view::{DEFAULT_FIELDS, NodeView};
use axum::extract::Path;
use model::Node;
use store::{NodeField, NodeFilter, NodePage, NodeQuery, Place, StoreError};
use uuid::Uuid;

/// Path of the list that can be searched.
const SEARCHED: &str = "anneal/nodes";
/// The argument of a search: a text that name, UUID, instance name or instance UUID contains, in any letter case of ASCII.
pub const SEARCH: &str = "search";

/// `GET /v1/nodes`.
pub async fn list(call: Call) -> Reply {
    let wanted = wanted(&call)?;
    collection(&call, None, "nodes", wanted).await
}

/// `GET /v1/nodes/detail`.
pub async fn detail(call: Call) -> Reply {
    shown::all(&call)?;
    collection(&call, None, "nodes/detail", None).await
}

/// `GET /v1/chassis/{ident}/nodes`.
pub async fn of_chassis(Path(ident): Path<String>, call: Call) -> Reply {
    let chassis = args::as_uuid("chassis_uuid", &ident)?;
    call.check_chassis(&ident).await?;
    let wanted = wanted(&call)?;
    collection(&call, Some(chassis), &format!("chassis/{ident}/nodes"), wanted).await
}

/// `GET /v1/chassis/{ident}/nodes/detail`.
pub async fn of_chassis_detail(Path(ident): Path<String>, call: Call) -> Reply {
    shown::all(&call)?;
    let chassis = args::as_uuid("chassis_uuid", &ident)?;
    call.check_chassis(&ident).await?;
    collection(&call, Some(chassis), &format!("chassis/{ident}/nodes/detail"), None).await
}

/// `GET /v1/anneal/nodes`: as `GET /v1/nodes`, and found by a text. An extension of Anneal's.
pub async fn search(call: Call) -> Reply {
    let wanted = wanted(&call)?;
    collection(&call, None, SEARCHED, wanted).await
}

fn wanted(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    shown::in_list(call, Some(43), &DEFAULT_FIELDS, |wanted| fields::check_wanted(wanted, call.version))
}

async fn collection(call: &Call, chassis: Option<Uuid>, path: &str, wanted: Option<Vec<String>>) -> Reply {
    let mut known: Vec<&str> = filter::FILTERS.iter().map(|(name, _)| *name).collect();
    known.extend(page::ARGS);
    if !path.ends_with("detail") {
        known.extend(["fields", "detail"]);
    }
    known.extend((path == SEARCHED).then_some(SEARCH));
    call.args.only(&known)?;
    filter::check_versions(call)?;
    let mut filter = filter::of(call, chassis)?;
    if let (Some(filter), Some(part)) = (&mut filter, call.args.text(SEARCH)) {
        filter.search = Some(part.to_ascii_lowercase());
    }
    let page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let field = fields::find(&page.sort_key).ok_or_else(|| page.bad_key(false))?;
        call.version.needs(field.since)?;
        if !field.sortable {
            return Err(page.bad_key(true));
        }
    }
    let marker = match page.marker() {
        None => None,
        Some(marker) => Some(call.app.store.node(marker).await.map_err(|error| match error {
            StoreError::NotFound { .. } => ApiError::no_node(marker),
            other => other.into(),
        })?),
    };
    let NodePage { nodes, more } = match filter {
        None => NodePage::default(),
        Some(filter) => found(call, &page, filter, marker).await?,
    };
    let last = nodes.last().map(|node| node.uuid);
    let views = NodeView::gather_all(call, nodes, wanted.as_deref()).await?;
    let shown =
        views.into_iter().map(|shown| shown.text(&call.app, &call.links, call.version, wanted.as_deref()));
    // At most one node has an instance UUID: there is no next page.
    let last = last.filter(|_| more && call.args.text("instance_uuid").is_none());
    let next = last.map(|last| page.next(&call.links, path, &call.args, last));
    Ok(json_text(200, list_body("nodes", shown, next)))
}

/// The nodes of the page after `marker`.
async fn found(
    call: &Call,
    page: &Page,
    filter: NodeFilter,
    marker: Option<Node>,
) -> Result<NodePage, ApiError> {
    let members = &call.app.members;
    // The store does not know who drives a node; with one controller, that one drives all.
    if let Some(host) = call.args.text("conductor").filter(|_| members.alive().len() > 1) {
        let driven = |node: &Node| members.driver_of(node).as_deref() == Some(host);
        return scan::page(call, page, filter, marker, driven).await;
    }
    let sort = match page.sort_key.as_str() {
        "id" => None,
        key => match indexed(call, key) {
            Some(field) => Some(field),
            None => return scan::page(call, page, filter, marker, |_| true).await,
        },
    };
    let query = NodeQuery {
        filter,
        sort,
        descending: page.descending,
        after: marker.map(|node| Place::of_node(&node, sort)),
        limit: page.limit,
        time_limit: call.app.settings.list_time_limit,
    };
    Ok(call.app.store.node_page(query).await?)
}

/// The field that the store sorts by like a list of clients of this version, if it has an index of it.
fn indexed(call: &Call, key: &str) -> Option<NodeField> {
    // Old clients see other names of states.
    NodeField::named(key).filter(|field| *field != NodeField::ProvisionState || call.version.has(39))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/operations.md` names the sort keys of which there is no index, and no other.
    #[test]
    fn the_documentation_names_what_no_index_serves() {
        let page = include_str!("../../../../docs/operations.md");
        let row = page.lines().find(|line| line.starts_with("| `sort_key` of nodes |")).expect("the row");
        let fields = fields::NODE.iter().chain(fields::OWN).filter(|field| field.sortable);
        for field in fields.filter(|field| !field.name.ends_with("_interface")) {
            // The state has an index, but not as old clients see it.
            let slow = NodeField::named(field.name).is_none() || field.name == "provision_state";
            assert_eq!(row.contains(&format!("`{}`", field.name)), slow, "{}", field.name);
        }
    }
}
