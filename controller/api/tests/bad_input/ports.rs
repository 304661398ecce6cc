//! Ports.

use super::{Case, case, get, with};
use serde_json::{Value, json};

/// No node has it.
const ABSENT: &str = "7a6de1c0-0000-4000-8000-000000000000";

/// Ports that are not there or cannot be made.
pub fn cases() -> Vec<Case> {
    let refused = |body, status, says| case("POST", "/v1/ports", body, status, says);
    let of_node = |fields: Value, status, says| {
        refused(with(json!({"address": "52:54:00:aa:bb:09", "node_ident": "n"}), fields), status, says)
    };
    vec![
        get("/v1/ports/nosuch", 404, "Port nosuch could not be found."),
        refused(json!({}), 400, "'address' is a required property"),
        refused(json!({"address": "52:54:00:aa:bb:09"}), 400, "'node_uuid' is a required property"),
        refused(
            json!({"address": "junk", "node_uuid": ABSENT}),
            400,
            "Expected valid MAC address for address: junk",
        ),
        refused(
            json!({"address": "52:54:00:aa:bb:09", "node_uuid": ABSENT}),
            400,
            "Node 7a6de1c0-0000-4000-8000-000000000000 could not be found.",
        ),
        of_node(
            json!({"address": "52:54:00:AA:BB:01"}),
            409,
            "A port with MAC address 52:54:00:aa:bb:01 already exists.",
        ),
        of_node(json!({"bogus": 1}), 400, "'bogus' was unexpected"),
        of_node(json!({"local_link_connection": {"x": "y"}}), 400, "'x' was unexpected"),
        of_node(json!({"physical_network": ""}), 400, "physical_network"),
        get("/v1/ports?address=junk", 400, "Expected valid MAC address for address: junk"),
        get("/v1/ports?node=nosuch", 404, "nosuch"),
        get("/v1/ports?fields=nosuch", 400, "nosuch"),
    ]
}
