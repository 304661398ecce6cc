//! The steps of the generic manager, declared.

use crate::settings::{ALLOW, BUDGET, DEADLINE, DESPITE, LEAVE, LEVEL, MOST_PASSES, PASSES, PATTERN, REVEAL};
use crate::{bios, firmware, image};
use hwm_sdk::StepKind::{Clean, Deploy, Service};
use hwm_sdk::protocol::Destructive;
use hwm_sdk::{Argument, Declaration};
use serde_json::{Value, json};

/// Erases every disk.
pub const ERASE_DEVICES: &str = "erase_devices";
/// Erases by one command where the drive has one, and else removes partition tables and signatures.
pub const ERASE_DEVICES_EXPRESS: &str = "erase_devices_express";
/// Removes partition tables and signatures.
pub const ERASE_DEVICES_METADATA: &str = "erase_devices_metadata";
/// Compares the hardware with the node's properties.
pub const VERIFY_PROPERTIES: &str = "verify_properties";
/// Compares firmware versions with a baseline.
pub const VERIFY_FIRMWARE: &str = "verify_firmware";

/// Changes BIOS settings through the kernel; offered where it can. Not `apply_configuration`, which is the
/// controller's and goes through the BMC.
pub const APPLY_BIOS_SETTINGS: &str = "apply_configuration_in_band";

/// Takes from the TPM what the node's users have put into it; offered where there is one.
pub const CLEAR_TPM: &str = "clear_tpm";

/// Removes what kernels of the node's users have left of their crashes; offered in the ramdisk. The name is ironic-python-agent's.
pub const ERASE_PSTORE: &str = "erase_pstore";

/// Writes an image to the root disk and reads it back. Ironic's `direct` calls it by this name.
pub const WRITE_IMAGE: &str = "write_image";

/// All of them. Names and priorities of the erase steps are ironic-python-agent's; the verify steps are Anneal's
/// (specs/cleaning-states.txt: "validating firmware integrity and version, verifying hardware") and off until
/// an operator gives them a priority. All that Ironic shall run too are of the interface `deploy`: it asks an agent
/// for clean steps of no other but `raid`.
pub const STEPS: &[Declaration] = &[
    Declaration { priorities: &[(Clean, 10)], arguments: ERASE_ARGUMENTS, ..step("deploy", ERASE_DEVICES) },
    Declaration {
        priorities: &[(Clean, 99), (Deploy, 0)],
        arguments: GUARD_ARGUMENTS,
        ..step("deploy", ERASE_DEVICES_METADATA)
    },
    Declaration {
        priorities: &[(Clean, 0)],
        arguments: GUARD_ARGUMENTS,
        ..step("deploy", ERASE_DEVICES_EXPRESS)
    },
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
    Declaration {
        priorities: &[(Clean, 0)],
        destructive: Destructive::Configuration,
        ..step("deploy", CLEAR_TPM)
    },
    Declaration {
        priorities: &[(Clean, 0)],
        destructive: Destructive::Configuration,
        ..step("deploy", ERASE_PSTORE)
    },
    Declaration { priorities: &[(Deploy, 0)], arguments: image::arguments(), ..step("deploy", WRITE_IMAGE) },
];

const LEAVE_ARGUMENT: Argument = Argument {
    name: LEAVE,
    description: "Reasons for which a disk may be left as it is without failing the step: in-use, read-only, shared, \
                  reserved, hidden, unreadable",
    required: false,
    schema: || words(block::Reason::ALL.iter().map(|reason| reason.as_str()).collect()),
};
const DESPITE_ARGUMENT: Argument = Argument {
    name: DESPITE,
    description: "Reasons that keep a disk from being erased and shall not: shared (VMFS, GPFS, GFS2, OCFS2, clustered \
                  LVM), hidden (HPA, DCO, AMAC, unattached NVMe namespaces)",
    required: false,
    schema: || {
        let reasons = block::Reason::ALL.iter().filter(|reason| reason.may_be_overridden());
        words(reasons.map(|reason| reason.as_str()).collect())
    },
};

const REVEAL_ARGUMENT: Argument = Argument {
    name: REVEAL,
    description: "Whether ATA drives are made to give back the sectors they hide (HPA, DCO, AMAC), for good, before \
                  anything is erased. Without it driver_internal_info.agent_remove_hidden_areas, else false: such a \
                  disk is refused",
    required: false,
    schema: || json!({"type": "boolean"}),
};

/// Of every step that writes to disks.
const GUARD_ARGUMENTS: &[Argument] = &[LEAVE_ARGUMENT, DESPITE_ARGUMENT, REVEAL_ARGUMENT];

const ERASE_ARGUMENTS: &[Argument] = &[
    Argument {
        name: LEVEL,
        description: "What every disk must reach: clear or purge (NIST SP 800-88, IEEE 2883). Without it \
                      driver_internal_info.agent_erase_level, else clear",
        required: false,
        schema: || json!({"type": "string", "enum": block::Level::ALL.map(block::Level::as_str)}),
    },
    Argument {
        name: ALLOW,
        description: "Methods below the level that may be used where a disk has none that reaches it, by name",
        required: false,
        schema: || words(block::Method::ALL.iter().map(|method| method.as_str()).collect()),
    },
    LEAVE_ARGUMENT,
    DESPITE_ARGUMENT,
    REVEAL_ARGUMENT,
    Argument {
        name: BUDGET,
        description: "Seconds that one method may take on one disk, by its estimate, at least 1",
        required: false,
        schema: || json!({"type": "integer", "minimum": 1}),
    },
    Argument {
        name: DEADLINE,
        description: "Seconds after which the step fails, at least 1. Without it three times the plan's estimate, reading \
                      back included, and an hour",
        required: false,
        schema: || json!({"type": "integer", "minimum": 1}),
    },
    Argument {
        name: PASSES,
        description: "How often disks are overwritten that the drive does not erase by itself, 1 to 35; all but the last \
                      time with random content. Without it (and pattern) once, with zeroes, or as \
                      driver_internal_info.agent_erase_devices_iterations and agent_erase_devices_zeroize say",
        required: false,
        schema: || json!({"type": "integer", "minimum": 1, "maximum": MOST_PASSES}),
    },
    Argument {
        name: PATTERN,
        description: "What the last of the passes writes, which is read back: zeroes, random, or a byte as 0x5a",
        required: false,
        schema: || json!({"type": "string", "minLength": 4}),
    },
];

fn words(all: Vec<&str>) -> Value {
    json!({"type": "array", "items": {"type": "string", "enum": all}})
}

/// What all of them have in common: each can be stopped, and started again.
const fn step(interface: &'static str, step: &'static str) -> Declaration {
    Declaration { abortable: true, idempotent: true, ..Declaration::new(interface, step) }
}
