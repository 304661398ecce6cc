//! Lists of nodes, from the table `node_list`.

use super::list::{self, Condition, List, Place, Range, Sort};
use super::node;
use crate::document::failed;
use crate::node_cache::Reading;
use model::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeMap;
use store::{FieldValue, NodeField, NodeFilter, NodePage, NodeQuery, Result};

/// The page that a query asks for.
pub fn page(connection: &Connection, reading: &Reading, query: &NodeQuery) -> Result<NodePage> {
    let list = list(connection, query)?;
    let mut found = list::find(connection, &list).map_err(failed("finding the nodes of a list"))?;
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    Ok(NodePage { nodes: node::by_uuids(connection, reading, &found)?, more })
}

/// How many nodes have each combination of values of these fields.
pub fn count(
    connection: &Connection,
    fields: &[NodeField],
    project: Option<&str>,
) -> Result<BTreeMap<Vec<FieldValue>, usize>> {
    let Condition { sql, params } = counting(fields, project);
    let read = || -> rusqlite::Result<BTreeMap<Vec<FieldValue>, usize>> {
        let mut statement = connection.prepare_cached(&sql)?;
        let counts = statement.query_map(params_from_iter(&params), |row| {
            let count: i64 = row.get(0)?;
            let value = |(index, field): (usize, &NodeField)| Ok(field_value(*field, row.get(index + 1)?));
            let values: rusqlite::Result<_> = fields.iter().enumerate().map(value).collect();
            Ok((values?, usize::try_from(count).unwrap_or_default()))
        })?;
        counts.collect()
    };
    read().map_err(failed("counting nodes"))
}

/// The statement that counts.
pub(super) fn counting(fields: &[NodeField], project: Option<&str>) -> Condition {
    let (from, condition) = match (project, fields.first()) {
        (None, first) => (first.map_or_else(all, |first| sort_by(*first).range).index, Condition::all([])),
        (Some(project), _) => {
            let range = of_project(project);
            (format!("{}{OF_PROJECT}", range.index), range.condition)
        }
    };
    let columns: Vec<String> = fields.iter().map(|field| sort_by(*field).column).collect();
    let columns = columns.join(", ");
    let sql = format!("SELECT count(*), {columns} FROM {from} WHERE {} GROUP BY {columns}", condition.sql);
    Condition { sql, ..condition }
}

const OF_PROJECT: &str = " CROSS JOIN node_list l ON l.created_at = p.created_at AND l.uuid = p.uuid";

/// The nodes of a project; without a join.
pub(super) fn of_project(project: &str) -> Range {
    let condition = Condition::new("p.project = ?", [Value::Text(project.to_owned())]);
    Range { index: "node_project p".to_owned(), join: String::new(), alias: "p", condition, ordered: true }
}

/// The nodes that the controller was to look at before a time.
fn due_before(time: Timestamp) -> Range {
    let sql = "n.next_wake_at IS NOT NULL AND n.next_wake_at < ?";
    let join = " CROSS JOIN node_list l ON l.created_at = n.created_at AND l.uuid = n.uuid";
    Range {
        index: "node n INDEXED BY node_due".to_owned(),
        join: join.to_owned(),
        alias: "n",
        condition: Condition::new(sql, [Value::Integer(time.0)]),
        ordered: false,
    }
}

/// Whether a project owns or leases the node `n`.
pub(super) fn has_project(project: &str) -> Condition {
    let project = Value::Text(project.to_owned());
    let sql = "ifnull(+n.owner = ?, 0) + ifnull(+n.lessee = ?, 0) > 0";
    Condition::new(sql, [project.clone(), project])
}

/// The nodes with one of these texts in a field, and that condition of one node; the table has this alias.
pub(super) fn one_of(
    connection: &Connection,
    field: NodeField,
    wanted: &[String],
    alias: &'static str,
) -> rusqlite::Result<(Range, Condition)> {
    let Sort { column, range } = column_of(field.name(), alias);
    let texts = list::texts(connection, &Sort { column: column.clone(), range: range.clone() }, wanted)?;
    let condition = Condition::one_of(&column, &texts);
    let range = Range { condition, ordered: texts.len() == 1, ..range };
    Ok((range, Condition::one_of(&format!("+{column}"), &texts)))
}

/// A place as rows have it.
pub(super) fn place(place: &store::Place) -> Place {
    Place { created_at: place.created_at.0, uuid: place.uuid.to_string(), value: sql_value(&place.value) }
}

