//! Finding the rows of one page of a list through indexes, of nodes and of resources alike.
//!
//! A page is read from one of the ranges of an index that hold every row which matches: of two filters, from the smaller
//! range. Which is smaller is counted, up to a limit that grows until one range is below it, so counting costs what the
//! smaller range costs. Where all are large, as many rows in the order of the list are tried before more are counted: if most
//! rows match, they are the page.

use rusqlite::types::Value;
use rusqlite::{Connection, Result, params_from_iter};

/// Rows that are read in any case, without asking whether there is a better way.
pub const FEW: u64 = 1000;

/// A condition with its parameters.
#[derive(Debug, Clone)]
pub struct Condition {
    pub sql: String,
    pub params: Vec<Value>,
}

impl Condition {
    pub fn new(sql: impl Into<String>, params: impl IntoIterator<Item = Value>) -> Self {
        Self { sql: sql.into(), params: params.into_iter().collect() }
    }

    /// `column` has this value, or none.
    pub fn equal(column: &str, value: &Value) -> Self {
        match value {
            Value::Null => Self::new(format!("{column} IS NULL"), []),
            value => Self::new(format!("{column} = ?"), [value.clone()]),
        }
    }

    /// `column` has one of these values.
    pub fn one_of(column: &str, values: &[Value]) -> Self {
        let marks = vec!["?"; values.len()].join(", ");
        Self::new(format!("{column} IN ({marks})"), values.iter().cloned())
    }

    /// Both.
    pub fn and(&self, other: &Self) -> Self {
        let params = self.params.iter().chain(&other.params).cloned();
        Self::new(format!("{} AND {}", self.sql, other.sql), params)
    }

    /// All of them; true if there are none.
    pub fn all(terms: impl IntoIterator<Item = Self>) -> Self {
        let mut terms = terms.into_iter();
        let first = terms.next().unwrap_or_else(|| Self::new("1", []));
        terms.fold(first, |all, term| all.and(&term))
    }
}

/// A range of an index. The table with the rows has the alias `l`.
#[derive(Debug, Clone)]
pub struct Range {
    /// The index: `node_list l INDEXED BY node_list_owner`.
    pub index: String,
    /// How its rows lead to those of `l`, if it is not one of that table.
    pub join: String,
    /// The alias of the table of the index.
    pub alias: &'static str,
    /// What its rows have in common.
    pub condition: Condition,
    /// Whether they come in the order of lists: by `created_at`, then by `uuid`.
    pub ordered: bool,
}

/// The column that a list is sorted by, with an index of it that ends with the order of lists.
#[derive(Debug, Clone)]
pub struct Sort {
    pub column: String,
    pub range: Range,
}

/// The last row of the page before.
#[derive(Debug, Clone)]
pub struct Place {
    pub created_at: i64,
    pub uuid: String,
    /// Its value in the column of the sort.
    pub value: Value,
}

/// A list, and which of its rows are wanted.
pub struct List {
    /// All rows, in the order of lists.
    pub all: Range,
    /// Ranges each of which holds every row that matches.
    pub ranges: Vec<Range>,
    /// Whether a row of `l` matches.
    pub matches: Condition,
    pub sort: Option<Sort>,
    pub descending: bool,
    pub after: Option<Place>,
    /// Most rows.
    pub limit: usize,
}

/// UUIDs of the rows of a page, in its order.
pub fn find(connection: &Connection, list: &List) -> Result<Vec<String>> {
    Search { connection, list }.find()
}

struct Search<'a> {
    connection: &'a Connection,
    list: &'a List,
}

