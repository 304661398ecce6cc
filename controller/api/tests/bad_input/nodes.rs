//! Nodes: lists, single ones, creation.

use super::{Case, case, get, with};
use serde_json::{Value, json};

/// Unknown nodes, fields and arguments.
pub fn reading() -> Vec<Case> {
    vec![
        get("/v1/nodes/nosuch", 404, "Node nosuch could not be found."),
        case("PATCH", "/v1/nodes/nosuch", json!([]), 404, "Node nosuch could not be found."),
        case("DELETE", "/v1/nodes/nosuch", json!(null), 404, "Node nosuch could not be found."),
        get("/v1/nodes/bad%20name!", 400, "bad name!"),
        get("/v1/nodes/n/history/7a6de1c0-0000-4000-8000-000000000000", 404, "7a6de1c0"),
        get("/v1/nodes?fields=nosuch", 400, "nosuch"),
        get("/v1/nodes/n?fields=uuid,nosuch", 400, "Field(s) \"nosuch\" are not valid"),
        get("/v1/nodes?nosuch=1", 400, "Unexpected arguments: nosuch"),
        get("/v1/nodes?limit=-1", 400, "Limit must be positive"),
        get("/v1/nodes?limit=x", 400, "Expected an integer for limit: x"),
        get("/v1/nodes?limit=1&limit=2", 400, "limit"),
        get("/v1/nodes?provision_state=nosuch", 400, "Provision state \"nosuch\" is not valid"),
        get("/v1/nodes?sort_key=extra", 400, "sort_key value extra"),
        get("/v1/nodes?sort_dir=up", 400, "Invalid sort direction: up"),
        get("/v1/nodes?marker=x", 400, "Expected UUID for marker: x"),
        get("/v1/nodes?maintenance=maybe", 400, "Invalid maintenance: Unrecognized value 'maybe'"),
        get("/v1/nodes?fault=nosuch", 400, "Unrecognized fault \"nosuch\""),
        get("/v1/nodes?detail=True&fields=uuid", 400, "Can not specify ?detail=True and fields"),
    ]
}

/// Nodes that cannot be made.
pub fn creating() -> Vec<Case> {
    let refused = |body, status, says| case("POST", "/v1/nodes", body, status, says);
    let bad = |fields: Value, says| refused(with(json!({"driver": "fake-hardware"}), fields), 400, says);
    vec![
        refused(json!({}), 400, "Schema error for node: 'driver' is a required property"),
        refused(json!([1]), 400, "[1] is not of type 'object'"),
        bad(
            json!({"driver": "nosuch"}),
            "No valid host was found. Reason: No conductor service registered which supports driver nosuch for \
             conductor group \"\". Ensure the driver is valid and enabled.",
        ),
        bad(
            json!({"bogus": 1}),
            "Schema error for node: Additional properties are not allowed ('bogus' was unexpected)",
        ),
        bad(json!({"name": "bad name!"}), "Cannot create node with invalid name 'bad name!'"),
        bad(json!({"name": "detail"}), "\"detail\" is reserved"),
        refused(json!({"driver": "fake-hardware", "name": "n"}), 409, "A node with name n already exists."),
        bad(
            json!({"deploy_interface": "nosuch"}),
            "Could not find the following interface in the 'ironic.hardware.interfaces.deploy' entrypoint: \
             nosuch. Valid interfaces are ['fake'].",
        ),
        bad(json!({"uuid": "x"}), "Expected UUID for uuid: x"),
        bad(json!({"extra": 5}), "extra"),
        bad(json!({"driver": 5}), "5 is not of type 'string'"),
        bad(json!({"retired_reason": "r"}), "retired_reason"),
        bad(json!({"provision_state": "active"}), "'provision_state'"),
    ]
}
