//! What is asked of a node: verbs, power, boot device, maintenance.

use super::{Case, case, with};
use serde_json::{Value, json};

/// Verbs that are none, cannot be now, or come with wrong arguments.
pub fn verbs() -> Vec<Case> {
    let bad = |body, says| case("PUT", "/v1/nodes/n/states/provision", body, 400, says);
    let target = |target: &str, says| bad(json!({"target": target}), says);
    let provide = |more, says| bad(with(json!({"target": "provide"}), more), says);
    let steps = |steps: Value, says| bad(json!({"target": "clean", "clean_steps": steps}), says);
    let step = |more, says| steps(json!([with(json!({"interface": "deploy", "step": "x"}), more)]), says);
    vec![
        bad(json!({}), "Missing mandatory parameter: target"),
        bad(json!({"target": 5}), "Expected string for target: 5"),
        target("nonsense", "The requested action \"nonsense\" can not be performed"),
        // In states in which other verbs are allowed.
        elsewhere("/v1/nodes/other/states/provision", "nonsense", 400, "\"nonsense\""),
        elsewhere("/v1/nodes/available/states/provision", "nonsense", 400, "\"nonsense\""),
        elsewhere("/v1/nodes/cleaning/states/provision", "nonsense", 400, "\"nonsense\""),
        elsewhere("/v1/nodes/retired/states/provision", "provide", 409, "because it is retired."),
        elsewhere("/v1/nodes/nosuch/states/provision", "provide", 404, "nosuch"),
        target("done", "\"done\""),
        target("adopting", "adopting"),
        target("available", "available"),
        target("clean", "\"clean_steps\" is required when setting target provision state to clean"),
        provide(json!({"nosuch": 1}), "Unexpected arguments: nosuch"),
        provide(
            json!({"clean_steps": [{"interface": "deploy", "step": "x"}]}),
            "\"clean_steps\" is only valid when setting target provision state to clean",
        ),
        provide(json!({"disable_ramdisk": true}), "disable_ramdisk"),
        provide(json!({"reason": "r"}), "\"reason\""),
        provide(json!({"rescue_password": "p"}), "rescue_password"),
        steps(json!([]), "\"clean_steps\" is required"),
        steps(json!("x"), "Expected types <class 'NoneType'>, <class 'list'> for clean_steps: 'x'"),
        steps(json!([{"interface": "deploy"}]), "Invalid clean_steps: 'step' is a required property"),
        steps(json!([{"step": "x"}]), "Invalid clean_steps: 'interface' is a required property"),
        steps(json!(["x"]), "Invalid clean_steps: 'x' is not of type 'object'"),
        step(json!({"interface": "nosuch"}), "'nosuch' is not one of ['vendor'"),
        step(json!({"step": ""}), "'' should be non-empty"),
        step(json!({"bogus": 1}), "('bogus' was unexpected)"),
        step(json!({"args": []}), "[] is not of type 'object'"),
        step(json!({"execute_on_child_nodes": true}), "execute_on_child_nodes"),
    ]
}

fn elsewhere(path: &'static str, target: &str, status: u16, says: &str) -> Case {
    case("PUT", path, json!({"target": target}), status, says)
}

/// Power, boot device and maintenance.
pub fn others() -> Vec<Case> {
    let power = |body, says| case("PUT", "/v1/nodes/n/states/power", body, 400, says);
    let device = |body, says| case("PUT", "/v1/nodes/n/management/boot_device", body, 400, says);
    let cleaning = "/v1/nodes/cleaning/management/boot_device";
    vec![
        power(
            json!({"target": "nonsense"}),
            "The requested action \"nonsense\" can not be performed on node \"n\" while it is in state \"None\".",
        ),
        power(json!({"target": "power on", "timeout": 0}), "timeout"),
        power(json!({"target": "power on", "timeout": "x"}), "timeout"),
        elsewhere("/v1/nodes/cleaning/states/power", "power off", 400, "while it is in state \"cleaning\""),
        device(json!({"boot_device": "tape"}), "tape"),
        device(json!({"boot_device": 5}), "boot_device"),
        case("PUT", cleaning, json!({"boot_device": "pxe"}), 409, "cleaning"),
        case("PUT", "/v1/nodes/n/maintenance", json!({"reason": {}}), 400, "reason"),
    ]
}
