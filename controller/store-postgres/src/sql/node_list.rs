//! Lists of nodes.

use super::list::{self, Condition, List, Place, Sort};
use super::node;
use crate::change::{Change, rows};
use crate::columns::{kind_of_node_field, node_field_may_be_null};
use crate::database::Client;
use crate::document::cell;
use crate::failure::failed;
use crate::text;
use crate::value::{Kind, Value};
use std::collections::BTreeMap;
use store::{FieldValue, NodeField, NodeFilter, NodePage, NodeQuery, Result};
use stored_secrets::DatabaseKey;
use tokio_postgres::Row;
use uuid::Uuid;

/// The page that a query asks for.
pub async fn page(change: &Change, key: &DatabaseKey, query: &NodeQuery) -> Result<NodePage> {
    let found = list::find(change, &list(change, query).await?).await?;
    let nodes = found.iter().take(query.limit).map(|row| node::of_row(key, row));
    Ok(NodePage { nodes: nodes.collect::<Result<_>>()?, more: found.len() > query.limit })
}

/// How a page is found.
pub(super) async fn list(change: &Change, query: &NodeQuery) -> Result<List> {
    Ok(List {
        table: "node",
        conditions: conditions(change, &query.filter).await?,
        sort: query
            .sort
            .map(|field| Sort { column: field.name(), may_be_null: node_field_may_be_null(field) }),
        descending: query.descending,
        after: query.after.as_ref().map(|after| place(after, query.sort.map(kind_of_node_field))),
        limit: query.limit.saturating_add(1),
    })
}

/// A place as rows have it.
pub fn place(place: &store::Place, sort: Option<Kind>) -> Place {
    let kind = sort.unwrap_or(Kind::Text);
    let value = Value::of(kind, &place.value).unwrap_or(Value::none(kind));
    Place { created_at: place.created_at.0, uuid: place.uuid, value }
}

async fn conditions(change: &Change, filter: &NodeFilter) -> Result<Vec<Condition>> {
    let mut all = Vec::new();
    for (field, value) in &filter.equal {
        all.push(Condition::equal(field.name(), Value::of(kind_of_node_field(*field), value)));
    }
    for (wanted, column) in [(filter.associated, "instance_uuid"), (filter.sharded, "shard")] {
        if let Some(wanted) = wanted {
            let not = if wanted { "NOT " } else { "" };
            all.push(Condition::new(format!("{column} IS {not}NULL"), []));
        }
    }
    for (field, wanted) in &filter.one_of {
        all.push(one_of(change, *field, wanted, "").await?);
    }
    all.extend(filter.projects.iter().map(|project| has_project(project, "")));
    all.extend(filter.description_contains.iter().map(|part| {
        // An index helps nothing here.
        Condition::new("strpos(description, $) > 0", [Value::text(part)])
    }));
    all.extend(filter.search.iter().map(|part| search(part)));
    all.extend(
        filter.due_before.map(|time| Condition::new("next_wake_at < $", [Value::Number(Some(time.0))])),
    );
    Ok(all)
}

/// A node has this text, in lower case, in what a search looks at. `lower` would depend on the locale of the database.
fn search(part: &str) -> Condition {
    const LOWERS: &str = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'";
    let finds = |field: NodeField| format!("strpos(translate({}::text, {LOWERS}), $) > 0", field.name());
    let any = NodeFilter::SEARCHED.map(finds).join(" OR ");
    Condition::new(format!("({any})"), NodeFilter::SEARCHED.map(|_| Value::text(part)))
}

/// A node has one of these texts in a field; its table is named by `of`.
pub async fn one_of(change: &Change, field: NodeField, wanted: &[String], of: &str) -> Result<Condition> {
    if kind_of_node_field(field) != Kind::Text {
        return Ok(Condition::new("false", []));
    }
    let texts = list::texts(change, "node", field.name(), wanted).await?;
    Ok(Condition::one_of(&format!("{of}{}", field.name()), texts))
}

/// A project owns or leases a node; its table is named by `of`.
pub fn has_project(project: &str, of: &str) -> Condition {
    let project = Value::text(project);
    Condition::new(format!("({of}owner = $ OR {of}lessee = $)"), [project.clone(), project])
}

/// How many nodes have each combination of values of these fields.
pub async fn count(
    client: &Client,
    fields: &[NodeField],
    project: Option<&str>,
) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
    let columns: Vec<_> = fields.iter().map(|field| field.name()).collect();
    let columns = columns.join(", ");
    let sql = format!(
        "SELECT count(*), {columns} FROM node
            WHERE $1::text IS NULL OR owner = $1 OR lessee = $1 GROUP BY {columns}"
    );
    let project = project.map(text::stored);
    let found = rows(client, &sql, &[&project.as_deref()]).await;
    let found = found.map_err(failed("counting nodes"))?;
    let count = |row| {
        let values = fields.iter().enumerate().map(|(index, field)| field_value(row, index + 1, *field));
        let count: i64 = cell(row, 0)?;
        Ok((values.collect::<Result<_>>()?, usize::try_from(count).unwrap_or_default()))
    };
    found.iter().map(count).collect()
}

/// The value of a field in a column of a row.
fn field_value(row: &Row, index: usize, field: NodeField) -> Result<FieldValue> {
    let value = match kind_of_node_field(field) {
        Kind::Text => cell::<Option<&str>>(row, index)?.map(|value| FieldValue::Text(text::read(value))),
        Kind::Number => cell::<Option<i64>>(row, index)?.map(FieldValue::Number),
        Kind::Bool => cell::<Option<bool>>(row, index)?.map(FieldValue::Bool),
        Kind::Uuid => cell::<Option<Uuid>>(row, index)?.map(|uuid| FieldValue::Text(uuid.to_string())),
    };
    Ok(value.unwrap_or(FieldValue::Null))
}
