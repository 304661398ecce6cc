//! Endpoints of ports.

use crate::openapi::shape::Shape;
use crate::openapi::types::{self, reference};
use crate::page;
use crate::ports::FILTERS;

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let detailed: Vec<_> = FILTERS.iter().copied().filter(|(name, _)| *name != "fields").collect();
    let list = |filters: &[(&'static str, u16)]| {
        Shape::new().filters(filters).query(&page::ARGS).responds(200, types::page("ports", "Port"))
    };
    Some(match (method, path) {
        ("GET", "/v1/ports" | "/v1/nodes/{ident}/ports") => list(&FILTERS),
        ("GET", "/v1/ports/detail" | "/v1/nodes/{ident}/ports/detail") => list(&detailed),
        ("POST", "/v1/ports") => Shape::new().body(reference("NewPort")).responds(201, reference("Port")),
        ("GET", "/v1/ports/{ident}") => {
            Shape::new().filters(&[("fields", 8)]).responds(200, reference("Port"))
        }
        ("PATCH", "/v1/ports/{ident}") => Shape::new().patch().responds(200, reference("Port")),
        ("DELETE", "/v1/ports/{ident}") => Shape::new().empty(204),
        _ => return None,
    })
}
