//! Virtual media (resource VirtualMedia, DSP0268): below the system, or below its managers as in older services.
//!
//! Services differ in what they want to hear. What is sent is what the service itself names: in the ActionInfo of the action,
//! in the allowable values next to it, or among the properties of the drive. A service that refuses that is asked once more,
//! with what its error names, or with the URL alone. What a service says of a drive is read back after each change.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::client::Reply;
use super::config::is_path;
use super::image_names::{is_marked, names_another, secrets, secrets_of, shown, without_user};
use super::{Redfish, system};
use crate::{BmcError, ErrorKind, MediaKind, VirtualDrive};

const INSERT: &str = "#VirtualMedia.InsertMedia";
const EJECT: &str = "#VirtualMedia.EjectMedia";
/// How long a drive may take to show what was done to it.
const SETTLE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);

/// Names of the media that a drive of this kind takes.
fn types(kind: MediaKind) -> &'static [&'static str] {
    match kind {
        MediaKind::Disk => &["USBStick"],
        MediaKind::Cdrom => &["CD", "DVD"],
        MediaKind::Floppy => &["Floppy"],
    }
}

/// A virtual drive as it was read.
struct Drive {
    path: String,
    reply: Reply,
}

impl Drive {
    fn body(&self) -> &Value {
        &self.reply.body
    }

    fn is_inserted(&self) -> bool {
        is_inserted(self.body())
    }

    /// What an error says of a medium that is not ours.
    fn described(&self) -> String {
        let image = view(self.body()).image.unwrap_or_else(|| "an image that it does not name".to_owned());
        format!("{} holds {image}", self.path)
    }
}

impl Redfish {
    /// Every virtual drive.
    async fn drives(&self, action: &str) -> Result<Vec<Drive>, BmcError> {
        let system = self.system(action).await?.body;
        self.drives_of(action, &system).await
    }

    /// Every virtual drive of a system: below it, or where it has none there, below its managers.
    async fn drives_of(&self, action: &str, system: &Value) -> Result<Vec<Drive>, BmcError> {
        let mut drives = self.drives_below(action, system).await?;
        if drives.is_empty() {
            let managers = system.pointer("/Links/ManagedBy").and_then(Value::as_array);
            for manager in managers.into_iter().flatten().filter_map(|manager| system::link(Some(manager))) {
                let manager = self.client.get(action, manager).await?.body;
                drives.extend(self.drives_below(action, &manager).await?);
            }
        }
        if drives.is_empty() {
            return Err(self.client.error(ErrorKind::Unsupported, action, "it has no virtual media"));
        }
        Ok(drives)
    }

    /// The virtual drives of a system or a manager.
    async fn drives_below(&self, action: &str, owner: &Value) -> Result<Vec<Drive>, BmcError> {
        let Some(collection) = system::link(owner.get("VirtualMedia")) else { return Ok(Vec::new()) };
        let mut drives = Vec::new();
        for path in system::members(&self.client.get(action, collection).await?.body) {
            drives.push(Drive { path: path.to_owned(), reply: self.client.get(action, path).await? });
        }
        Ok(drives)
    }

    pub(super) async fn list_media(&self) -> Result<Vec<VirtualDrive>, BmcError> {
        let drives = self.drives("read the virtual media").await?;
        Ok(drives.iter().map(|drive| view(drive.body())).collect())
    }

    /// Into the first drive of the kind that accepts it, in the place of what is in that.
    pub(super) async fn insert(&self, kind: MediaKind, url: &str) -> Result<(), BmcError> {
        let action = format!("insert a virtual {kind}");
        let mut drives = self.drives(&action).await?;
        drives.retain(|drive| takes(drive.body(), kind));
        if drives.is_empty() {
            let message = format!("it has no virtual {kind}");
            return Err(self.client.error(ErrorKind::Unsupported, &action, &message));
        }
        self.insert_into_one_of(&action, drives, url, None).await
    }

