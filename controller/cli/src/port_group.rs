//! `anneal port-group …`

use crate::collection::{Collection, EXTRA, Kind, Resource, column, field};

/// Port groups.
#[derive(Debug)]
pub struct PortGroup;

impl Resource for PortGroup {
    const COLLECTION: &'static Collection = &Collection {
        path: &["portgroups"],
        list: "portgroups",
        one: "port group",
        many: "port groups of one node or of all",
        ident: ("GROUP", "Name, UUID or MAC address"),
        has_address: true,
        creates: "Make a port group, into which ports of one node are put",
        query: Some(("fields", "uuid,name,address,node_uuid,mode,physical_network")),
        columns: &[
            column("UUID", "uuid"),
            column("NAME", "name"),
            column("ADDRESS", "address"),
            column("NODE", "node_uuid"),
            column("MODE", "mode"),
            column("NETWORK", "physical_network"),
        ],
        filters: &[
            ("node", "node", "Only those of this node: name or UUID"),
            ("shard", "shard", "Only those of nodes in this shard"),
        ],
        fields: &[
            field("node_uuid", "node", Kind::Reference("nodes"), "Node it belongs to").required(),
            field("name", "name", Kind::Text, "Name"),
            field("address", "mac", Kind::Address, "MAC address"),
            field("mode", "mode", Kind::Text, "How it is bonded: active-backup, 802.3ad …"),
            field("properties", "property", Kind::Object, "Settings of the bond; may be repeated"),
            field(
                "standalone_ports_supported",
                "standalone-ports",
                Kind::Boolean,
                "Whether its ports may be used one by one, too: those that the node boots by",
            ),
            field(
                "physical_network",
                "physical-network",
                Kind::Text,
                "Network that all its ports are plugged into",
            ),
            field("category", "category", Kind::Text, "What schedulers of networks know it by"),
            EXTRA,
        ],
    };
}
