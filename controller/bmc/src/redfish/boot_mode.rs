//! Firmware mode (`Boot.BootSourceOverrideMode` of ComputerSystem) and secure boot (resource SecureBoot), DSP0268.
//! Both are in force from the next start on.

use serde_json::{Value, json};

use super::{Redfish, system};
use crate::{BmcError, BootMode, ErrorKind};

impl Redfish {
    pub(super) async fn change_boot_mode(&self, mode: BootMode) -> Result<(), BmcError> {
        let action = format!("set boot mode {mode}");
        let read = self.boot_resources(&action).await?;
        match mode_patch(&read.offered(), mode) {
            Ok(Some(patch)) => self.change_boot(&action, &read, &patch).await,
            Ok(None) => Ok(()),
            Err(why) => Err(self.client.error(ErrorKind::Unsupported, &action, &why)),
        }
    }

    pub(super) async fn change_secure_boot(&self, on: bool) -> Result<(), BmcError> {
        let action = format!("switch secure boot {}", if on { "on" } else { "off" });
        let unsupported = |why: &str| self.client.error(ErrorKind::Unsupported, &action, why);
        let system = self.system(&action).await?.body;
        let path =
            system::link(system.get("SecureBoot")).ok_or_else(|| unsupported("it offers no secure boot"))?;
        let read = self.client.get(&action, path).await?;
        match read.body.get("SecureBootEnable").and_then(Value::as_bool) {
            None => Err(unsupported("it offers no secure boot")),
            Some(now) if now == on => Ok(()),
            Some(_) if system::boot_setting(&system).mode == Some(BootMode::Bios) => {
                Err(unsupported("secure boot needs boot mode uefi"))
            }
            Some(_) => self.patch(&action, path, &read, &json!({"SecureBootEnable": on})).await,
        }
    }
}

/// What to send; `None`: the mode is that already. `Err` is why it cannot be.
fn mode_patch(system: &Value, mode: BootMode) -> Result<Option<Value>, String> {
    let boot = system.get("Boot").cloned().unwrap_or_default();
    let name = system::mode_name(mode);
    let now = boot.get("BootSourceOverrideMode").and_then(Value::as_str);
    let now = now.ok_or_else(|| "it offers no choice of the boot mode".to_owned())?;
    if now == name {
        return Ok(None);
    }
    let allowed = system::strings(boot.get("BootSourceOverrideMode@Redfish.AllowableValues"));
    match allowed {
        Some(allowed) if !allowed.iter().any(|allowed| allowed == name) => {
            Err(format!("it offers only {}", allowed.join(", ")))
        }
        _ => Ok(Some(json!({"Boot": {"BootSourceOverrideMode": name}}))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_sent_when_it_changes_and_can() {
        let boot = |boot: Value| json!({ "Boot": boot });
        let patch = mode_patch(&boot(json!({"BootSourceOverrideMode": "Legacy"})), BootMode::Uefi);
        assert_eq!(patch, Ok(Some(json!({"Boot": {"BootSourceOverrideMode": "UEFI"}}))));
        assert_eq!(mode_patch(&boot(json!({"BootSourceOverrideMode": "UEFI"})), BootMode::Uefi), Ok(None));
        let only = boot(json!({"BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideMode@Redfish.AllowableValues": ["UEFI"]}));
        assert_eq!(mode_patch(&only, BootMode::Bios), Err("it offers only UEFI".to_owned()));
        assert!(mode_patch(&json!({}), BootMode::Bios).unwrap_err().contains("no choice"));
    }
}