    /// Into the first virtual CD drive that accepts it, and that is empty or holds a medium with the `mark` of ours.
    pub(super) async fn insert_own(&self, url: &str, mark: &str) -> Result<(), BmcError> {
        let action = "insert the boot medium";
        let mut drives = self.drives(action).await?;
        drives.retain(|drive| takes(drive.body(), MediaKind::Cdrom));
        let (usable, foreign): (Vec<_>, Vec<_>) = drives
            .into_iter()
            .partition(|drive| !drive.is_inserted() || is_marked(drive.body(), mark) == Some(true));
        if !usable.is_empty() {
            return self.insert_into_one_of(action, usable, url, Some(mark)).await;
        }
        let message = match foreign.as_slice() {
            [] => "it has no virtual CD drive".to_owned(),
            foreign => {
                let list = foreign.iter().map(Drive::described).collect::<Vec<_>>().join(", ");
                format!(
                    "no virtual CD drive is free, and Anneal ejects no medium that is not its own: {list}"
                )
            }
        };
        Err(self.client.error(ErrorKind::Unsupported, action, &message))
    }

    /// Each drive is tried in its turn; the error is that of the last. Some drives take no URL, and say so only then.
    async fn insert_into_one_of(
        &self,
        action: &str,
        drives: Vec<Drive>,
        url: &str,
        mark: Option<&str>,
    ) -> Result<(), BmcError> {
        let mut refused = self.client.error(ErrorKind::Unsupported, action, "it has no such drive");
        for drive in drives {
            match self.insert_into(action, drive, url, mark).await {
                Err(error) if error.kind() == ErrorKind::Unreachable || error.kind() == ErrorKind::Auth => {
                    return Err(error.without(secrets(url)));
                }
                Err(error) => refused = error,
                Ok(()) => return Ok(()),
            }
        }
        // The URL may hold a password, and BMCs repeat what they refuse.
        Err(refused.without(secrets(url)))
    }

    async fn insert_into(
        &self,
        action: &str,
        mut drive: Drive,
        url: &str,
        mark: Option<&str>,
    ) -> Result<(), BmcError> {
        if drive.is_inserted() {
            // Also a drive that names this very URL: some do so for a while after it was ejected.
            drive = self.take_out(action, drive).await?;
        }
        let target = action_target(drive.body(), INSERT);
        let advertised = match target {
            Some(_) => self.parameters(action, drive.body()).await?,
            None => properties(drive.body()),
        };
        let first = body(url, &advertised);
        let Some(reply) = self.refused(action, &drive, target, &first).await? else {
            return self.read_back(action, drive, url, mark).await;
        };
        let named = demanded(&reply.body, &first);
        let second = match (named.is_empty(), advertised.is_empty()) {
            (false, _) => {
                body(url, &advertised.iter().map(|(key, value)| (*key, value.clone())).chain(named).collect())
            }
            (true, false) => body(url, &Extras::new()),
            (true, true) => return self.client.succeeded(action, &reply),
        };
        match self.refused(action, &drive, target, &second).await? {
            None => self.read_back(action, drive, url, mark).await,
            Some(reply) => self.client.succeeded(action, &reply),
        }
    }

    /// Asks for the medium. The reply, if it refuses with an error of the client (4xx).
    async fn refused(
        &self,
        action: &str,
        drive: &Drive,
        target: Option<&str>,
        body: &Value,
    ) -> Result<Option<Reply>, BmcError> {
        let reply = match target {
            Some(target) => self.client.request(action, Method::POST, target, Some(body), None).await?,
            None => self.patched(action, &drive.path, &drive.reply, body).await?,
        };
        if reply.status.is_client_error() {
            return Ok(Some(reply));
        }
        self.client.succeeded(action, &reply)?;
        self.watch(action, reply).await?;
        Ok(None)
    }

