//! What a ComputerSystem resource says, and what is asked of it: pure functions over JSON.
//!
//! Names are those of the Redfish schema ComputerSystem (DSP0268). Vendors leave out what they like, so
//! everything is optional until it is needed.

use model::Health;
use serde_json::{Map, Value, json};

use super::config::is_path;
use crate::{BootDevice, BootMode, BootSetting, PowerState, PowerTarget};

/// `@odata.id` of a link, if it is a path on the same BMC.
pub(super) fn link(value: Option<&Value>) -> Option<&str> {
    value?.get("@odata.id")?.as_str().filter(|path| is_path(path))
}

/// Paths of a collection's members.
pub(super) fn members(collection: &Value) -> Vec<&str> {
    let members = collection.get("Members").and_then(Value::as_array);
    members.into_iter().flatten().filter_map(|member| link(Some(member))).collect()
}

/// Member of a change in a settings object that says when it is to be put in force.
pub(super) const APPLY_TIME: &str = "@Redfish.SettingsApplyTime";

/// Path of a resource's settings object, and whether it wants to hear that a change is for the next reset.
pub(super) fn settings_object(resource: &Value) -> Option<(&str, bool)> {
    let settings = resource.get("@Redfish.Settings")?;
    let times = strings(settings.get("SupportedApplyTimes")).unwrap_or_default();
    Some((link(settings.get("SettingsObject"))?, times.iter().any(|time| time == "OnReset")))
}

/// Power as the BMC says it: a state, nothing, or the text that is none.
///
/// `PoweringOff` and `Paused` are on: there is power until the BMC says there is not.
pub(super) fn power_state(system: &Value) -> Result<Option<PowerState>, String> {
    match system.get("PowerState") {
        Some(Value::String(text)) => match text.as_str() {
            "On" | "PoweringOn" | "PoweringOff" | "Paused" => Ok(Some(PowerState::On)),
            "Off" => Ok(Some(PowerState::Off)),
            other => Err(format!("unknown PowerState '{other}'")),
        },
        Some(Value::Null) => Ok(None),
        None => Err("the system has no PowerState".to_owned()),
        Some(other) => Err(format!("PowerState is not a string but {other}")),
    }
}

/// Health of the system itself, or where the BMC leaves that out, of all that it is made of.
pub(super) fn health(system: &Value) -> Option<Health> {
    let status = system.get("Status")?;
    let word = |key: &str| status.get(key).and_then(Value::as_str);
    word("Health").or_else(|| word("HealthRollup")).and_then(Health::parse)
}

/// Whether the system rests in `state`, rather than being on its way there.
pub(super) fn is_settled(system: &Value, state: PowerState) -> bool {
    let word = match state {
        PowerState::On => "On",
        PowerState::Off => "Off",
    };
    system.get("PowerState").and_then(Value::as_str) == Some(word)
}

/// The action `#ComputerSystem.Reset`: where to post, and which types are allowed as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResetAction {
    pub(super) target: String,
    pub(super) allowed: Option<Vec<String>>,
    /// `@Redfish.ActionInfo`: resource that lists the allowed types.
    pub(super) info: Option<String>,
}

pub(super) fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    let list: Vec<String> = value?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    (!list.is_empty()).then_some(list)
}

/// `None` when the system offers no reset.
pub(super) fn reset_action(system: &Value) -> Option<ResetAction> {
    let action = system.get("Actions")?.get("#ComputerSystem.Reset")?;
    let target = action.get("target")?.as_str().filter(|path| is_path(path))?;
    Some(ResetAction {
        target: target.to_owned(),
        allowed: strings(action.get("ResetType@Redfish.AllowableValues")),
        info: action
            .get("@Redfish.ActionInfo")
            .and_then(Value::as_str)
            .filter(|path| is_path(path))
            .map(str::to_owned),
    })
}

/// Reset types that an ActionInfo resource allows (DSP0266, "Action info").
pub(super) fn allowed_by_info(info: &Value) -> Option<Vec<String>> {
    let parameters = info.get("Parameters")?.as_array()?;
    let reset =
        parameters.iter().find(|parameter| parameter.get("Name").is_some_and(|name| name == "ResetType"))?;
    strings(reset.get("AllowableValues"))
}

/// What to post for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    /// One reset of this type.
    One(&'static str),
    /// No hard reset is to be had: these two, with a wait for off between.
    OffThenOn(&'static str, &'static str),
}

/// Chooses the reset type; `None` when the BMC allows none that would do.
pub(super) fn choose_reset(action: PowerTarget, allowed: Option<&[String]>) -> Option<Reset> {
    let first = |wanted: &[&'static str]| {
        wanted.iter().copied().find(|name| allowed.is_none_or(|allowed| allowed.iter().any(|a| a == name)))
    };
    const ON: &[&str] = &["On", "ForceOn"];
    match action {
        PowerTarget::On => first(ON).map(Reset::One),
        PowerTarget::Off => first(&["ForceOff"]).map(Reset::One),
        PowerTarget::SoftOff => first(&["GracefulShutdown"]).map(Reset::One),
        PowerTarget::SoftReboot => first(&["GracefulRestart"]).map(Reset::One),
        PowerTarget::Reboot => match first(&["ForceRestart", "PowerCycle"]) {
            Some(one) => Some(Reset::One(one)),
            None => Some(Reset::OffThenOn(first(&["ForceOff"])?, first(ON)?)),
        },
    }
}

