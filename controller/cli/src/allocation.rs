//! `anneal allocation …`

use crate::collection::{Collection, EXTRA, Kind, Resource, column, field};

/// Allocations.
#[derive(Debug)]
pub struct Allocation;

impl Resource for Allocation {
    const COLLECTION: &'static Collection = &Collection {
        path: &["allocations"],
        list: "allocations",
        one: "allocation",
        many: "allocations",
        ident: ("ALLOCATION", "Name or UUID"),
        has_address: false,
        creates: "Ask for an available node; `show` says which one it is, or why there is none",
        query: None,
        columns: &[
            column("UUID", "uuid"),
            column("NAME", "name"),
            column("STATE", "state"),
            column("NODE", "node_uuid"),
            column("CLASS", "resource_class"),
            column("OWNER", "owner"),
            column("ERROR", "last_error"),
        ],
        filters: &[
            ("node", "node", "Only that of this node: name or UUID"),
            ("resource-class", "resource_class", "Only those that ask for this scheduling class"),
            ("state", "state", "Only those in this state: allocating, active, error"),
            ("owner", "owner", "Only those of this project"),
        ],
        fields: &[
            field("resource_class", "resource-class", Kind::Text, "Scheduling class that the node must have")
                .at_creation(),
            field("name", "name", Kind::Text, "Name, unique"),
            field("traits", "trait", Kind::Texts, "A trait that the node must have; may be repeated")
                .at_creation(),
            field(
                "candidate_nodes",
                "candidate-node",
                Kind::Texts,
                "A node that may be given, name or UUID; may be repeated; any when not given",
            )
            .at_creation(),
            field(
                "node",
                "node",
                Kind::Text,
                "The node, name or UUID, that is deployed already without an allocation",
            )
            .at_creation(),
            field("owner", "owner", Kind::Text, "Project whose allocation it is").at_creation(),
            EXTRA,
        ],
    };
}
