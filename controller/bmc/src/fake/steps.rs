//! Steps of the fake: what they change are variables of its world.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::machine::{factory_bios, machine};
use crate::declared::{Arg, Declared, StepCall, StepEnd};
use crate::{BmcError, ErrorKind};

pub(crate) const DEPLOY_STEPS: &[Declared] =
    &[Declared::new("deploy", |_, _| Box::pin(deploy())).deploy(100).idempotent()];

pub(crate) const MANAGEMENT_STEPS: &[Declared] = &[
    // Its name and result claim what it does and no more: nothing is erased, nothing configured.
    Declared::new("fake_reset", |call, _| Box::pin(reset(call))).clean(10.0).abortable().idempotent(),
    Declared::new("fake_slow", |call, _| Box::pin(slow(call)))
        .clean(0.0)
        .deploy(0)
        .service()
        .args(&[Arg {
            name: "seconds",
            description: "How long the step goes on outside: seconds from 0 to 86400.",
            required: true,
            schema: r#"{"type": "number", "minimum": 0, "maximum": 86400}"#,
        }])
        .abortable()
        .idempotent(),
    Declared::new("fake_fail", |call, _| Box::pin(fail(call))).clean(0.0).deploy(0).service().args(&[Arg {
        name: "message",
        description: "Text of the failure, up to 1000 characters.",
        required: true,
        schema: r#"{"type": "string", "minLength": 1, "maxLength": 1000}"#,
    }]),
];

pub(crate) const BIOS_STEPS: &[Declared] = &[
    Declared::new("apply_configuration", |call, _| Box::pin(apply_bios(call)))
        .clean(0.0)
        .deploy(0)
        .service()
        .args(&[crate::bios_settings::BIOS_SETTINGS])
        .idempotent(),
    Declared::new("factory_reset", |call, _| Box::pin(reset_bios(call)))
        .clean(0.0)
        .deploy(0)
        .service()
        .idempotent(),
];

const RAID_ARGS: &[Arg] = &[
    Arg {
        name: "raid_config",
        description: "The logical disks: {\"logical_disks\": [{\"size_gb\": 100 or \"MAX\", \"raid_level\": \
                      \"0\", \"1\", \"5\", \"6\", \"1+0\" or \"JBOD\"}]}.",
        required: true,
        schema: r#"{"type": "object", "required": ["logical_disks"], "additionalProperties": false,
            "properties": {"logical_disks": {"type": "array", "minItems": 1, "maxItems": 64, "items": {
                "type": "object", "required": ["size_gb", "raid_level"], "additionalProperties": false,
                "properties": {
                    "size_gb": {"type": ["integer", "string"], "minimum": 1, "maxLength": 3},
                    "raid_level": {"enum": ["0", "1", "5", "6", "1+0", "JBOD"]},
                    "is_root_volume": {"type": "boolean"},
                    "volume_name": {"type": "string", "maxLength": 64}
                }}}}}"#,
    },
    Arg {
        name: "delete_existing",
        description: "true (the default): replaces the present logical disks; false: adds to them.",
        required: false,
        schema: r#"{"type": "boolean"}"#,
    },
];

pub(crate) const RAID_STEPS: &[Declared] = &[
    Declared::new("apply_configuration", |call, _| Box::pin(create_raid(call)))
        .deploy(0)
        .service()
        .args(RAID_ARGS),
    Declared::new("create_configuration", |call, _| Box::pin(create_raid(call)))
        .clean(0.0)
        .service()
        .args(RAID_ARGS),
    Declared::new("delete_configuration", |call, _| Box::pin(delete_raid(call)))
        .clean(0.0)
        .service()
        .idempotent(),
];

/// Those of Ironic's fake, which its own tests and many of its users' call.
pub(crate) const VENDOR_STEPS: &[Declared] = &[
    Declared::new("log_passthrough", |_, _| Box::pin(nothing())).clean(0.0).service().idempotent(),
    // Nothing ends it: the node waits until the step's time is out.
    Declared::new("trigger_servicewait", |_, _| Box::pin(wait())).service().idempotent(),
];

