//! Lists of resources.

use super::list::{self, Condition, List, Range, Sort};
use super::{node_list, resource};
use crate::document::failed;
use model::ResourceKind;
use rusqlite::Connection;
use rusqlite::types::Value;
use store::{Ownership, ResourceField, ResourceFilter, ResourcePage, ResourceQuery, Result};

/// The page that a query asks for.
pub fn page(connection: &Connection, query: &ResourceQuery) -> Result<ResourcePage> {
    let kind = query.filter.kind;
    let list = list(connection, query)?;
    let mut found = list::find(connection, &list)
        .map_err(failed(format_args!("finding those of a list of kind {}", kind.as_str())))?;
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    Ok(ResourcePage { resources: resource::by_uuids(connection, kind, &found)?, more })
}

/// How a page is found.
pub(super) fn list(connection: &Connection, query: &ResourceQuery) -> Result<List> {
    let kind = query.filter.kind;
    let (ranges, matches) = conditions(connection, &query.filter)
        .map_err(failed(format_args!("preparing a list of kind {}", kind.as_str())))?;
    Ok(List {
        all: range(kind, "resource_order"),
        ranges,
        matches,
        sort: query.sort.map(|field| sort_by(kind, field)),
        descending: query.descending,
        after: query.after.as_ref().map(node_list::place),
        limit: query.limit.saturating_add(1),
    })
}

/// Ranges that hold every resource that matches, and the whole condition but the kind.
fn conditions(connection: &Connection, filter: &ResourceFilter) -> rusqlite::Result<(Vec<Range>, Condition)> {
    let kind = filter.kind;
    let (mut ranges, mut terms) = (Vec::new(), Vec::new());
    let mut equal = |field: ResourceField, value: &Value| {
        let Sort { column, range } = sort_by(kind, field);
        let condition = range.condition.and(&Condition::equal(&column, value));
        ranges.push(Range { condition, ..range });
        terms.push(Condition::equal(&format!("+{column}"), value));
    };
    for (field, value) in &filter.equal {
        equal(*field, &node_list::sql_value(value));
    }
    if let (Some(project), Ownership::OwnerField) = (&filter.project, Ownership::of(kind)) {
        equal(ResourceField::Owner, &Value::Text(project.clone()));
    }
    if let (Some(project), Ownership::ProjectsOfNode) = (&filter.project, Ownership::of(kind)) {
        ranges.push(below(kind, node_list::of_project(project)));
        terms.push(of_node(&node_list::has_project(project)));
    }
    if let Some((field, wanted)) = &filter.node_one_of {
        let (range, term) = node_list::one_of(connection, *field, wanted, "n")?;
        ranges.push(below(kind, range));
        terms.push(of_node(&term));
    }
    if let Some(part) = &filter.description_contains {
        terms.push(Condition::new("text_contains(l.description, ?)", [Value::Text(part.clone())]));
    }
    Ok((ranges, Condition::all(terms)))
}

/// The resources of the nodes in a range, which must not have the alias `l`.
fn below(kind: ResourceKind, nodes: Range) -> Range {
    // The condition is that of the index alone, so that its rows can be counted.
    let join = format!(
        " CROSS JOIN resource l INDEXED BY resource_node ON l.node = {}.uuid AND l.kind = '{}'",
        nodes.alias,
        kind.as_str()
    );
    let condition = nodes.condition;
    Range { index: nodes.index, join, alias: "l", condition, ordered: false }
}

/// The node of a resource matches.
fn of_node(term: &Condition) -> Condition {
    Condition {
        sql: format!(
            "EXISTS (SELECT 1 FROM node_list n INDEXED BY node_list_uuid WHERE n.uuid = l.node AND {})",
            term.sql
        ),
        params: term.params.clone(),
    }
}

fn range(kind: ResourceKind, index: &str) -> Range {
    let index = format!("resource l INDEXED BY {index}");
    let condition = Condition::equal("l.kind", &Value::Text(kind.as_str().to_owned()));
    Range { index, join: String::new(), alias: "l", condition, ordered: true }
}

/// The column of a field and its index.
fn sort_by(kind: ResourceKind, field: ResourceField) -> Sort {
    let (column, index) = match field {
        ResourceField::CreatedAt => ("l.created_at", "resource_order"),
        ResourceField::Uuid => ("l.uuid", "resource_uuid"),
        ResourceField::Name => ("l.name", "resource_name"),
        ResourceField::Node => ("l.node", "resource_kind_node"),
        ResourceField::Address => ("l.address", "resource_address"),
        ResourceField::Portgroup => ("l.portgroup_uuid", "resource_portgroup"),
        ResourceField::Owner => ("l.owner", "resource_owner"),
        ResourceField::ResourceClass => ("l.resource_class", "resource_class"),
        ResourceField::State => ("l.state", "resource_state"),
    };
    Sort { column: column.to_owned(), range: range(kind, index) }
}
