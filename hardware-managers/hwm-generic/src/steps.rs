//! The steps of the generic manager, declared.

use crate::{bios, firmware};
use hwm_sdk::StepKind::{Clean, Deploy, Service};
use hwm_sdk::protocol::Destructive;
use hwm_sdk::{Argument, Declaration};

/// Erases every disk.
pub const ERASE_DEVICES: &str = "erase_devices";
/// Removes partition tables and signatures.
pub const ERASE_DEVICES_METADATA: &str = "erase_devices_metadata";
/// Compares the hardware with the node's properties.
pub const VERIFY_PROPERTIES: &str = "verify_properties";
/// Compares firmware versions with a baseline.
pub const VERIFY_FIRMWARE: &str = "verify_firmware";

/// Changes BIOS settings through the kernel; offered where it can. Not `apply_configuration`, which is the
/// controller's and goes through the BMC.
pub const APPLY_BIOS_SETTINGS: &str = "apply_configuration_in_band";

/// All of them. Names and priorities of the erase steps are ironic-python-agent's; the verify steps are Anneal's
/// (specs/cleaning-states.txt: "validating firmware integrity and version, verifying hardware") and off until
/// an operator gives them a priority. All that Ironic shall run too are of the interface `deploy`: it asks an agent
/// for clean steps of no other but `raid`.
pub const STEPS: &[Declaration] = &[
    Declaration { priorities: &[(Clean, 10)], ..step("deploy", ERASE_DEVICES) },
    Declaration { priorities: &[(Clean, 99), (Deploy, 0)], ..step("deploy", ERASE_DEVICES_METADATA) },
    Declaration {
        priorities: &[(Clean, 0), (Service, 0)],
        destructive: Destructive::None,
        ..step("deploy", VERIFY_PROPERTIES)
    },
    Declaration {
        priorities: &[(Clean, 0), (Service, 0)],
        destructive: Destructive::None,
        arguments: &[Argument {
            name: firmware::ARGUMENT,
            description: "Object: component to the version it must have, exactly or at least (\">=2.10\"). Components: \
                          bios_version, bios_vendor, bios_date, and disk:MODEL for all disks of a model. Without \
                          it node.properties.firmware_baseline",
            required: false,
            schema: firmware::schema,
        }],
        ..step("deploy", VERIFY_FIRMWARE)
    },
    Declaration {
        priorities: &[(Clean, 0), (Deploy, 0), (Service, 0)],
        destructive: Destructive::Configuration,
        arguments: bios::arguments(),
        ..step("bios", APPLY_BIOS_SETTINGS)
    },
];

/// What all of them have in common: each can be stopped, and started again.
const fn step(interface: &'static str, step: &'static str) -> Declaration {
    Declaration { abortable: true, idempotent: true, ..Declaration::new(interface, step) }
}
