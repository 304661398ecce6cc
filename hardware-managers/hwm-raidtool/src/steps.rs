//! The steps, declared. Names and arguments of the RAID steps are Ironic's.

use crate::settings;
use hwm_sdk::StepKind::{Clean, Deploy, Service};
use hwm_sdk::protocol::Destructive;
use hwm_sdk::{Argument, Declaration};
use serde_json::{Value, json};

/// Makes the volumes of the node's `target_raid_config`.
pub const CREATE: &str = "create_configuration";
/// Removes all volumes.
pub const DELETE: &str = "delete_configuration";
/// Makes the volumes of an argument.
pub const APPLY: &str = "apply_configuration";
/// Changes settings of controllers.
pub const SETTINGS: &str = "apply_controller_settings";

const fn flag(name: &'static str, description: &'static str) -> Argument {
    Argument { name, description, required: false, schema: || json!({"type": "boolean"}) }
}

const DELETE_EXISTING: Argument = flag("delete_existing", "Remove the volumes that are there before");

/// All of them.
pub const STEPS: &[Declaration] = &[
    Declaration {
        priorities: &[(Clean, 0)],
        abortable: true,
        estimated_duration_s: Some(3600),
        arguments: &[
            flag("create_root_volume", "Make the volume of the operating system; true without it"),
            flag("create_nonroot_volumes", "Make the other volumes; true without it"),
            DELETE_EXISTING,
        ],
        result_schema: Some(volumes),
        ..step("raid", CREATE)
    },
    Declaration {
        priorities: &[(Clean, 0), (Deploy, 0)],
        estimated_duration_s: Some(60),
        ..step("raid", DELETE)
    },
    Declaration {
        priorities: &[(Deploy, 0)],
        abortable: true,
        estimated_duration_s: Some(3600),
        arguments: &[
            Argument {
                name: "raid_config",
                description: "In the form of a node's target_raid_config",
                required: true,
                schema: || json!({"type": "object", "required": ["logical_disks"]}),
            },
            DELETE_EXISTING,
        ],
        result_schema: Some(volumes),
        ..step("raid", APPLY)
    },
    Declaration {
        priorities: &[(Clean, 0), (Deploy, 0), (Service, 0)],
        destructive: Destructive::Configuration,
        estimated_duration_s: Some(10),
        arguments: &[Argument {
            name: settings::ARGUMENT,
            description: "Settings of controllers: a list of {\"name\": \"c0.…\", \"value\": …}",
            required: true,
            schema: || {
                json!({"type": "array", "minItems": 1, "maxItems": 100, "items": {
                    "type": "object", "required": ["name", "value"], "additionalProperties": false,
                    "properties": {"name": {"type": "string", "minLength": 1}, "value": {"type": "string", "minLength": 1}}}})
            },
        }],
        ..step("bios", SETTINGS)
    },
];

fn volumes() -> Value {
    json!({"type": "object", "required": ["logical_disks"], "properties": {"logical_disks": {"type": "array"}}})
}

const fn step(interface: &'static str, step: &'static str) -> Declaration {
    Declaration { idempotent: true, ..Declaration::new(interface, step) }
}