impl Search<'_> {
    fn find(&self) -> Result<Vec<String>> {
        if let Some(range) = self.smallest(FEW)? {
            return self.read(range);
        }
        if let Some(found) = self.walk(FEW)? {
            return Ok(found);
        }
        if self.list.ranges.is_empty() {
            return Ok(self.walk(u64::MAX)?.unwrap_or_default());
        }
        let mut most = FEW;
        loop {
            most = most.saturating_mul(4);
            if let Some(range) = self.smallest(most)? {
                return self.read(range);
            }
            // Some thousands of rows in a row may not match, where most of the others do.
            if let Some(found) = self.walk(most)? {
                return Ok(found);
            }
        }
    }

    /// The smallest range, if it has fewer than `most` rows.
    fn smallest(&self, most: u64) -> Result<Option<&Range>> {
        let mut smallest = (most, None);
        for range in &self.list.ranges {
            let Range { index, condition, .. } = range;
            let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {} LIMIT ?)", condition.sql);
            let limit = Value::Integer(i64::try_from(smallest.0).unwrap_or(i64::MAX));
            let params = params_from_iter(condition.params.iter().chain([&limit]));
            let count: i64 = self.connection.prepare_cached(&sql)?.query_row(params, |row| row.get(0))?;
            let count = count.unsigned_abs();
            if count < smallest.0 {
                smallest = (count, Some(range));
            }
        }
        Ok(smallest.1)
    }

    /// The page, from a range that holds all that match.
    fn read(&self, range: &Range) -> Result<Vec<String>> {
        if self.list.sort.is_some() || !range.ordered {
            return self.sorted(range);
        }
        let mut found = Vec::new();
        let (mut budget, after) = (u64::MAX, self.list.after.as_ref());
        self.visit_rows(range, None, after, self.list.descending, (&mut found, &mut budget))?;
        Ok(found)
    }

    /// The page, in the order of the list from one row to the next; none if that visits more than `budget` rows.
    fn walk(&self, mut budget: u64) -> Result<Option<Vec<String>>> {
        let List { sort, descending, after, limit, .. } = self.list;
        let mut found = Vec::new();
        let Some(sort) = sort else {
            let range = self.list.ranges.iter().find(|range| range.ordered).unwrap_or(&self.list.all);
            let all = self.visit_rows(range, None, after.as_ref(), *descending, (&mut found, &mut budget))?;
            return Ok(all.then_some(found));
        };
        // Rows of one value after the other; among them the order of lists.
        let mut value = match after {
            Some(place) => Some(place.value.clone()),
            None => self.next_value(sort, None)?,
        };
        let mut place = after.as_ref();
        while let Some(group) = value {
            let of_group = Condition::equal(&sort.column, &group);
            let out = (&mut found, &mut budget);
            if !self.visit_rows(&sort.range, Some(&of_group), place, false, out)? || budget == 0 {
                return Ok(None);
            }
            if found.len() >= *limit {
                break;
            }
            budget -= 1;
            place = None;
            value = self.next_value(sort, Some(&group))?;
        }
        Ok(Some(found))
    }

    /// The value that follows another one, or the first. Nulls are the smallest.
    fn next_value(&self, sort: &Sort, before: Option<&Value>) -> Result<Option<Value>> {
        let Sort { column, range } = sort;
        let descending = self.list.descending;
        let further = match (descending, before) {
            (false, None) => return Ok(Some(Value::Null)),
            (true, Some(Value::Null)) => return Ok(None),
            (false, Some(Value::Null)) | (true, None) => Condition::new(format!("{column} IS NOT NULL"), []),
            (false, Some(value)) => Condition::new(format!("{column} > ?"), [value.clone()]),
            (true, Some(value)) => Condition::new(format!("{column} < ?"), [value.clone()]),
        };
        let (condition, first) = (range.condition.and(&further), if descending { "max" } else { "min" });
        let sql = format!("SELECT {first}({column}) FROM {} WHERE {}", range.index, condition.sql);
        let found: Value = self
            .connection
            .prepare_cached(&sql)?
            .query_row(params_from_iter(&condition.params), |row| row.get(0))?;
        match found {
            Value::Null if descending => Ok(Some(Value::Null)),
            Value::Null => Ok(None),
            found => Ok(Some(found)),
        }
    }

    /// Go through the rows of a range in the order of lists until the page is full. False: the budget was used up before.
    fn visit_rows(
        &self,
        range: &Range,
        further: Option<&Condition>,
        after: Option<&Place>,
        descending: bool,
        (found, budget): (&mut Vec<String>, &mut u64),
    ) -> Result<bool> {
        let select = rows(&self.list.matches, range, further, after, descending);
        let mut statement = self.connection.prepare_cached(&select.sql)?;
        let mut rows = statement.query(params_from_iter(&select.params))?;
        while found.len() < self.list.limit
            && let Some(row) = rows.next()?
        {
            if *budget == 0 {
                return Ok(false);
            }
            *budget -= 1;
            if row.get::<_, Option<bool>>(1)? == Some(true) {
                found.push(row.get(0)?);
            }
        }
        Ok(true)
    }

    /// The page, by sorting all rows of a range that match.
    fn sorted(&self, range: &Range) -> Result<Vec<String>> {
        let Range { index, join, alias, condition, .. } = range;
        let List { matches, sort, descending, after, .. } = self.list;
        let mut wanted = condition.and(matches);
        if let Some(place) = after {
            wanted = wanted.and(&match sort {
                None => beyond(alias, place, *descending),
                Some(sort) => beyond_value(&sort.column, alias, place, *descending),
            });
        }
        let turn = if *descending { " DESC" } else { "" };
        let order = match sort {
            None => format!("{alias}.created_at{turn}, {alias}.uuid{turn}"),
            Some(sort) => format!("{}{turn}, {alias}.created_at, {alias}.uuid", sort.column),
        };
        let sql =
            format!("SELECT {alias}.uuid FROM {index}{join} WHERE {} ORDER BY {order} LIMIT ?", wanted.sql);
        wanted.params.push(Value::Integer(i64::try_from(self.list.limit).unwrap_or(i64::MAX)));
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_map(params_from_iter(&wanted.params), |row| row.get(0))?.collect()
    }
}

