//! Pages of lists, of nodes and of resources alike: statements whose ranges follow one another in the order of the list, until
//! the page is full. Each has an index that ends with the order of lists, and PostgreSQL chooses among those of the filters
//! by what it knows of the values in the table.

use crate::change::Change;
use crate::document::cell;
use crate::failure::failed;
use crate::text;
use crate::value::Value;
use store::Result;
use tokio_postgres::Row;

/// A condition; `$` stands for its next value.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub sql: String,
    pub values: Vec<Value>,
}

impl Condition {
    pub fn new(sql: impl Into<String>, values: impl IntoIterator<Item = Value>) -> Self {
        Self { sql: sql.into(), values: values.into_iter().collect() }
    }

    /// `column` has this value, or none; without a value that it can have, nothing matches.
    pub fn equal(column: &str, value: Option<Value>) -> Self {
        match value {
            None => Self::new("false", []),
            Some(value) if value.is_none() => Self::new(format!("{column} IS NULL"), []),
            Some(value) => Self::new(format!("{column} = $"), [value]),
        }
    }

    /// `column` has one of these texts.
    pub fn one_of(column: &str, texts: Vec<String>) -> Self {
        let marks = vec!["$"; texts.len()].join(", ");
        match texts.is_empty() {
            true => Self::new("false", []),
            false => Self::new(
                format!("{column} IN ({marks})"),
                texts.into_iter().map(|text| Value::Text(Some(text))),
            ),
        }
    }
}

/// What a list is sorted by.
#[derive(Debug, Clone)]
pub struct Sort {
    pub column: &'static str,
    pub may_be_null: bool,
}

/// The last row of the page before.
#[derive(Debug, Clone)]
pub struct Place {
    pub created_at: i64,
    pub uuid: uuid::Uuid,
    /// Its value in the column of the sort.
    pub value: Value,
}

/// A list, and which of its rows are wanted.
pub struct List {
    pub table: &'static str,
    /// What rows must be to be in it.
    pub conditions: Vec<Condition>,
    pub sort: Option<Sort>,
    pub descending: bool,
    pub after: Option<Place>,
    /// Most rows.
    pub limit: usize,
}

/// A part of a list: all of its rows come before those of the next part.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    condition: Option<Condition>,
    order: String,
}

/// UUIDs and documents of the rows of a page, in its order.
pub async fn find(change: &Change, list: &List) -> Result<Vec<Row>> {
    let first = match (&list.sort, &list.after, list.descending) {
        (Some(sort), None, true) => largest(change, list, sort).await?,
        _ => None,
    };
    let mut found = Vec::new();
    for part in parts(list, first) {
        let wanted = list.limit.saturating_sub(found.len());
        if wanted == 0 {
            break;
        }
        let limit = Value::Number(Some(i64::try_from(wanted).unwrap_or(i64::MAX)));
        let conditions = list.conditions.iter().chain(&part.condition);
        let (sql, values) = statement(
            &format!("SELECT uuid, doc FROM {} l", list.table),
            conditions,
            &Condition::new(format!(" ORDER BY {} LIMIT $", part.order), [limit]),
        );
        found.extend(
            change
                .query_once(&sql, &values)
                .await
                .map_err(failed(format_args!("reading a list of {}s", list.table)))?,
        );
    }
    Ok(found)
}

/// The largest value in the column of a sort.
async fn largest(change: &Change, list: &List, sort: &Sort) -> Result<Option<Value>> {
    let column = sort.column;
    let some = Condition::new(format!("{column} IS NOT NULL"), []);
    let (sql, values) = statement(
        &format!("SELECT {column} FROM {} l", list.table),
        list.conditions.iter().chain([&some]),
        &Condition::new(format!(" ORDER BY {column} DESC NULLS LAST LIMIT 1"), []),
    );
    let row = change.query_once(&sql, &values).await.map_err(failed("looking where a list begins"))?.pop();
    row.map(|row| {
        Ok(match *row.columns()[0].type_() {
            tokio_postgres::types::Type::INT8 => Value::Number(cell(&row, 0)?),
            tokio_postgres::types::Type::BOOL => Value::Bool(cell(&row, 0)?),
            tokio_postgres::types::Type::UUID => Value::Uuid(cell(&row, 0)?),
            _ => Value::Text(cell(&row, 0)?),
        })
    })
    .transpose()
}

