//! `anneal chassis …`

use crate::collection::{Collection, EXTRA, Kind, Resource, column, field};

/// Chassis.
#[derive(Debug)]
pub struct Chassis;

impl Resource for Chassis {
    const COLLECTION: &'static Collection = &Collection {
        path: &["chassis"],
        list: "chassis",
        one: "chassis",
        many: "chassis",
        ident: ("CHASSIS", "UUID"),
        has_address: false,
        creates: "Make a chassis, which nodes can name",
        query: Some(("detail", "true")),
        columns: &[column("UUID", "uuid"), column("DESCRIPTION", "description")],
        filters: &[],
        fields: &[field("description", "description", Kind::Text, "What it is"), EXTRA],
    };
}