/// The statement that reads the rows of a range after a place, in the order of lists, and whether each matches.
fn rows(
    matches: &Condition,
    range: &Range,
    further: Option<&Condition>,
    after: Option<&Place>,
    descending: bool,
) -> Condition {
    let Range { index, join, alias, condition, .. } = range;
    let mut wanted = further.map_or_else(|| condition.clone(), |further| condition.and(further));
    if let Some(place) = after {
        wanted = wanted.and(&beyond(alias, place, descending));
    }
    let turn = if descending { " DESC" } else { "" };
    let sql = format!(
        "SELECT {alias}.uuid, {} FROM {index}{join} WHERE {} ORDER BY {alias}.created_at{turn}, {alias}.uuid{turn}",
        matches.sql, wanted.sql
    );
    Condition::new(sql, matches.params.iter().chain(&wanted.params).cloned())
}

/// How SQLite reads the rows of a range.
#[cfg(test)]
pub fn plan(connection: &Connection, list: &List, range: &Range) -> Vec<String> {
    let select = rows(&list.matches, range, None, list.after.as_ref(), list.descending);
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", select.sql)).unwrap();
    let plan = statement.query_map(params_from_iter(&select.params), |row| row.get(3)).unwrap();
    plan.collect::<Result<_>>().unwrap()
}

/// After this place in the order of lists.
fn beyond(alias: &str, place: &Place, descending: bool) -> Condition {
    let than = if descending { "<" } else { ">" };
    Condition::new(
        format!("({alias}.created_at, {alias}.uuid) {than} (?, ?)"),
        [Value::Integer(place.created_at), Value::Text(place.uuid.clone())],
    )
}

/// After this place in a list that is sorted by `column`.
fn beyond_value(column: &str, alias: &str, place: &Place, descending: bool) -> Condition {
    let later = Condition::equal(column, &place.value).and(&beyond(alias, place, false));
    let larger = match (&place.value, descending) {
        (Value::Null, true) => return later,
        (Value::Null, false) => Condition::new(format!("{column} IS NOT NULL"), []),
        (value, false) => Condition::new(format!("{column} > ?"), [value.clone()]),
        (value, true) => Condition::new(format!("({column} < ? OR {column} IS NULL)"), [value.clone()]),
    };
    let params = larger.params.into_iter().chain(later.params);
    Condition::new(format!("({} OR ({}))", larger.sql, later.sql), params)
}

/// The texts in the column of a range whose lower case is one of the `wanted`; it visits each text once.
pub fn texts(connection: &Connection, sort: &Sort, wanted: &[String]) -> Result<Vec<Value>> {
    let Sort { column, range } = sort;
    let next = |further: Condition| -> Result<Option<String>> {
        let condition = range.condition.and(&further);
        let sql = format!("SELECT min({column}) FROM {} WHERE {}", range.index, condition.sql);
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_row(params_from_iter(&condition.params), |row| row.get(0))
    };
    let mut found = Vec::new();
    let mut text = next(Condition::new(format!("{column} IS NOT NULL"), []))?;
    while let Some(known) = text {
        if wanted.contains(&known.to_lowercase()) {
            found.push(Value::Text(known.clone()));
        }
        text = next(Condition::new(format!("{column} > ?"), [Value::Text(known)]))?;
    }
    Ok(found)
}
