//! Virtual media (resource VirtualMedia, DSP0268): below the system, or in older services below its managers.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::client::Reply;
use super::config::is_path;
use super::{Redfish, system};
use crate::{BmcError, ErrorKind, MediaKind, VirtualDrive};

/// Names of the media that a drive of this kind takes.
fn types(kind: MediaKind) -> &'static [&'static str] {
    match kind {
        MediaKind::Disk => &["USBStick"],
        MediaKind::Cdrom => &["CD", "DVD"],
        MediaKind::Floppy => &["Floppy"],
    }
}

impl Redfish {
    /// Every virtual drive with its path.
    async fn drives(&self, action: &str) -> Result<Vec<(String, Reply)>, BmcError> {
        let system = self.system(action).await?.body;
        let mut collections = Vec::new();
        match system::link(system.get("VirtualMedia")) {
            Some(path) => collections.push(path.to_owned()),
            None => {
                let managers = system.pointer("/Links/ManagedBy").and_then(Value::as_array);
                for manager in
                    managers.into_iter().flatten().filter_map(|manager| system::link(Some(manager)))
                {
                    let manager = self.client.get(action, manager).await?.body;
                    collections.extend(system::link(manager.get("VirtualMedia")).map(str::to_owned));
                }
            }
        }
        let mut drives = Vec::new();
        for collection in collections {
            for path in system::members(&self.client.get(action, &collection).await?.body) {
                drives.push((path.to_owned(), self.client.get(action, path).await?));
            }
        }
        if drives.is_empty() {
            return Err(self.client.error(ErrorKind::Unsupported, action, "it has no virtual media"));
        }
        Ok(drives)
    }

    pub(super) async fn list_media(&self) -> Result<Vec<VirtualDrive>, BmcError> {
        let drives = self.drives("read the virtual media").await?;
        Ok(drives.iter().map(|(_, drive)| view(&drive.body)).collect())
    }

    pub(super) async fn insert(&self, kind: MediaKind, url: &str) -> Result<(), BmcError> {
        let action = format!("insert a virtual {kind}");
        let drives = self.drives(&action).await?;
        let (path, drive) = drives.iter().find(|(_, drive)| takes(&drive.body, kind)).ok_or_else(|| {
            self.client.error(ErrorKind::Unsupported, &action, &format!("it has no virtual {kind}"))
        })?;
        let lies_in = is_inserted(&drive.body);
        if lies_in && drive.body.get("Image").and_then(Value::as_str) == Some(url) {
            return Ok(());
        }
        if lies_in {
            self.take_out(&action, path, drive).await?;
        }
        let body = json!({"Image": url, "Inserted": true, "WriteProtected": true});
        let done = self.ask(&action, path, drive, "#VirtualMedia.InsertMedia", &body, &body).await;
        // The URL may hold a password, and BMCs repeat what they refuse.
        done.map_err(|error| error.without(std::iter::once(url)))
    }

    pub(super) async fn eject(&self, kinds: &[MediaKind]) -> Result<(), BmcError> {
        let action = "eject virtual media";
        for (path, drive) in self.drives(action).await? {
            if is_inserted(&drive.body) && kinds.iter().any(|kind| takes(&drive.body, *kind)) {
                self.take_out(action, &path, &drive).await?;
            }
        }
        Ok(())
    }

    async fn take_out(&self, action: &str, path: &str, drive: &Reply) -> Result<(), BmcError> {
        let patch = json!({"Image": null, "Inserted": false});
        self.ask(action, path, drive, "#VirtualMedia.EjectMedia", &json!({}), &patch).await
    }

    /// By the action, or in services that offer none by a PATCH.
    async fn ask(
        &self,
        action: &str,
        path: &str,
        drive: &Reply,
        name: &str,
        body: &Value,
        patch: &Value,
    ) -> Result<(), BmcError> {
        let offered =
            drive.body.get("Actions").and_then(|actions| actions.get(name)?.get("target")?.as_str());
        let Some(target) = offered.filter(|target| is_path(target)) else {
            return self.patch(action, path, drive, patch).await;
        };
        let reply = self.client.request(action, Method::POST, target, Some(body), None).await?;
        self.client.succeeded(action, &reply)?;
        self.watch(action, reply).await
    }
}

fn media_types(drive: &Value) -> Vec<&str> {
    drive
        .get("MediaTypes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn takes(drive: &Value, kind: MediaKind) -> bool {
    media_types(drive).iter().any(|known| types(kind).contains(known))
}

fn is_inserted(drive: &Value) -> bool {
    drive.get("Inserted").and_then(Value::as_bool).unwrap_or(false)
}

fn view(drive: &Value) -> VirtualDrive {
    let image = drive.get("Image").and_then(Value::as_str).filter(|image| !image.is_empty());
    VirtualDrive {
        media_types: media_types(drive).into_iter().map(str::to_owned).collect(),
        inserted: is_inserted(drive),
        image: image.map(without_password),
    }
}

fn without_password(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut parsed) if parsed.password().is_some() => match parsed.set_password(None) {
            Ok(()) => parsed.into(),
            Err(()) => String::new(),
        },
        _ => url.to_owned(),
    }
}
