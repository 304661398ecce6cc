//! `anneal port …`

use crate::collection::{Collection, EXTRA, Kind, Resource, column, field};

/// Ports.
#[derive(Debug)]
pub struct Port;

impl Resource for Port {
    const COLLECTION: &'static Collection = &Collection {
        path: &["ports"],
        list: "ports",
        one: "port",
        many: "ports of one node or of all",
        ident: ("PORT", "UUID or MAC address"),
        has_address: true,
        creates: "Make a port, so that the agent of the node is found by its MAC address",
        query: Some(("fields", "uuid,address,node_uuid,pxe_enabled")),
        columns: &[
            column("UUID", "uuid"),
            column("ADDRESS", "address"),
            column("NODE", "node_uuid"),
            column("PXE", "pxe_enabled"),
        ],
        filters: &[
            ("node", "node", "Only those of this node: name or UUID"),
            ("port-group", "portgroup", "Only those of this port group: name or UUID"),
            ("shard", "shard", "Only those of nodes in this shard"),
        ],
        fields: &[
            field("address", "mac", Kind::Address, "MAC address").first(),
            field("node_uuid", "node", Kind::Reference("nodes"), "Node it belongs to").required(),
            field("name", "name", Kind::Text, "Name"),
            field("pxe_enabled", "pxe-enabled", Kind::Boolean, "Whether the node boots by it"),
            field("portgroup_uuid", "port-group", Kind::Reference("portgroups"), "Port group it is part of"),
            field("physical_network", "physical-network", Kind::Text, "Network it is plugged into"),
            field(
                "local_link_connection",
                "local-link",
                Kind::TextObject,
                "The switch's port: port_id, switch_id, switch_info; may be repeated",
            ),
            field("is_smartnic", "smart-nic", Kind::Boolean, "Whether it is a Smart NIC"),
            field("description", "description", Kind::Text, "What it is for"),
            field("vendor", "vendor", Kind::Text, "Vendor of the NIC"),
            field("category", "category", Kind::Text, "What schedulers of networks know it by"),
            field(
                "available_for_dynamic_portgroup",
                "dynamic-port-group",
                Kind::Boolean,
                "Whether it may become part of a port group that is made by itself",
            ),
            EXTRA,
        ],
    };
}
