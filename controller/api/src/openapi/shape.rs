//! What goes into an endpoint and what comes out.

use super::{shapes, types};
use crate::endpoint::Endpoint;
use crate::page;
use axum::http::Method;
use serde_json::{Value, json};

/// JSON's media type.
pub const JSON: &str = "application/json";

/// What goes into an endpoint and what comes out.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Arguments of the query, with the minor version since which they exist.
    pub query: Vec<(&'static str, u16)>,
    /// Media type and schema of the body, and whether it must be there.
    pub body: Option<(&'static str, Value, bool)>,
    /// Statuses (`2XX` for all of them) with media type and schema of the body, if there is one.
    pub answers: Vec<(String, Option<(&'static str, Value)>)>,
}

impl Shape {
    /// What is known of an endpoint, or else what its row says: a PATCH takes a JSON patch, a POST or PUT an object; a
    /// list (what can also be POSTed to, right below a version or `volume`) is paged.
    pub fn of(endpoint: &Endpoint, all: &[Endpoint]) -> Self {
        shapes::known(endpoint).unwrap_or_else(|| Self::guessed(endpoint, all))
    }

    fn guessed(endpoint: &Endpoint, all: &[Endpoint]) -> Self {
        let any = Self { answers: vec![("2XX".to_owned(), Some((JSON, json!({}))))], ..Self::default() };
        match endpoint.method {
            Method::PATCH => any.patch(),
            Method::POST | Method::PUT => {
                Self { body: Some((JSON, json!({"type": "object"}), false)), ..any }
            }
            Method::GET if is_list(endpoint, all) => any.query(&page::ARGS).query(&["detail", "fields"]),
            _ => any,
        }
    }

    /// Nothing in, nothing out.
    pub fn new() -> Self {
        Self::default()
    }

    /// Arguments that every version has.
    pub fn query(self, names: &[&'static str]) -> Self {
        self.filters(&names.iter().map(|name| (*name, 1)).collect::<Vec<_>>())
    }

    /// Arguments with the minor version since which they exist.
    pub fn filters(mut self, filters: &[(&'static str, u16)]) -> Self {
        self.query.extend(filters);
        self
    }

    /// A JSON body that must be there.
    pub fn body(self, schema: Value) -> Self {
        Self { body: Some((JSON, schema, true)), ..self }
    }

    /// A JSON body that may be left out.
    pub fn optional_body(self, schema: Value) -> Self {
        Self { body: Some((JSON, schema, false)), ..self }
    }

    /// A JSON patch as the body.
    pub fn patch(self) -> Self {
        self.body(types::reference("Patch"))
    }

    /// A status with a JSON body.
    pub fn tells(mut self, status: u16, schema: Value) -> Self {
        self.answers.push((status.to_string(), Some((JSON, schema))));
        self
    }

    /// A status without a body.
    pub fn empty(mut self, status: u16) -> Self {
        self.answers.push((status.to_string(), None));
        self
    }
}

fn is_list(endpoint: &Endpoint, all: &[Endpoint]) -> bool {
    let path = endpoint.path;
    let flat = path
        .strip_prefix("/v1/volume/")
        .or(path.strip_prefix("/v1/"))
        .is_some_and(|rest| !rest.contains('/'));
    flat && all.iter().any(|other| other.path == path && other.method == Method::POST)
}
