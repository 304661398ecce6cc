//! Patches of nodes.

use super::{Case, case};
use serde_json::{Value, json};

/// Patches that are refused.
pub fn cases() -> Vec<Case> {
    let patch = |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    let mut cases = vec![
        case("PATCH", "/v1/nodes/n", json!({"op": "add"}), 400, "is not of type 'array'"),
        case("PATCH", "/v1/nodes/n", patch("add", "/extra", json!(5)), 400, "extra"),
        case("PATCH", "/v1/nodes/n", patch("add", "/maintenance", json!("maybe")), 400, "maintenance"),
        case(
            "PATCH",
            "/v1/nodes/n",
            patch("add", "/name", json!("bad name!")),
            400,
            "Node n: Cannot change name to invalid name 'bad name!'",
        ),
        case(
            "PATCH",
            "/v1/nodes/n",
            patch("replace", "/name", json!("other")),
            409,
            "A node with name other already exists.",
        ),
        case("PATCH", "/v1/nodes/n", patch("replace", "/driver", json!("nosuch")), 400, "driver nosuch"),
        case("PATCH", "/v1/nodes/n", patch("add", "/boot_interface", json!("nosuch")), 400, "nosuch"),
        case("PATCH", "/v1/nodes/n", patch("replace", "/properties/nosuch", json!(1)), 400, "nosuch"),
        case("PATCH", "/v1/nodes/n", json!([{"op": "remove", "path": "/extra/nosuch"}]), 400, "nosuch"),
        case("PATCH", "/v1/nodes/n", patch("add", "/retired_reason", json!("r")), 400, "retired_reason"),
        case("PATCH", "/v1/nodes/n", patch("add", "/protected", json!(true)), 409, "protected"),
        case(
            "PATCH",
            "/v1/nodes/n",
            patch("add", "/chassis_uuid", json!("7a6de1c0-0000-4000-8000-000000000000")),
            400,
            "Chassis 7a6de1c0",
        ),
        case(
            "PATCH",
            "/v1/nodes/n",
            patch("add", "/resource_class", json!("x".repeat(81))),
            400,
            "resource_class",
        ),
        case(
            "PATCH",
            "/v1/nodes/n?reset_interfaces=true",
            patch("add", "/extra/a", json!(1)),
            400,
            "reset_interfaces",
        ),
        case(
            "PATCH",
            "/v1/nodes/available",
            patch("add", "/retired", json!(true)),
            409,
            "can not have 'retired' set",
        ),
        case(
            "PATCH",
            "/v1/nodes/cleaning",
            patch("add", "/extra/a", json!(1)),
            409,
            "Node cleaning can not be updated while a state transition is in progress.",
        ),
    ];
    for field in [
        "uuid",
        "provision_state",
        "power_state",
        "last_error",
        "driver_internal_info",
        "created_at",
        "traits",
        "nosuch",
    ] {
        let says = format!("Cannot patch /{field}. Only the following");
        cases.push(case("PATCH", "/v1/nodes/n", patch("add", &format!("/{field}"), json!("x")), 400, says));
    }
    cases
}
