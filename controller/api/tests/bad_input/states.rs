//! What is asked of a node: verbs, power, boot device, maintenance.

use super::{Case, case};
use serde_json::{Value, json};

/// Verbs that are none, cannot be now, or come with wrong arguments.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
pub fn verbs() -> Vec<Case> {
    let provision = "/v1/nodes/n/states/provision";
    let clean = |step: Value| json!({"target": "clean", "clean_steps": [step]});
    vec![
        case("PUT", provision, json!({}), 400, "Missing mandatory parameter: target"),
        case("PUT", provision, json!({"target": 5}), 400, "Expected string for target: 5"),
        case(
            "PUT",
            provision,
            json!({"target": "nonsense"}),
            400,
            "The requested action \"nonsense\" can not be performed",
        ),
        // In states in which other verbs are allowed.
        case("PUT", "/v1/nodes/other/states/provision", json!({"target": "nonsense"}), 400, "\"nonsense\""),
        case(
            "PUT",
            "/v1/nodes/available/states/provision",
            json!({"target": "nonsense"}),
            400,
            "\"nonsense\"",
        ),
        case(
            "PUT",
            "/v1/nodes/cleaning/states/provision",
            json!({"target": "nonsense"}),
            400,
            "\"nonsense\"",
        ),
        case("PUT", provision, json!({"target": "done"}), 400, "\"done\""),
        case(
            "PUT",
            provision,
            json!({"target": "provide", "nosuch": 1}),
            400,
            "Unexpected arguments: nosuch",
        ),
        case(
            "PUT",
            provision,
            json!({"target": "clean"}),
            400,
            "\"clean_steps\" is required when setting target provision state to clean",
        ),
        case(
            "PUT",
            provision,
            json!({"target": "clean", "clean_steps": []}),
            400,
            "\"clean_steps\" is required",
        ),
        case(
            "PUT",
            provision,
            json!({"target": "clean", "clean_steps": "x"}),
            400,
            "Expected types <class 'NoneType'>, <class 'list'> for clean_steps: 'x'",
        ),
        case(
            "PUT",
            provision,
            clean(json!({"interface": "deploy"})),
            400,
            "Invalid clean_steps: 'step' is a required property",
        ),
        case(
            "PUT",
            provision,
            clean(json!({"step": "x"})),
            400,
            "Invalid clean_steps: 'interface' is a required property",
        ),
        case("PUT", provision, clean(json!("x")), 400, "Invalid clean_steps: 'x' is not of type 'object'"),
        case(
            "PUT",
            provision,
            clean(json!({"interface": "nosuch", "step": "x"})),
            400,
            "'nosuch' is not one of ['vendor'",
        ),
        case(
            "PUT",
            provision,
            clean(json!({"interface": "deploy", "step": ""})),
            400,
            "'' should be non-empty",
        ),
        case(
            "PUT",
            provision,
            clean(json!({"interface": "deploy", "step": "x", "bogus": 1})),
            400,
            "('bogus' was unexpected)",
        ),
        case(
            "PUT",
            provision,
            clean(json!({"interface": "deploy", "step": "x", "args": []})),
            400,
            "[] is not of type 'object'",
        ),
        case(
            "PUT",
            provision,
            clean(json!({"interface": "deploy", "step": "x", "execute_on_child_nodes": true})),
            400,
            "execute_on_child_nodes",
        ),
        case(
            "PUT",
            provision,
            json!({"target": "provide", "clean_steps": [{"interface": "deploy", "step": "x"}]}),
            400,
            "\"clean_steps\" is only valid when setting target provision state to clean",
        ),
        case("PUT", provision, json!({"target": "provide", "disable_ramdisk": true}), 400, "disable_ramdisk"),
        case("PUT", provision, json!({"target": "adopting"}), 400, "adopting"),
        case("PUT", provision, json!({"target": "available"}), 400, "available"),
        case("PUT", provision, json!({"target": "provide", "reason": "r"}), 400, "\"reason\""),
        case("PUT", provision, json!({"target": "provide", "rescue_password": "p"}), 400, "rescue_password"),
        case(
            "PUT",
            "/v1/nodes/retired/states/provision",
            json!({"target": "provide"}),
            409,
            "because it is retired.",
        ),
        case("PUT", "/v1/nodes/nosuch/states/provision", json!({"target": "provide"}), 404, "nosuch"),
    ]
}

/// Power, boot device and maintenance.
pub fn others() -> Vec<Case> {
    vec![
        case(
            "PUT",
            "/v1/nodes/n/states/power",
            json!({"target": "nonsense"}),
            400,
            "The requested action \"nonsense\" can not be performed on node \"n\" while it is in state \"None\".",
        ),
        case("PUT", "/v1/nodes/n/states/power", json!({"target": "power on", "timeout": 0}), 400, "timeout"),
        case(
            "PUT",
            "/v1/nodes/n/states/power",
            json!({"target": "power on", "timeout": "x"}),
            400,
            "timeout",
        ),
        case(
            "PUT",
            "/v1/nodes/cleaning/states/power",
            json!({"target": "power off"}),
            400,
            "while it is in state \"cleaning\"",
        ),
        case("PUT", "/v1/nodes/n/management/boot_device", json!({"boot_device": "tape"}), 400, "tape"),
        case("PUT", "/v1/nodes/n/management/boot_device", json!({"boot_device": 5}), 400, "boot_device"),
        case(
            "PUT",
            "/v1/nodes/cleaning/management/boot_device",
            json!({"boot_device": "pxe"}),
            409,
            "cleaning",
        ),
        case("PUT", "/v1/nodes/n/maintenance", json!({"reason": {}}), 400, "reason"),
    ]
}
