//! BIOS settings through the resource Bios (DSP0268) and its settings object (DSP0266, "Settings resource").

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Redfish, system};
use crate::declared::{Declared, StepCall, StepEnd};
use crate::settings::{BIOS_SETTINGS, bios_settings};
use crate::{BmcError, ErrorKind};

pub(crate) const BIOS_STEPS: &[Declared] = &[
    Declared::new("apply_configuration", |call| Box::pin(apply_configuration(call)))
        .clean(0.0)
        .deploy(0)
        .service()
        .args(&[BIOS_SETTINGS])
        .idempotent()
        .reboot(),
    Declared::new("factory_reset", |call| Box::pin(factory_reset(call)))
        .clean(0.0)
        .deploy(0)
        .service()
        .idempotent()
        .reboot(),
];

impl Redfish {
    /// The Bios resource of the system.
    async fn bios(&self, action: &str) -> Result<Value, BmcError> {
        let system = self.system(action).await?.body;
        let path = system::link(system.get("Bios"))
            .ok_or_else(|| self.client.error(ErrorKind::Unsupported, action, "it offers no BIOS settings"))?;
        Ok(self.client.get(action, path).await?.body)
    }
}

/// Settings are stored by the BMC at once and put in force by the firmware at the reboot that follows.
async fn apply_configuration(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let redfish = Redfish::new(call.driver_info)?;
    let action = "apply BIOS settings";
    let wrong = |why: &str| redfish.client.error(ErrorKind::Step, action, why);
    let wanted = bios_settings(call.args).map_err(|why| wrong(&why))?;
    let bios = redfish.bios(action).await?;
    let present = attributes(&bios).ok_or_else(|| {
        redfish.client.error(ErrorKind::Protocol, action, "its Bios resource has no Attributes")
    })?;
    let unknown: Vec<&str> =
        wanted.keys().filter(|name| !present.contains_key(*name)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let why = format!("{}: argument settings: the BIOS has no {}", label(call), unknown.join(", "));
        return Err(wrong(&why));
    }
    let change: Map<String, Value> =
        wanted.iter().filter(|(name, value)| present.get(*name) != Some(*value)).map(own).collect();
    if !change.is_empty() {
        let own_path = bios.get("@odata.id").and_then(Value::as_str).unwrap_or_default();
        let (path, on_reset) = settings_object(&bios).unwrap_or((own_path, false));
        let mut body = json!({ "Attributes": change });
        if on_reset {
            body["@Redfish.SettingsApplyTime"] = json!({"ApplyTime": "OnReset"});
        }
        let settings = redfish.client.get(action, path).await?;
        redfish.patch(action, path, &settings, &body).await?;
    }
    // What the BMC says now, and no promise beyond it.
    let bios = redfish.bios(action).await?;
    let now = attributes(&bios).cloned().unwrap_or_default();
    let (in_force, after_reboot): (Vec<_>, Vec<_>) =
        wanted.iter().partition(|(name, value)| now.get(*name) == Some(*value));
    let names =
        |settings: Vec<(&String, &Value)>| settings.into_iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
    Ok(StepEnd::Done(json!({"in_force": names(in_force), "after_reboot": names(after_reboot)})))
}

async fn factory_reset(call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
    let redfish = Redfish::new(call.driver_info)?;
    let action = "reset the BIOS settings";
    let bios = redfish.bios(action).await?;
    let target = reset_target(&bios).ok_or_else(|| {
        redfish.client.error(ErrorKind::Unsupported, action, "it offers no reset of the BIOS settings")
    })?;
    let reply = redfish.client.request(action, Method::POST, target, Some(&json!({})), None).await?;
    redfish.client.succeeded(action, &reply)?;
    redfish.watch(action, reply).await?;
    Ok(StepEnd::Done(json!({"after_reboot": "the BIOS settings are those of the factory"})))
}

fn label(call: &StepCall<'_>) -> String {
    format!("{} step {}.{}", call.kind.as_str(), call.interface, call.step)
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn attributes(bios: &Value) -> Option<&Map<String, Value>> {
    bios.get("Attributes")?.as_object()
}

/// Where changes are to be written, and whether to say that they are for the next reset.
fn settings_object(bios: &Value) -> Option<(&str, bool)> {
    let settings = bios.get("@Redfish.Settings")?;
    let times = settings.get("SupportedApplyTimes").and_then(Value::as_array);
    let on_reset = times.is_some_and(|times| times.iter().any(|time| time == "OnReset"));
    Some((system::link(settings.get("SettingsObject"))?, on_reset))
}

fn reset_target(bios: &Value) -> Option<&str> {
    let target = bios.get("Actions")?.get("#Bios.ResetBios")?.get("target")?.as_str()?;
    super::config::is_path(target).then_some(target)
}