/// The texts in a column whose lower case is one of the `wanted`; each text in the column is visited once.
pub async fn texts(change: &Change, table: &str, column: &str, wanted: &[String]) -> Result<Vec<String>> {
    let sql = format!(
        "WITH RECURSIVE known (value) AS (
            (SELECT min({column}) FROM {table})
            UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > known.value)
                FROM known WHERE known.value IS NOT NULL)
        SELECT value FROM known WHERE value IS NOT NULL"
    );
    let found =
        change.query_once(&sql, &[]).await.map_err(failed(format_args!("reading what {column} there is")))?;
    let found = found.iter().map(|row| cell::<String>(row, 0)).collect::<Result<Vec<_>>>()?;
    Ok(found.into_iter().filter(|stored| wanted.contains(&text::read(stored).to_lowercase())).collect())
}

/// A statement with its parameters numbered.
pub fn statement<'a>(
    select: &str,
    conditions: impl Iterator<Item = &'a Condition>,
    tail: &Condition,
) -> (String, Vec<Value>) {
    let conditions: Vec<&Condition> = conditions.collect();
    let joined = conditions.iter().map(|condition| condition.sql.as_str()).collect::<Vec<_>>().join(" AND ");
    let wanted = if joined.is_empty() { String::new() } else { format!(" WHERE {joined}") };
    let mut sql = String::new();
    let mut number = 0;
    for character in format!("{select}{wanted}{}", tail.sql).chars() {
        sql.push(character);
        if character == '$' {
            number += 1;
            sql.push_str(&number.to_string());
        }
    }
    let values = conditions.into_iter().chain([tail]).flat_map(|condition| condition.values.clone());
    (sql, values.collect())
}

/// The parts of a list after its place. `largest` is the first value of a list that descends from its beginning.
fn parts(list: &List, largest: Option<Value>) -> Vec<Part> {
    let List { sort, descending, after, .. } = list;
    let Some(Sort { column, may_be_null }) = sort else {
        let (turn, than) = if *descending { (" DESC", "<") } else { ("", ">") };
        let order = format!("created_at{turn}, uuid{turn}");
        return vec![Part { condition: after.as_ref().map(|place| beyond(place, than)), order }];
    };
    let order = match descending {
        false => format!("{column} NULLS FIRST, created_at, uuid"),
        true => format!("{column} DESC NULLS LAST, created_at, uuid"),
    };
    let part = |condition: Condition| Part { condition: Some(condition), order: order.clone() };
    // As the index has them: rows of one value are in its order, whichever way the values go.
    let ascending = |condition: Condition| Part {
        condition: Some(condition),
        order: format!("{column} NULLS FIRST, created_at, uuid"),
    };
    let of_value =
        |condition: Condition| Part { condition: Some(condition), order: "created_at, uuid".to_owned() };
    let null = || ascending(Condition::new(format!("{column} IS NULL"), []));
    let some = || part(Condition::new(format!("{column} IS NOT NULL"), []));
    // Within one value the order is that of creation, in both directions.
    let rest_of = |value: &Value, place: &Place| {
        let (same, beyond) = (Condition::equal(column, Some(value.clone())), beyond(place, ">"));
        let values = same.values.into_iter().chain(beyond.values);
        let both = Condition::new(format!("{} AND {}", same.sql, beyond.sql), values);
        if value.is_none() { ascending(both) } else { of_value(both) }
    };
    let smaller = |value: Value| part(Condition::new(format!("{column} < $"), [value]));
    let mut parts = match (descending, after) {
        (false, None) => vec![null(), some()],
        (false, Some(place)) if place.value.is_none() => return vec![rest_of(&place.value, place), some()],
        (false, Some(place)) => {
            let values =
                [place.value.clone(), Value::Number(Some(place.created_at)), Value::Uuid(Some(place.uuid))];
            return vec![part(Condition::new(format!("({column}, created_at, uuid) > ($, $, $)"), values))];
        }
        (true, Some(place)) if place.value.is_none() => return vec![rest_of(&place.value, place)],
        (true, Some(place)) => vec![rest_of(&place.value, place), smaller(place.value.clone()), null()],
        (true, None) => match largest {
            // Many rows may have it: they are read in the order of an index, and nothing is sorted.
            Some(value) => {
                vec![of_value(Condition::equal(column, Some(value.clone()))), smaller(value), null()]
            }
            None => vec![null()],
        },
    };
    parts.retain(|part| *may_be_null || *part != null());
    parts
}

/// Before or behind a place in the order of creation.
fn beyond(place: &Place, than: &str) -> Condition {
    let values = [Value::Number(Some(place.created_at)), Value::Uuid(Some(place.uuid))];
    Condition::new(format!("(created_at, uuid) {than} ($, $)"), values)
}
