//! UEFI HTTP boot of a URL that the BMC passes to the firmware: property `HttpBootUri` of ComputerSystem's `Boot` (DSP0268).

use serde_json::{Value, json};

use super::{Redfish, system};
use crate::{BmcError, BootDevice, ErrorKind};

impl Redfish {
    /// Boot from this URL once.
    pub(super) async fn boot_from_url(&self, url: &str) -> Result<(), BmcError> {
        let action = "boot from a URL";
        let system = self.system(action).await?;
        let mut patch = system::boot_patch(&system.body, BootDevice::UefiHttp, false, None)
            .map_err(|why| self.client.error(ErrorKind::Unsupported, action, &why))?;
        patch["Boot"]["HttpBootUri"] = json!(url);
        let path = self.system_path(action).await?;
        // The name of the medium is a secret, and BMCs repeat what they refuse.
        let hidden = |error: BmcError| error.without(std::iter::once(url));
        self.patch(action, path, &system, &patch).await.map_err(hidden)?;
        let kept = self.system(action).await?.body;
        if uri(&kept) == url {
            return Ok(());
        }
        let message = "it accepts Boot.HttpBootUri and does not show it: it passes no URL to its firmware";
        Err(self.client.error(ErrorKind::Unsupported, action, message))
    }

    /// Forget such a URL with this mark, and the override if it was not used.
    pub(super) async fn forget_url(&self, mark: &str) -> Result<(), BmcError> {
        let action = "forget the URL to boot from";
        let system = self.system(action).await?;
        if !uri(&system.body).contains(mark) {
            return Ok(());
        }
        let is_unused = system::boot_setting(&system.body).device == Some(BootDevice::UefiHttp);
        // Null and not the empty text: Ironic sends null with every change of the boot device, so BMCs know it.
        let mut patch = json!({"Boot": {"HttpBootUri": null}});
        if is_unused {
            patch["Boot"]["BootSourceOverrideEnabled"] = json!("Disabled");
        }
        let path = self.system_path(action).await?;
        self.patch(action, path, &system, &patch).await
    }
}

/// The URL that is passed to the firmware; empty without one.
fn uri(system: &Value) -> &str {
    system.pointer("/Boot/HttpBootUri").and_then(Value::as_str).unwrap_or_default()
}
