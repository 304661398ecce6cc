//! Nodes: lists, single ones, creation.

use super::{Case, case};
use serde_json::json;

/// Unknown nodes, fields and arguments.
pub fn reading() -> Vec<Case> {
    vec![
        case("GET", "/v1/nodes/nosuch", json!(null), 404, "Node nosuch could not be found."),
        case("PATCH", "/v1/nodes/nosuch", json!([]), 404, "Node nosuch could not be found."),
        case("DELETE", "/v1/nodes/nosuch", json!(null), 404, "Node nosuch could not be found."),
        case("GET", "/v1/nodes/bad%20name!", json!(null), 400, "bad name!"),
        case("GET", "/v1/nodes/n/history/7a6de1c0-0000-4000-8000-000000000000", json!(null), 404, "7a6de1c0"),
        case("GET", "/v1/nodes?fields=nosuch", json!(null), 400, "nosuch"),
        case("GET", "/v1/nodes/n?fields=uuid,nosuch", json!(null), 400, "Field(s) \"nosuch\" are not valid"),
        case("GET", "/v1/nodes?nosuch=1", json!(null), 400, "Unexpected arguments: nosuch"),
        case("GET", "/v1/nodes?limit=-1", json!(null), 400, "Limit must be positive"),
        case("GET", "/v1/nodes?limit=x", json!(null), 400, "Expected an integer for limit: x"),
        case("GET", "/v1/nodes?limit=1&limit=2", json!(null), 400, "limit"),
        case(
            "GET",
            "/v1/nodes?provision_state=nosuch",
            json!(null),
            400,
            "Provision state \"nosuch\" is not valid",
        ),
        case("GET", "/v1/nodes?sort_key=extra", json!(null), 400, "sort_key value extra"),
        case("GET", "/v1/nodes?sort_dir=up", json!(null), 400, "Invalid sort direction: up"),
        case("GET", "/v1/nodes?marker=x", json!(null), 400, "Expected UUID for marker: x"),
        case(
            "GET",
            "/v1/nodes?maintenance=maybe",
            json!(null),
            400,
            "Invalid maintenance: Unrecognized value 'maybe'",
        ),
        case("GET", "/v1/nodes?fault=nosuch", json!(null), 400, "Unrecognized fault \"nosuch\""),
        case(
            "GET",
            "/v1/nodes?detail=True&fields=uuid",
            json!(null),
            400,
            "Can not specify ?detail=True and fields",
        ),
    ]
}

/// Nodes that cannot be made.
pub fn creating() -> Vec<Case> {
    vec![
        case("POST", "/v1/nodes", json!({}), 400, "Schema error for node: 'driver' is a required property"),
        case("POST", "/v1/nodes", json!([1]), 400, "[1] is not of type 'object'"),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "nosuch"}),
            400,
            "No valid host was found. Reason: No conductor service registered which supports driver nosuch for \
             conductor group \"\". Ensure the driver is valid and enabled.",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "bogus": 1}),
            400,
            "Schema error for node: Additional properties are not allowed ('bogus' was unexpected)",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "name": "bad name!"}),
            400,
            "Cannot create node with invalid name 'bad name!'",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "name": "detail"}),
            400,
            "\"detail\" is reserved",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "name": "n"}),
            409,
            "A node with name n already exists.",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "deploy_interface": "nosuch"}),
            400,
            "Could not find the following interface in the 'ironic.hardware.interfaces.deploy' entrypoint: \
             nosuch. Valid interfaces are ['fake'].",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "uuid": "x"}),
            400,
            "Expected UUID for uuid: x",
        ),
        case("POST", "/v1/nodes", json!({"driver": "fake-hardware", "extra": 5}), 400, "extra"),
        case("POST", "/v1/nodes", json!({"driver": 5}), 400, "5 is not of type 'string'"),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "retired_reason": "r"}),
            400,
            "retired_reason",
        ),
        case(
            "POST",
            "/v1/nodes",
            json!({"driver": "fake-hardware", "provision_state": "active"}),
            400,
            "'provision_state'",
        ),
    ]
}
