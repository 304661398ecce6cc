//! Patches of nodes.

use super::{Case, case};
use serde_json::{Value, json};

fn op(path: &'static str, op: &str, pointer: &str, value: Value, status: u16, says: &str) -> Case {
    case("PATCH", path, json!([{"op": op, "path": pointer, "value": value}]), status, says)
}

/// Patches that are refused.
pub fn cases() -> Vec<Case> {
    let add = |pointer: &str, value: Value, says: &str| op("/v1/nodes/n", "add", pointer, value, 400, says);
    let replace = |pointer: &str, value: Value, status, says: &str| {
        op("/v1/nodes/n", "replace", pointer, value, status, says)
    };
    let in_state = |path, pointer: &str, value: Value, says: &str| op(path, "add", pointer, value, 409, says);
    let mut cases = vec![
        case("PATCH", "/v1/nodes/n", json!({"op": "add"}), 400, "is not of type 'array'"),
        case("PATCH", "/v1/nodes/n", json!([{"op": "remove", "path": "/extra/nosuch"}]), 400, "nosuch"),
        add("/extra", json!(5), "extra"),
        add("/maintenance", json!("maybe"), "maintenance"),
        add("/name", json!("bad name!"), "Node n: Cannot change name to invalid name 'bad name!'"),
        add("/boot_interface", json!("nosuch"), "nosuch"),
        add("/retired_reason", json!("r"), "retired_reason"),
        add("/chassis_uuid", json!("7a6de1c0-0000-4000-8000-000000000000"), "Chassis 7a6de1c0"),
        add("/resource_class", json!("x".repeat(81)), "resource_class"),
        replace("/name", json!("other"), 409, "A node with name other already exists."),
        replace("/driver", json!("nosuch"), 400, "driver nosuch"),
        replace("/properties/nosuch", json!(1), 400, "nosuch"),
        op("/v1/nodes/n?reset_interfaces=true", "add", "/extra/a", json!(1), 400, "reset_interfaces"),
        in_state("/v1/nodes/n", "/protected", json!(true), "protected"),
        in_state("/v1/nodes/available", "/retired", json!(true), "can not have 'retired' set"),
        in_state(
            "/v1/nodes/cleaning",
            "/extra/a",
            json!(1),
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
        cases.push(add(&format!("/{field}"), json!("x"), &says));
    }
    cases
}
