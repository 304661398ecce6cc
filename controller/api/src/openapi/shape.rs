//! What goes into an endpoint and what comes out.

use super::types;
use serde_json::Value;

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
    pub fn responds(mut self, status: u16, schema: Value) -> Self {
        self.answers.push((status.to_string(), Some((JSON, schema))));
        self
    }

    /// A status without a body.
    pub fn empty(mut self, status: u16) -> Self {
        self.answers.push((status.to_string(), None));
        self
    }
}
