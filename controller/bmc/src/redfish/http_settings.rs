//! A URL that the firmware boots from, as a setting of the BIOS, on BMCs that have no `HttpBootUri`.
//!
//! Which settings these are is known by their names, not by the maker of the machine. The URL alone is changed: what else has to be set
//! is an operator's to set, and named where it is not. So there is one thing to take back, and it was empty before.

use serde_json::{Map, Value, json};

use super::image_names::secrets;
use super::{Redfish, bios, system};
use crate::{BmcError, ErrorKind};

/// A setting that takes a URL, and what other settings have to be for the firmware to boot from it.
struct UrlSetting {
    url: &'static str,
    needs: &'static [(&'static str, &'static [&'static str])],
}

macro_rules! http_device {
    ($device:literal) => {
        UrlSetting {
            url: concat!("HttpDev", $device, "Uri"),
            needs: &[
                (concat!("HttpDev", $device, "EnDis"), &["Enabled"]),
                (concat!("HttpDev", $device, "DhcpEnDis"), &["Enabled"]),
                (concat!("HttpDev", $device, "TlsMode"), &["None"]),
            ],
        }
    };
}

/// Dell's four devices, and HPE's one URL for all network cards.
static KNOWN: [UrlSetting; 5] = [
    http_device!("1"),
    http_device!("2"),
    http_device!("3"),
    http_device!("4"),
    UrlSetting {
        url: "UrlBootFile",
        needs: &[("HttpSupport", &["Auto", "HttpOnly"]), ("Dhcpv4", &["Enabled"])],
    },
];

/// The settings of a BIOS that are in force, and those that wait for a boot.
struct Bios {
    path: String,
    body: Value,
    pending: Option<Map<String, Value>>,
}

impl Bios {
    fn has(&self, name: &str) -> bool {
        bios::attributes(&self.body).is_some_and(|settings| settings.contains_key(name))
    }

    /// A setting as it is at the next boot. One that is no text is empty.
    fn next(&self, name: &str) -> &str {
        let waiting = self.pending.as_ref().and_then(|pending| pending.get(name));
        let value = waiting.or_else(|| bios::attributes(&self.body)?.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    }

    /// The first setting for a URL that boots from one, and is empty or ours. `Err` is why there is none.
    fn choose(&self, mark: &str) -> Result<&'static UrlSetting, String> {
        let mut missing = Vec::new();
        for setting in KNOWN.iter().filter(|setting| self.has(setting.url)) {
            match self.lacks(setting, mark) {
                None => return Ok(setting),
                Some(lack) => missing.push(lack),
            }
        }
        Err(match missing.as_slice() {
            [] => "it has neither Boot.HttpBootUri nor a BIOS setting for a URL that Anneal knows".to_owned(),
            missing => format!("no BIOS setting for a URL can be used: {}", missing.join("; ")),
        })
    }

    fn lacks(&self, setting: &UrlSetting, mark: &str) -> Option<String> {
        let url = self.next(setting.url);
        if !url.is_empty() && !url.contains(mark) {
            return Some(format!("{} holds a URL that is not Anneal's", setting.url));
        }
        let wrong = setting
            .needs
            .iter()
            .find(|(name, allowed)| self.has(name) && !allowed.contains(&self.next(name)));
        wrong.map(|(name, allowed)| {
            format!("{name} is '{}' and has to be {}", self.next(name), allowed.join(" or "))
        })
    }

    /// Settings that will hold a URL of ours.
    fn ours(&self, mark: &str) -> Map<String, Value> {
        let ours = KNOWN.iter().filter(|setting| self.next(setting.url).contains(mark));
        ours.map(|setting| (setting.url.to_owned(), json!(""))).collect()
    }
}

impl Redfish {
    async fn url_settings(&self, action: &str) -> Result<Bios, BmcError> {
        let (path, body) = self.bios(action).await?;
        let pending = self.pending_settings(action, &body).await?;
        Ok(Bios { path, body, pending })
    }

    /// The settings that wait for a boot, where the BIOS has an object for them.
    async fn pending_settings(
        &self,
        action: &str,
        bios: &Value,
    ) -> Result<Option<Map<String, Value>>, BmcError> {
        match system::settings_object(bios) {
            None => Ok(None),
            Some((object, _)) => Ok(bios::attributes(&self.client.get(action, object).await?.body).cloned()),
        }
    }

    /// Writes the URL into a BIOS setting for it.
    pub(super) async fn write_url_setting(
        &self,
        action: &str,
        url: &str,
        mark: &str,
    ) -> Result<(), BmcError> {
        let unsupported = |why: &str| self.client.error(ErrorKind::Unsupported, action, why);
        let no_bios = |error: BmcError| match error.kind() {
            ErrorKind::Unsupported => unsupported("it has neither Boot.HttpBootUri nor BIOS settings"),
            _ => error,
        };
        let bios = self.url_settings(action).await.map_err(no_bios)?;
        let setting = bios.choose(mark).map_err(|why| unsupported(&why))?;
        if bios.next(setting.url) == url {
            return Ok(());
        }
        let change = Map::from_iter([(setting.url.to_owned(), json!(url))]);
        // What it refuses for good cannot be done: firmware that is locked down has its settings read-only.
        let refused = |error: BmcError| match error.kind() {
            ErrorKind::Protocol if !error.is_retryable() => unsupported(&format!(
                "it does not take the BIOS setting {}: {}",
                setting.url,
                error.message()
            )),
            _ => error,
        };
        self.write_bios(action, &bios.path, &bios.body, &change).await.map_err(refused)?;
        if self.url_settings(action).await?.next(setting.url) == url {
            return Ok(());
        }
        Err(unsupported(&format!("it accepts the BIOS setting {} and does not show it", setting.url)))
    }

    /// The change that empties BIOS settings which hold a URL with this mark; `None` without any.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC refuses for good to show its settings, and none in force is known to hold such a URL:
    /// none is written without reading them before.
    pub(super) async fn own_url_settings(
        &self,
        action: &str,
        mark: &str,
    ) -> Result<Option<OwnUrls>, BmcError> {
        let unshown = |error| self.unshown(action, "BIOS settings", error);
        let (path, body) = match self.bios(action).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            bios => bios.map_err(unshown)?,
        };
        let mut bios = Bios { path, body, pending: None };
        bios.pending = match self.pending_settings(action, &bios.body).await {
            Err(error) if bios.ours(mark).is_empty() => return Err(unshown(error)),
            pending => pending?,
        };
        let change = bios.ours(mark);
        Ok((!change.is_empty()).then_some(OwnUrls { bios, change }))
    }

    pub(super) async fn empty_url_settings(&self, action: &str, own: &OwnUrls) -> Result<(), BmcError> {
        self.write_bios(action, &own.bios.path, &own.bios.body, &own.change).await
    }
}

/// BIOS settings that hold a URL of ours.
pub(super) struct OwnUrls {
    bios: Bios,
    change: Map<String, Value>,
}

impl OwnUrls {
    /// An error without the URLs that are to be taken back: BMCs repeat what they refuse.
    pub(super) fn hidden_in(&self, error: BmcError) -> BmcError {
        error.without(self.change.keys().flat_map(|name| secrets(self.bios.next(name))))
    }
}

#[cfg(test)]
#[path = "http_settings_tests.rs"]
mod tests;
