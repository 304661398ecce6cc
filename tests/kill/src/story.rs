//! The stories: what an operator wants of a node, verb by verb.

use serde_json::{Value, json};

/// A story.
pub struct Story {
    /// Its name.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// The node as it is enrolled. `driver_info` of a node behind a BMC is added.
    pub node: fn() -> Value,
    /// The node has a machine with a BMC and agents.
    pub has_machine: bool,
    /// What the operator says, and where the node is to rest then.
    pub acts: fn() -> Vec<Act>,
    /// Steps of the controller that may not be repeated: a kill in the middle of one fails the run.
    pub fragile: &'static [&'static str],
}

/// A verb.
pub struct Act {
    /// The target of the request.
    pub target: &'static str,
    /// What comes along.
    pub more: Value,
    /// The state in which the node rests afterwards.
    pub rest: &'static str,
}

fn act(target: &'static str, rest: &'static str) -> Act {
    Act { target, more: Value::Null, rest }
}

/// All of them.
pub const ALL: [Story; 3] = [
    Story {
        name: "cleaning_by_an_agent",
        about: "three in-band steps, a reboot between them, on a machine behind a BMC",
        node: || json!({ "driver": "redfish" }),
        has_machine: true,
        acts: || vec![act("manage", "manageable"), act("provide", "available")],
        fragile: &[],
    },
    Story {
        name: "whole_life",
        about: "every verb of a node without an agent, from enrolment to its return",
        node: || json!({ "driver": "fake-hardware" }),
        has_machine: false,
        acts: || {
            let bios = json!([{
                "interface": "bios", "step": "apply_configuration",
                "args": { "settings": [{ "name": "BootMode", "value": "Bios" }] },
            }]);
            vec![
                act("manage", "manageable"),
                act("inspect", "manageable"),
                act("provide", "available"),
                act("active", "active"),
                Act { target: "service", more: json!({ "service_steps": bios }), rest: "active" },
                act("deleted", "available"),
            ]
        },
        fragile: &[],
    },
    Story {
        name: "hold_and_fragile_step",
        about: "a manual cleaning with a hold and a step that may not be repeated",
        node: || json!({ "driver": "fake-hardware" }),
        has_machine: false,
        acts: || {
            let raid = json!({ "logical_disks": [{ "size_gb": "MAX", "raid_level": "1" }] });
            let steps = json!([
                { "interface": "raid", "step": "create_configuration", "args": { "raid_config": raid } },
                { "interface": "deploy", "step": "hold" },
                { "interface": "bios", "step": "factory_reset" },
            ]);
            vec![
                act("manage", "manageable"),
                Act { target: "clean", more: json!({ "clean_steps": steps }), rest: "clean hold" },
                act("unhold", "manageable"),
            ]
        },
        fragile: &["raid.create_configuration"],
    },
];
