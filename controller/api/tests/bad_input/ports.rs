//! Ports.

use super::{Case, case};
use serde_json::json;

/// Ports that are not there or cannot be made.
pub fn cases() -> Vec<Case> {
    vec![
        case("GET", "/v1/ports/nosuch", json!(null), 404, "Port nosuch could not be found."),
        case("POST", "/v1/ports", json!({}), 400, "'address' is a required property"),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "52:54:00:aa:bb:09"}),
            400,
            "'node_uuid' is a required property",
        ),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "junk", "node_uuid": "7a6de1c0-0000-4000-8000-000000000000"}),
            400,
            "Expected valid MAC address for address: junk",
        ),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "52:54:00:aa:bb:09", "node_uuid": "7a6de1c0-0000-4000-8000-000000000000"}),
            400,
            "Node 7a6de1c0-0000-4000-8000-000000000000 could not be found.",
        ),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "52:54:00:AA:BB:01", "node_ident": "n"}),
            409,
            "A port with MAC address 52:54:00:aa:bb:01 already exists.",
        ),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "52:54:00:aa:bb:09", "node_ident": "n", "bogus": 1}),
            400,
            "'bogus' was unexpected",
        ),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "52:54:00:aa:bb:09", "node_ident": "n", "local_link_connection": {"x": "y"}}),
            400,
            "'x' was unexpected",
        ),
        case(
            "POST",
            "/v1/ports",
            json!({"address": "52:54:00:aa:bb:09", "node_ident": "n", "physical_network": ""}),
            400,
            "physical_network",
        ),
        case(
            "GET",
            "/v1/ports?address=junk",
            json!(null),
            400,
            "Expected valid MAC address for address: junk",
        ),
        case("GET", "/v1/ports?node=nosuch", json!(null), 404, "nosuch"),
        case("GET", "/v1/ports?fields=nosuch", json!(null), 400, "nosuch"),
    ]
}