async fn nothing() -> Result<StepEnd, BmcError> {
    Ok(StepEnd::Done(json!({"fake": "nothing was done"})))
}

async fn wait() -> Result<StepEnd, BmcError> {
    Ok(StepEnd::Running("the fake waits for an external event".to_owned()))
}

fn failed(call: &StepCall<'_>, message: &str) -> BmcError {
    let message = format!("{} step {}.{} failed: {message}", call.kind.as_str(), call.interface, call.step);
    BmcError::new(ErrorKind::Step, "", "run a step", message)
}

/// There is no image, and nothing to start: the power stays as it is, as with Ironic's.
async fn deploy() -> Result<StepEnd, BmcError> {
    Ok(StepEnd::Done(json!({"fake": "nothing was written"})))
}

async fn reset(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let resets = machine(call.node_uuid, |machine| {
        machine.resets += 1;
        machine.resets
    });
    Ok(StepEnd::Done(json!({"fake": "nothing was erased or configured", "resets": resets})))
}

/// Goes on in the world, by its clock. A process that was restarted has a new world, in which it begins anew.
async fn slow(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let seconds = call.args.get("seconds").and_then(Value::as_f64).unwrap_or_default();
    let began = machine(call.node_uuid, |machine| match &machine.slow {
        Some((command, began)) if command == call.command_id => *began,
        _ => machine.slow.insert((call.command_id.to_owned(), Instant::now())).1,
    });
    let left = Duration::from_secs_f64(seconds).saturating_sub(began.elapsed());
    if left.is_zero() {
        return Ok(StepEnd::Done(json!({"fake": "time has passed", "seconds": seconds})));
    }
    Ok(StepEnd::Running(format!("the fake is slow: {:.1} of {seconds} s are left", left.as_secs_f64())))
}

async fn fail(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let message = call.args.get("message").and_then(Value::as_str).unwrap_or_default();
    Err(failed(call, message))
}

async fn apply_bios(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let settings = crate::bios_settings::bios_settings(call.args).map_err(|why| failed(call, &why))?;
    machine(call.node_uuid, |machine| {
        let bios = &mut machine.configuration.bios;
        if let Some(unknown) = settings.keys().find(|name| !bios.contains_key(*name)) {
            let known = bios.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(failed(call, &format!("the BIOS has no setting '{unknown}'; it has {known}")));
        }
        let names: Vec<String> = settings.keys().cloned().collect();
        bios.extend(settings);
        Ok(StepEnd::Done(json!({"in_force": names, "after_reboot": []})))
    })
}

async fn reset_bios(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    machine(call.node_uuid, |machine| machine.configuration.bios = factory_bios());
    Ok(StepEnd::Done(json!({"fake": "the BIOS settings are those of the factory"})))
}

async fn create_raid(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let config = call.args.get("raid_config").and_then(|config| config.get("logical_disks"));
    let disks = config.and_then(Value::as_array).cloned().unwrap_or_default();
    let size = |disk: &Value| disk.get("size_gb").is_some_and(|size| size.is_number() || size == "MAX");
    // What the schema cannot say is found while running, as with real controllers.
    if let Some(n) = disks.iter().position(|disk| !size(disk)) {
        let place = format!("argument raid_config.logical_disks[{n}].size_gb");
        return Err(failed(call, &format!("{place} must be a whole number of GiB or \"MAX\"")));
    }
    let replace = call.args.get("delete_existing").and_then(Value::as_bool).unwrap_or(true);
    let now = machine(call.node_uuid, |machine| {
        let raid = &mut machine.configuration.raid;
        if replace {
            raid.clear();
        }
        raid.extend(disks);
        raid.clone()
    });
    Ok(StepEnd::Done(json!({ "logical_disks": now })))
}

async fn delete_raid(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    machine(call.node_uuid, |machine| machine.configuration.raid.clear());
    Ok(StepEnd::Done(json!({"logical_disks": []})))
}