/// Names of a device, the preferred first; the last is the one that a BMC has which names none.
fn targets(device: BootDevice) -> &'static [&'static str] {
    match device {
        BootDevice::Pxe => &["Pxe"],
        BootDevice::Disk => &["Hdd"],
        // Where a BMC has both, virtual media are USB drives, and `Cd` is a drive in the chassis. Ironic sends `Cd`.
        BootDevice::Cdrom => &["UsbCd", "Cd"],
        BootDevice::Bios => &["BiosSetup"],
        BootDevice::Floppy => &["Floppy"],
        BootDevice::Usb => &["Usb"],
        BootDevice::UefiHttp => &["UefiHttp"],
        BootDevice::Safe => &[],
    }
}

pub(super) fn mode_name(mode: BootMode) -> &'static str {
    match mode {
        BootMode::Bios => "Legacy",
        BootMode::Uefi => "UEFI",
    }
}

/// The boot override in force.
pub(super) fn boot_setting(system: &Value) -> BootSetting {
    let text = |key: &str| system.get("Boot").and_then(|boot| boot.get(key)).and_then(Value::as_str);
    let mode = text("BootSourceOverrideMode")
        .and_then(|name| BootMode::ALL.iter().copied().find(|mode| mode_name(*mode) == name));
    let persistent = match text("BootSourceOverrideEnabled") {
        Some("Once") => Some(false),
        Some("Continuous") => Some(true),
        Some("Disabled") => return BootSetting { mode, ..BootSetting::default() },
        _ => None,
    };
    let device = text("BootSourceOverrideTarget")
        .and_then(|name| BootDevice::ALL.iter().copied().find(|device| targets(*device).contains(&name)));
    BootSetting { device, persistent: device.and(persistent), mode }
}

/// The PATCH that sets a boot override; `Err` is what the BMC says it cannot do.
///
/// The mode is sent only when it must change: some BMCs answer 500 to any mode they cannot switch to,
/// and sushy-emulator to `Legacy` always.
pub(super) fn boot_patch(
    system: &Value,
    device: BootDevice,
    persistent: bool,
    mode: Option<BootMode>,
) -> Result<Value, String> {
    let boot = system.get("Boot").cloned().unwrap_or_default();
    let allowed = strings(boot.get("BootSourceOverrideTarget@Redfish.AllowableValues"));
    let names = targets(device);
    let target = match &allowed {
        Some(allowed) => names.iter().find(|name| allowed.iter().any(|a| a == *name)),
        None => names.last(),
    };
    let target = target.ok_or_else(|| match &allowed {
        Some(allowed) if !names.is_empty() => {
            format!("the BMC cannot boot from {device}; it offers {}", allowed.join(", "))
        }
        _ => format!("Redfish has no boot device {device}"),
    })?;
    let enabled = if persistent { "Continuous" } else { "Once" };
    if let Some(allowed) = strings(boot.get("BootSourceOverrideEnabled@Redfish.AllowableValues"))
        && !allowed.iter().any(|a| a == enabled)
    {
        return Err(format!("the BMC offers no {enabled} boot override, only {}", allowed.join(", ")));
    }
    let mut patch = Map::new();
    patch.insert("BootSourceOverrideTarget".to_owned(), json!(target));
    patch.insert("BootSourceOverrideEnabled".to_owned(), json!(enabled));
    if let (Some(mode), Some(current)) = (mode, boot.get("BootSourceOverrideMode").and_then(Value::as_str))
        && current != mode_name(mode)
    {
        patch.insert("BootSourceOverrideMode".to_owned(), json!(mode_name(mode)));
    }
    Ok(json!({ "Boot": patch }))
}

/// How far a task is, from the body of a 202 or of its monitor (`TaskState`, schema Task).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaskProgress {
    Running,
    Done,
    Failed(String),
}

pub(super) fn task_progress(task: &Value) -> TaskProgress {
    let text = |key: &str| task.get(key).and_then(Value::as_str);
    let bad_status = matches!(text("TaskStatus"), Some("Critical"));
    match text("TaskState") {
        Some("Completed") if bad_status => TaskProgress::Failed("completed with status Critical".to_owned()),
        Some("Completed") => TaskProgress::Done,
        Some(state @ ("Exception" | "Killed" | "Cancelled" | "Interrupted")) => {
            let message = task.get("Messages").and_then(Value::as_array).and_then(|all| all.first());
            let message = message.and_then(|first| first.get("Message")).and_then(Value::as_str);
            TaskProgress::Failed(format!("task ended as {state}: {}", message.unwrap_or("no reason given")))
        }
        _ => TaskProgress::Running,
    }
}

/// Text of an error body: `error.@Message.ExtendedInfo[].Message`, else `error.message` (DSP0266).
pub(super) fn error_text(body: &Value) -> Option<String> {
    let error = body.get("error")?;
    let extended = error.get("@Message.ExtendedInfo");
    // Some BMCs give one object where the specification has a list.
    let list = match extended {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one @ Value::Object(_)) => std::slice::from_ref(one),
        _ => &[],
    };
    let messages: Vec<&str> = list
        .iter()
        .filter_map(|info| info.get("Message").or_else(|| info.get("MessageId"))?.as_str())
        .collect();
    if messages.is_empty() {
        error.get("message")?.as_str().map(str::to_owned)
    } else {
        Some(messages.join(" "))
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