/// How a page is found.
pub(super) fn list(connection: &Connection, query: &NodeQuery) -> Result<List> {
    let (ranges, matches) =
        conditions(connection, &query.filter).map_err(failed("preparing a list of nodes"))?;
    Ok(List {
        all: all(),
        ranges,
        matches,
        sort: query.sort.map(sort_by),
        descending: query.descending,
        after: query.after.as_ref().map(place),
        limit: query.limit.saturating_add(1),
    })
}

/// Ranges that hold every node that matches, and the whole condition.
fn conditions(connection: &Connection, filter: &NodeFilter) -> rusqlite::Result<(Vec<Range>, Condition)> {
    let (mut ranges, mut terms) = (Vec::new(), Vec::new());
    // The plus keeps SQLite from another index than the one that was chosen.
    let mut equal = |field: &Sort, value: &Value| {
        let condition = Condition::equal(&field.column, value);
        ranges.push(Range { condition, ..field.range.clone() });
        terms.push(Condition::equal(&format!("+{}", field.column), value));
    };
    for (field, value) in &filter.equal {
        equal(&sort_by(*field), &sql_value(value));
    }
    for (wanted, column) in [(filter.associated, "associated"), (filter.sharded, "sharded")] {
        if let Some(wanted) = wanted {
            equal(&column_of(column, "l"), &Value::Integer(wanted.into()));
        }
    }
    for (field, wanted) in &filter.one_of {
        let (range, term) = one_of(connection, *field, wanted, "l")?;
        ranges.push(range);
        terms.push(term);
    }
    for project in &filter.projects {
        ranges.push(Range { join: OF_PROJECT.to_owned(), ..of_project(project) });
        let project = Value::Text(project.clone());
        let sql = "ifnull(+l.owner = ?, 0) + ifnull(+l.lessee = ?, 0) > 0";
        terms.push(Condition::new(sql, [project.clone(), project]));
    }
    // The last: the other conditions need no document.
    if let Some(part) = &filter.description_contains {
        terms.push(Condition::new(
            "(SELECT text_contains(description, ?) FROM node n WHERE n.uuid = l.uuid)",
            [Value::Text(part.clone())],
        ));
    }
    if let Some(part) = &filter.search {
        let finds = |field: NodeField| {
            let sql = format!("ifnull(instr(lower(+{}), ?), 0) > 0", sort_by(field).column);
            Condition::new(sql, [Value::Text(part.clone())])
        };
        let any = NodeFilter::SEARCHED.map(finds);
        let sql = any.each_ref().map(|one| one.sql.as_str()).join(" OR ");
        terms.push(Condition::new(format!("({sql})"), any.into_iter().flat_map(|one| one.params)));
    }
    if let Some(time) = filter.due_before {
        ranges.push(due_before(time));
        let sql = "ifnull((SELECT next_wake_at FROM node n WHERE n.uuid = l.uuid) < ?, 0)";
        terms.push(Condition::new(sql, [Value::Integer(time.0)]));
    }
    Ok((ranges, Condition::all(terms)))
}

/// A column of `node_list`, which has this alias, and its index.
fn column_of(name: &str, alias: &'static str) -> Sort {
    let index = format!("node_list {alias} INDEXED BY node_list_{name}");
    let range = Range { index, join: String::new(), alias, condition: Condition::all([]), ordered: true };
    Sort { column: format!("{alias}.{name}"), range }
}

/// All nodes in the order of lists, which is that of the table.
fn all() -> Range {
    let (index, join) = ("node_list l".to_owned(), String::new());
    Range { index, join, alias: "l", condition: Condition::all([]), ordered: true }
}

/// The column of a field and its index.
fn sort_by(field: NodeField) -> Sort {
    match field {
        NodeField::CreatedAt => Sort { column: "l.created_at".to_owned(), range: all() },
        field => column_of(field.name(), "l"),
    }
}

/// What [`sql_value`] made of the value of a field.
fn field_value(field: NodeField, value: Value) -> FieldValue {
    match (field, value) {
        (NodeField::Maintenance | NodeField::Retired, Value::Integer(value)) => FieldValue::Bool(value != 0),
        (_, Value::Integer(value)) => FieldValue::Number(value),
        (_, Value::Text(text)) => FieldValue::Text(text),
        _ => FieldValue::Null,
    }
}

pub(super) fn sql_value(value: &FieldValue) -> Value {
    match value {
        FieldValue::Null => Value::Null,
        FieldValue::Bool(value) => Value::Integer((*value).into()),
        FieldValue::Number(value) => Value::Integer(*value),
        FieldValue::Text(text) => Value::Text(text.clone()),
    }
}