    /// What the service names besides the URL for the insertion by an action.
    async fn parameters(&self, action: &str, drive: &Value) -> Result<Extras, BmcError> {
        let Some(offered) = drive.pointer("/Actions").and_then(|actions| actions.get(INSERT)) else {
            return Ok(Extras::new());
        };
        let mut extras = Extras::new();
        let info = offered.get("@Redfish.ActionInfo").and_then(Value::as_str).filter(|path| is_path(path));
        if let Some(path) = info {
            // A service that names a resource which it does not have has named nothing.
            let info = self.client.get(action, path).await.map(|reply| reply.body).unwrap_or_default();
            let parameters = info.get("Parameters").and_then(Value::as_array);
            for parameter in parameters.into_iter().flatten() {
                let allowed = system::strings(parameter.get("AllowableValues"));
                let name = parameter.get("Name").and_then(Value::as_str).unwrap_or_default();
                extras.extend(extra(name, allowed.as_deref()));
            }
        }
        for name in [TRANSFER_PROTOCOL, TRANSFER_METHOD] {
            let allowed = system::strings(offered.get(format!("{name}@Redfish.AllowableValues").as_str()));
            if allowed.is_some() {
                extras.extend(extra(name, allowed.as_deref()));
            }
        }
        Ok(extras)
    }

    /// Waits until the drive shows the medium. One that shows nothing has not taken it. Where the medium is `mark`ed, the drive
    /// has to show the mark: without it, whose medium it is could not be known later.
    async fn read_back(
        &self,
        action: &str,
        drive: Drive,
        url: &str,
        mark: Option<&str>,
    ) -> Result<(), BmcError> {
        let path = drive.path;
        let deadline = Instant::now() + SETTLE;
        loop {
            let reply = self.client.get(action, &path).await?;
            let image = reply.body.get("Image").and_then(Value::as_str).filter(|image| !image.is_empty());
            // Services hide users and passwords of a URL, and some the whole of it.
            let is_this = match mark {
                Some(mark) => is_marked(&reply.body, mark) == Some(true),
                None => image.is_none_or(|image| without_user(image) == without_user(url)),
            };
            if is_inserted(&reply.body) && is_this {
                return Ok(());
            }
            if Instant::now() < deadline {
                sleep(LOOK).await;
                continue;
            }
            if !is_inserted(&reply.body) {
                let message = format!(
                    "it accepted the URL, but {path} says that nothing is inserted; the BMC has to reach the host of the URL"
                );
                return Err(self.client.error(ErrorKind::Protocol, action, &message).with_retryable(true));
            }
            // The drive was empty, so this is the medium that was put in, unless the drive names another that came since.
            if mark.is_some() && !names_another(&reply.body, url) {
                self.take_out(action, Drive { path: path.clone(), reply }).await?;
            }
            let message = format!("{path} does not show the URL that was inserted");
            return Err(self.client.error(ErrorKind::Unsupported, action, &message));
        }
    }

    pub(super) async fn eject(&self, kinds: &[MediaKind]) -> Result<(), BmcError> {
        let action = "eject virtual media";
        for drive in self.drives(action).await? {
            if drive.is_inserted() && kinds.iter().any(|kind| takes(drive.body(), *kind)) {
                self.take_out(action, drive).await?;
            }
        }
        Ok(())
    }

    /// Empties every virtual CD drive that holds a medium with this mark.
    pub(super) async fn eject_own(&self, mark: &str) -> Result<(), BmcError> {
        let action = "eject the boot medium";
        let system = self.system(action).await?.body;
        let drives = self.drives_of(action, &system).await;
        // Nothing is inserted before every drive was read.
        for drive in drives.map_err(|error| self.unshown(action, "virtual media", error))? {
            if drive.is_inserted() && is_marked(drive.body(), mark) == Some(true) {
                self.take_out(action, drive).await?;
            }
        }
        Ok(())
    }

    /// Empties a drive, and returns it as it is then. An error of a drive that is empty afterwards is none.
    async fn take_out(&self, action: &str, drive: Drive) -> Result<Drive, BmcError> {
        let before = drive.body().clone();
        let taken_out = self.emptied(action, drive).await;
        // BMCs repeat what they refuse.
        taken_out.map_err(|error| error.without(secrets_of(&before)))
    }

