//! Endpoints that agents call: boot proof, lookup, heartbeat, inspection report. The agent token is the only authentication; answers
//! reveal nothing that the caller does not know already.

pub mod anneal;
pub mod boot_proof;
mod callback;
mod discovery;
mod foreign_boot;
pub mod heartbeat;
pub mod inspection;
pub mod lookup;
mod rate;
mod report;
mod report_body;
mod required_proof;

use crate::endpoint::{Endpoint, OPEN, rows};
use axum::Extension;
use axum::http::StatusCode;
pub use rate::Rates;
use report_body::ReportGate;
use std::sync::Arc;

/// Paths of these endpoints.
pub const PATHS: [&str; 6] = [
    "/v1/lookup",
    "/v1/heartbeat",
    "/v1/heartbeat/{ident}",
    "/v1/continue_inspection",
    "/v1/anneal/boot_proof",
    "/v1/anneal/boot_proof/answer",
];

/// Endpoints of agents.
pub fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = rows![
        GET "/v1/lookup" 22 OPEN, "the node that an agent runs on" => lookup::lookup;
        POST "/v1/heartbeat/{ident}" 22 OPEN, "heartbeat of an agent" => heartbeat::heartbeat;
        POST "/v1/heartbeat" 22 OPEN, "the same with the node in the body" => heartbeat::with_ident;
        POST "/v1/continue_inspection" 84 OPEN, "report of an inspection" => inspection::continue_inspection;
    ];
    // A HEAD would consume the token without delivering it.
    endpoints[0] = endpoints[0].clone().map(|handler| handler.head(async || StatusCode::METHOD_NOT_ALLOWED));
    let gate = Arc::new(ReportGate::default());
    endpoints[3] = endpoints[3].clone().map(|handler| handler.layer(Extension(gate)));
    let proofs = rows![
        POST "/v1/anneal/boot_proof" 1 OPEN, "what an agent's TPM has to answer" => boot_proof::start;
        POST "/v1/anneal/boot_proof/answer" 1 OPEN, "the proof of its boot" => boot_proof::answer;
    ];
    endpoints.extend(proofs.into_iter().map(Endpoint::own));
    endpoints
}
