//! Endpoints of ports.

use crate::openapi::shape::Shape;
use crate::openapi::types::{self, reference};
use crate::page;
use crate::resources::ports::Port;
use crate::resources::resource::ResourceHandler;

/// What is known of a method and a path.
pub fn known((method, path): (&str, &str)) -> Option<Shape> {
    let list = || {
        let filters = Shape::new().filters(Port::SPEC.filters).filters(&[("detail", 43)]).query(&page::ARGS);
        filters.responds(200, types::page("ports", "Port"))
    };
    Some(match (method, path) {
        ("GET", "/v1/ports" | "/v1/nodes/{ident}/ports") => list().filters(&[("fields", 8)]),
        ("GET", "/v1/ports/detail" | "/v1/nodes/{ident}/ports/detail") => list(),
        ("POST", "/v1/ports") => Shape::new().body(reference("NewPort")).responds(201, reference("Port")),
        ("GET", "/v1/ports/{ident}") => {
            Shape::new().filters(&[("fields", 8)]).responds(200, reference("Port"))
        }
        ("PATCH", "/v1/ports/{ident}") => Shape::new().patch().responds(200, reference("Port")),
        ("DELETE", "/v1/ports/{ident}") => Shape::new().empty(204),
        _ => return None,
    })
}