    async fn emptied(&self, action: &str, drive: Drive) -> Result<Drive, BmcError> {
        let patch = json!({"Image": null, "Inserted": false});
        let asked = match action_target(drive.body(), EJECT) {
            Some(target) => {
                let reply = self.client.request(action, Method::POST, target, Some(&json!({})), None).await;
                match reply.and_then(|reply| self.client.succeeded(action, &reply).map(|()| reply)) {
                    Ok(reply) => self.watch(action, reply).await,
                    Err(error) => Err(error),
                }
            }
            None => self.patch(action, &drive.path, &drive.reply, &patch).await,
        };
        let deadline = Instant::now() + if asked.is_ok() { SETTLE } else { Duration::ZERO };
        loop {
            let reply = self.client.get(action, &drive.path).await?;
            if !is_inserted(&reply.body) {
                return Ok(Drive { path: drive.path, reply });
            }
            if Instant::now() >= deadline {
                asked?;
                let message = format!("{} still says that a medium is inserted", drive.path);
                return Err(self.client.error(ErrorKind::Protocol, action, &message).with_retryable(true));
            }
            sleep(LOOK).await;
        }
    }
}

const TRANSFER_PROTOCOL: &str = "TransferProtocolType";
const TRANSFER_METHOD: &str = "TransferMethod";

/// Parameters besides the URL. The protocol is that of the URL.
type Extras = Vec<(&'static str, Option<Value>)>;

/// A parameter that a service names, if it is one that we know, with what is sent for it; `None`: the protocol of the URL.
fn extra(name: &str, allowed: Option<&[String]>) -> Option<(&'static str, Option<Value>)> {
    let allows = |value: &str| allowed.is_none_or(|allowed| allowed.iter().any(|known| known == value));
    match name {
        "Inserted" => Some(("Inserted", Some(json!(true)))),
        "WriteProtected" => Some(("WriteProtected", Some(json!(true)))),
        TRANSFER_PROTOCOL if allows("HTTP") => Some((TRANSFER_PROTOCOL, None)),
        TRANSFER_METHOD if allows("Stream") => Some((TRANSFER_METHOD, Some(json!("Stream")))),
        _ => None,
    }
}

/// What a drive that is changed by PATCH has among its properties.
fn properties(drive: &Value) -> Extras {
    ["Inserted", "WriteProtected"]
        .into_iter()
        .filter(|name| drive.get(name).is_some())
        .map(|name| (name, Some(json!(true))))
        .collect()
}

/// The parameters that an error names, and that were not sent. Services use all kinds of codes for this, or none.
fn demanded(error: &Value, sent: &Value) -> Extras {
    let text = error.to_string();
    let known = [
        (TRANSFER_PROTOCOL, None),
        (TRANSFER_METHOD, Some(json!("Stream"))),
        ("Inserted", Some(json!(true))),
        ("WriteProtected", Some(json!(true))),
        // Of services that ask for a user even where the server wants none.
        ("UserName", Some(json!("none"))),
        ("Password", Some(json!("none"))),
    ];
    known.into_iter().filter(|(name, _)| text.contains(name) && sent.get(name).is_none()).collect()
}

fn body(url: &str, extras: &Extras) -> Value {
    let protocol = url.split_once("://").map(|(scheme, _)| scheme.to_uppercase());
    let mut body = Map::from_iter([("Image".to_owned(), json!(url))]);
    for (name, value) in extras {
        let value = value.clone().unwrap_or_else(|| json!(protocol.as_deref().unwrap_or("HTTP")));
        body.insert((*name).to_owned(), value);
    }
    Value::Object(body)
}

/// Where an action is posted; `None`: the service offers none, and the drive is changed by PATCH.
fn action_target<'a>(drive: &'a Value, name: &str) -> Option<&'a str> {
    let target = drive.get("Actions")?.get(name)?.get("target")?.as_str();
    target.filter(|target| is_path(target))
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
        image: image.map(shown),
    }
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
