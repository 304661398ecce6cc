//! Paging and sorting of lists.

use crate::args::Args;
use crate::error::ApiError;
use crate::links::{Links, encode};
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt::Display;
use uuid::Uuid;

/// What the client asked for.
#[derive(Debug, Clone)]
pub struct Page {
    /// Most items.
    pub limit: usize,
    marker: Option<Uuid>,
    /// `id` (order of creation) or the name of a field.
    pub sort_key: String,
    /// Whether the largest comes first.
    pub descending: bool,
}

/// Arguments that every list takes.
pub const ARGS: [&str; 4] = ["limit", "marker", "sort_key", "sort_dir"];

impl Page {
    /// From a query.
    pub fn from_args(args: &Args, max_limit: usize) -> Result<Self, ApiError> {
        let limit = match args.integer("limit")? {
            None => max_limit,
            Some(limit) => match usize::try_from(limit) {
                Ok(limit) if limit > 0 => limit.min(max_limit),
                _ => return Err(ApiError::invalid("Limit must be positive")),
            },
        };
        let descending = match args.text("sort_dir") {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(other) => {
                return Err(ApiError::invalid(format!(
                    "Invalid sort direction: {other}. Acceptable values are 'asc' or 'desc'"
                )));
            }
        };
        let sort_key = args.text("sort_key").unwrap_or("id").to_owned();
        Ok(Self { limit, marker: args.uuid("marker")?, sort_key, descending })
    }

    /// 400 for a key that lists cannot be sorted by, be it `known` or not (Ironic quotes those that it does
    /// not know).
    pub fn bad_key(&self, known: bool) -> ApiError {
        let quote = if known { "" } else { "\"" };
        let key = &self.sort_key;
        ApiError::invalid(format!("The sort_key value {quote}{key}{quote} is an invalid field for sorting"))
    }

    /// The UUID of the last item of the page before.
    pub fn marker(&self) -> Option<Uuid> {
        self.marker
    }

    /// Sort, drop up to the marker, cut at the limit; true when there may be more. `key` gives the value
    /// sorted by, null for `id`: the sort is stable, so the order of the store remains.
    pub fn cut<T>(
        &self,
        mut items: Vec<T>,
        uuid: impl Fn(&T) -> Uuid,
        key: impl Fn(&T) -> Value,
    ) -> (Vec<T>, bool) {
        if self.sort_key == "id" {
            if self.descending {
                items.reverse();
            }
        } else {
            items.sort_by(|a, b| self.order(&key(a), &key(b)));
        }
        if let Some(marker) = self.marker
            && let Some(at) = items.iter().position(|item| uuid(item) == marker)
        {
            items.drain(..=at);
        }
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        (items, more)
    }

    /// Which of two values of the sort key comes first.
    pub fn order(&self, one: &Value, other: &Value) -> Ordering {
        let order = compare(one, other);
        if self.descending { order.reverse() } else { order }
    }

    /// The URL of the page after the one that ends with `last`; keeps every other argument.
    pub fn next(&self, links: &Links, path: &str, args: &Args, last: impl Display) -> String {
        let mut query = String::new();
        for (name, value) in args.pairs().iter().filter(|(name, _)| name != "limit" && name != "marker") {
            query.push_str(&format!("{}={}&", encode(name), encode(value)));
        }
        links.v1(&format!("{path}?{query}limit={}&marker={}", self.limit, encode(&last.to_string())))
    }
}

/// Nulls first, then by type, as databases do.
fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}
