//! Requests and answers of endpoints, one file a group of resources. Fields, filters and words come from the tables that
//! the handlers read; what a handler reads without a table is listed here, and the fuzzer finds what is wrong.

mod agents;
mod discovery;
mod events;
mod nodes;
mod others;
mod ports;
mod web_page;
mod why;

use super::shape::{JSON, Shape};
use crate::endpoint::Endpoint;
use crate::page;
use axum::http::Method;
use serde_json::json;

/// The shape that a table here gives, or else what the row implies: a PATCH takes a JSON patch, a POST or PUT an object; a
/// list (a path that can also be POSTed to, right below a version or `volume`) is paged.
pub fn of(endpoint: &Endpoint, all: &[Endpoint]) -> Shape {
    known(endpoint).unwrap_or_else(|| guessed(endpoint, all))
}

fn guessed(endpoint: &Endpoint, all: &[Endpoint]) -> Shape {
    let any = Shape { answers: vec![("2XX".to_owned(), Some((JSON, json!({}))))], ..Shape::default() };
    match endpoint.method {
        Method::PATCH => any.patch(),
        Method::POST | Method::PUT => Shape { body: Some((JSON, json!({"type": "object"}), false)), ..any },
        Method::GET if is_list(endpoint, all) => any.query(&page::ARGS).query(&["detail", "fields"]),
        _ => any,
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

fn known(endpoint: &Endpoint) -> Option<Shape> {
    let row = (endpoint.method.as_str(), endpoint.path);
    nodes::known(row)
        .or_else(|| ports::known(row))
        .or_else(|| others::known(row))
        .or_else(|| agents::known(row))
        .or_else(|| discovery::known(row))
        .or_else(|| web_page::known(row))
}
