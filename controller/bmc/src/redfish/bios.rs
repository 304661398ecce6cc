//! BIOS settings through the resource Bios (DSP0268) and its settings object (DSP0266, "Settings resource").

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Redfish, system};
use crate::bios_settings::{BIOS_SETTINGS, bios_settings};
use crate::declared::{Declared, StepCall, StepEnd};
use crate::{BmcError, ErrorKind, Settings};

pub(crate) const BIOS_STEPS: &[Declared] = &[
    Declared::new("apply_configuration", |call, settings| Box::pin(apply_configuration(call, settings)))
        .clean(0.0)
        .deploy(0)
        .service()
        .args(&[BIOS_SETTINGS])
        .idempotent()
        .reboot(),
    Declared::new("factory_reset", |call, settings| Box::pin(factory_reset(call, settings)))
        .clean(0.0)
        .deploy(0)
        .service()
        .idempotent()
        .reboot(),
];

impl Redfish {
    /// The Bios resource of the system, and its path.
    pub(super) async fn bios(&self, action: &str) -> Result<(String, Value), BmcError> {
        let system = self.system(action).await?.body;
        let path = system::link(system.get("Bios"))
            .ok_or_else(|| self.client.error(ErrorKind::Unsupported, action, "it offers no BIOS settings"))?;
        Ok((path.to_owned(), self.client.get(action, path).await?.body))
    }

    /// The settings that are in force.
    pub(super) async fn bios_attributes(&self) -> Result<Map<String, Value>, BmcError> {
        let action = "read the BIOS settings";
        let (_, bios) = self.bios(action).await?;
        attributes(&bios).cloned().ok_or_else(|| {
            self.client.error(ErrorKind::Protocol, action, "its Bios resource has no Attributes")
        })
    }

    /// Changes settings of the Bios resource that was read at `path`, for the next reset.
    pub(super) async fn write_bios(
        &self,
        action: &str,
        path: &str,
        bios: &Value,
        change: &Map<String, Value>,
    ) -> Result<(), BmcError> {
        let (target, on_reset) = target(bios, path).ok_or_else(|| {
            self.client.error(ErrorKind::Protocol, action, "its Bios resource names no settings resource")
        })?;
        let mut body = json!({ "Attributes": change });
        if on_reset {
            body[system::APPLY_TIME] = json!({"ApplyTime": "OnReset"});
        }
        let read = self.client.get(action, target).await?;
        let written = self.patch(action, target, &read, &body).await;
        // BMCs repeat what they refuse, and it may be a password.
        written.map_err(|error| error.without(change.values().filter_map(Value::as_str)))
    }
}

/// Settings are stored by the BMC at once and put in force by the firmware at the reboot that follows.
async fn apply_configuration(call: &StepCall<'_>, settings: &Arc<Settings>) -> Result<StepEnd, BmcError> {
    let redfish = Redfish::new(call.driver_info, settings)?;
    let action = "apply BIOS settings";
    let protocol = |why: &str| redfish.client.error(ErrorKind::Protocol, action, why);
    let wanted = bios_settings(call.args).map_err(|why| wrong(call, &why))?;
    let (path, bios) = redfish.bios(action).await?;
    let present = attributes(&bios).ok_or_else(|| protocol("its Bios resource has no Attributes"))?;
    let unknown: Vec<&str> =
        wanted.keys().filter(|name| !present.contains_key(*name)).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(wrong(call, &format!("argument settings: the BIOS has no {}", unknown.join(", "))));
    }
    let mut change = wanted.clone();
    change.retain(|name, value| present.get(name) != Some(value));
    if !change.is_empty() {
        redfish.write_bios(action, &path, &bios, &change).await?;
    }
    // What the BMC says now, and no promise beyond it. Names only, for the same reason.
    let (_, bios) = redfish.bios(action).await?;
    let (in_force, after_reboot): (Vec<_>, Vec<_>) = wanted
        .iter()
        .partition(|(name, value)| attributes(&bios).and_then(|now| now.get(*name)) == Some(*value));
    let names =
        |settings: Vec<(&String, &Value)>| settings.into_iter().map(|(name, _)| name.clone()).collect();
    let (in_force, after_reboot): (Vec<String>, Vec<String>) = (names(in_force), names(after_reboot));
    Ok(StepEnd::Done(json!({"in_force": in_force, "after_reboot": after_reboot})))
}

async fn factory_reset(call: &StepCall<'_>, settings: &Arc<Settings>) -> Result<StepEnd, BmcError> {
    let redfish = Redfish::new(call.driver_info, settings)?;
    let action = "reset the BIOS settings";
    let (_, bios) = redfish.bios(action).await?;
    let target = reset_target(&bios).ok_or_else(|| {
        redfish.client.error(ErrorKind::Unsupported, action, "it offers no reset of the BIOS settings")
    })?;
    let reply = redfish.client.request(action, Method::POST, target, Some(&json!({})), None).await?;
    redfish.client.succeeded(action, &reply)?;
    redfish.watch(action, reply).await?;
    Ok(StepEnd::Done(json!({"after_reboot": "the BIOS settings are those of the factory"})))
}

fn wrong(call: &StepCall<'_>, why: &str) -> BmcError {
    let message = format!("{} step {}.{}: {why}", call.kind.as_str(), call.interface, call.step);
    BmcError::new(ErrorKind::Step, "", "run a step", message)
}

pub(super) fn attributes(bios: &Value) -> Option<&Map<String, Value>> {
    bios.get("Attributes")?.as_object()
}

/// Where changes are to be written, and whether to say that they are for the next reset. Without a settings
/// object it is the resource itself, read at `path`.
fn target<'a>(bios: &'a Value, path: &'a str) -> Option<(&'a str, bool)> {
    if bios.pointer("/@Redfish.Settings/SettingsObject").is_none() {
        return Some((path, false));
    }
    system::settings_object(bios)
}

fn reset_target(bios: &Value) -> Option<&str> {
    let target = bios.get("Actions")?.get("#Bios.ResetBios")?.get("target")?.as_str()?;
    super::config::is_path(target).then_some(target)
}
