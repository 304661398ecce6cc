//! UEFI HTTP boot of a URL that the BMC passes to the firmware: property `HttpBootUri` of ComputerSystem's `Boot` (DSP0268), and on
//! BMCs without it a setting of the BIOS.

use serde_json::{Value, json};

use super::image_names::secrets;
use super::{Redfish, system};
use crate::{BmcError, BootDevice, ErrorKind};

impl Redfish {
    /// Boot from this URL once. It is put in the place of no URL without the `mark`.
    pub(super) async fn boot_from_url(&self, url: &str, mark: &str) -> Result<(), BmcError> {
        let action = "boot from a URL";
        // The name of the medium is a secret, and BMCs repeat what they refuse.
        let hidden = |error: BmcError| error.without(secrets(url));
        let read = self.boot_resources(action).await?;
        let offered = read.offered();
        let mut patch = system::boot_patch(&offered, BootDevice::UefiHttp, false, None)
            .map_err(|why| self.client.error(ErrorKind::Unsupported, action, &why))?;
        if offered.pointer("/Boot/HttpBootUri").is_none() {
            self.write_url_setting(action, url, mark).await.map_err(hidden)?;
            return self.change_boot(action, &read, &patch).await.map_err(hidden);
        }
        let now = uri(&read.next()).to_owned();
        if !now.is_empty() && !now.contains(mark) {
            let message = "Boot.HttpBootUri holds a URL that is not Anneal's";
            return Err(self.client.error(ErrorKind::Unsupported, action, message));
        }
        patch["Boot"]["HttpBootUri"] = json!(url);
        self.change_boot(action, &read, &patch).await.map_err(hidden)?;
        if uri(&self.boot_resources(action).await?.next()) == url {
            return Ok(());
        }
        let message = "it accepts Boot.HttpBootUri and does not show it: it passes no URL to its firmware";
        Err(self.client.error(ErrorKind::Unsupported, action, message))
    }

    /// Forget such a URL with this mark, and the override if it was not used.
    pub(super) async fn forget_url(&self, mark: &str) -> Result<(), BmcError> {
        let action = "forget the URL to boot from";
        let read = self.boot_resources(action).await?;
        let next = read.next();
        let is_unused = system::boot_setting(&next).device == Some(BootDevice::UefiHttp);
        let disabled = json!({"Boot": {"BootSourceOverrideEnabled": "Disabled"}});
        if next.pointer("/Boot/HttpBootUri").is_none() {
            // What was never offered was never set, and the BIOS need not be read.
            if system::boot_patch(&read.offered(), BootDevice::UefiHttp, false, None).is_err() {
                return Ok(());
            }
            let Some(own) = self.own_url_settings(action, mark).await? else { return Ok(()) };
            if is_unused {
                self.change_boot(action, &read, &disabled).await.map_err(|error| own.hidden_in(error))?;
            }
            return self.empty_url_settings(action, &own).await.map_err(|error| own.hidden_in(error));
        }
        if !uri(&next).contains(mark) {
            return Ok(());
        }
        // Null and not the empty text: Ironic sends null with every change of the boot device, so BMCs know it.
        let mut patch = if is_unused { disabled } else { json!({"Boot": {}}) };
        patch["Boot"]["HttpBootUri"] = Value::Null;
        self.change_boot(action, &read, &patch).await.map_err(|error| error.without(secrets(uri(&next))))
    }
}

/// The URL that is passed to the firmware; empty without one, for which some services have a word like `None`.
fn uri(system: &Value) -> &str {
    let uri = system.pointer("/Boot/HttpBootUri").and_then(Value::as_str);
    uri.filter(|uri| uri.contains("://")).unwrap_or_default()
}
