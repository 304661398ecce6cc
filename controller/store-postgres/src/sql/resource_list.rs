//! Lists of resources.

use super::list::{self, Condition, List, Sort};
use super::{node_list, resource};
use crate::change::Change;
use crate::columns::{kind_of_resource_field, resource_field_may_be_null};
use crate::value::Value;
use store::{Ownership, ResourceFilter, ResourcePage, ResourceQuery, Result};
use stored_secrets::DatabaseKey;

/// The page that a query asks for.
pub async fn page(change: &Change, key: &DatabaseKey, query: &ResourceQuery) -> Result<ResourcePage> {
    let list = List {
        table: "resource",
        conditions: conditions(change, &query.filter).await?,
        sort: query
            .sort
            .map(|field| Sort { column: field.name(), may_be_null: resource_field_may_be_null(field) }),
        descending: query.descending,
        after: query
            .after
            .as_ref()
            .map(|after| node_list::place(after, query.sort.map(kind_of_resource_field))),
        limit: query.limit.saturating_add(1),
    };
    let found = list::find(change, &list).await?;
    let resources = found.iter().take(query.limit).map(|row| resource::of_row(key, row));
    Ok(ResourcePage { resources: resources.collect::<Result<_>>()?, more: found.len() > query.limit })
}

async fn conditions(change: &Change, filter: &ResourceFilter) -> Result<Vec<Condition>> {
    let kind = filter.kind;
    let mut all = vec![Condition::equal("kind", Some(Value::text(kind.as_str())))];
    for (field, value) in &filter.equal {
        all.push(Condition::equal(field.name(), Value::of(kind_of_resource_field(*field), value)));
    }
    match (&filter.project, Ownership::of(kind)) {
        (None, _) | (_, Ownership::NoProject) => {}
        (Some(project), Ownership::OwnerField) => {
            all.push(Condition::equal("owner", Some(Value::text(project))));
        }
        (Some(project), Ownership::ProjectsOfNode) => {
            all.push(of_node(node_list::has_project(project, "n.")))
        }
    }
    if let Some((field, wanted)) = &filter.node_one_of {
        all.push(of_node(node_list::one_of(change, *field, wanted, "n.").await?));
    }
    all.extend(
        filter
            .description_contains
            .iter()
            .map(|part| Condition::new("strpos(description, $) > 0", [Value::text(part)])),
    );
    Ok(all)
}

/// The node of a resource matches.
fn of_node(term: Condition) -> Condition {
    Condition {
        sql: format!("EXISTS (SELECT 1 FROM node n WHERE n.uuid = l.node_uuid AND {})", term.sql),
        ..term
    }
}
