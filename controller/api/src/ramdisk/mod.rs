//! What agents call: lookup, heartbeat, and what an inspection found. No authentication but the agent token; nothing is told to a
//! caller who does not know it already.

pub mod anneal;
pub mod heartbeat;
pub mod inspection;
pub mod lookup;

use crate::endpoint::{Endpoint, OPEN, rows};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;

/// What is served to agents.
pub fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = rows![
        GET "/v1/lookup" 22 OPEN, "which node am I" => lookup::lookup;
        POST "/v1/heartbeat/{ident}" 22 OPEN, "I am alive" => heartbeat::heartbeat;
        POST "/v1/continue_inspection" 84 OPEN, "what an inspection found" => inspection::continue_inspection;
    ];
    // A HEAD would give the token away to nobody.
    endpoints[0] = endpoints[0].clone().map(|handler| handler.head(async || StatusCode::METHOD_NOT_ALLOWED));
    endpoints[2] =
        endpoints[2].clone().map(|handler| handler.layer(DefaultBodyLimit::max(inspection::BODY_LIMIT)));
    endpoints
}
