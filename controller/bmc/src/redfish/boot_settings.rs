//! Where properties of a system's `Boot` are changed. Some services have a settings object for what waits for the next boot
//! (DSP0266, "Settings resource"), and take there exactly those properties that it holds: all of an override, the mode alone, or
//! nothing but the boot order.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::client::{self, Reply};
use super::{Redfish, system};
use crate::BmcError;

/// A resource as it was read, to be changed under its ETag.
struct Read {
    path: String,
    reply: Reply,
}

/// A system, and its settings object if it has one.
pub(super) struct BootResources {
    system: Read,
    pending: Option<Read>,
    on_reset: bool,
}

impl BootResources {
    /// The system with what can be chosen: where it names no choices itself, those of its settings object.
    pub(super) fn offered(&self) -> Value {
        let mut system = self.system.reply.body.clone();
        system["Boot"] = Value::Object(merged(self.boot_of_system(), self.boot_of_pending()));
        system
    }

    /// The system as it boots next.
    pub(super) fn next(&self) -> Value {
        json!({ "Boot": merged(self.boot_of_pending(), self.boot_of_system()) })
    }

    fn boot_of_system(&self) -> Option<&Map<String, Value>> {
        boot(&self.system.reply.body)
    }

    fn boot_of_pending(&self) -> Option<&Map<String, Value>> {
        boot(&self.pending.as_ref()?.reply.body)
    }
}

impl Redfish {
    /// Reads the system, and its settings object. A link that leads to none names none: what answers so now answers so always.
    pub(super) async fn boot_resources(&self, action: &str) -> Result<BootResources, BmcError> {
        let path = self.system_path(action).await?.to_owned();
        let reply = self.client.get(action, &path).await?;
        let object = system::settings_object(&reply.body).map(|(path, on_reset)| (path.to_owned(), on_reset));
        let mut on_reset = false;
        let mut pending = None;
        if let Some((path, applies)) = object {
            let reply = self.client.request(action, Method::GET, &path, None, None).await?;
            match self.client.succeeded(action, &reply) {
                Ok(()) => (pending, on_reset) = (Some(Read { path, reply }), applies),
                Err(error) if client::is_passing(reply.status) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(BootResources { system: Read { path, reply }, pending, on_reset })
    }

    /// Sends a change of `Boot`: each property to the resource that takes it.
    pub(super) async fn change_boot(
        &self,
        action: &str,
        read: &BootResources,
        patch: &Value,
    ) -> Result<(), BmcError> {
        let (waiting, direct) = split(patch, read.boot_of_pending());
        if let Some(pending) = read.pending.as_ref().filter(|_| !waiting.is_empty()) {
            let mut body = json!({ "Boot": waiting });
            if read.on_reset {
                body[system::APPLY_TIME] = json!({"ApplyTime": "OnReset"});
            }
            self.patch(action, &pending.path, &pending.reply, &body).await?;
        }
        if direct.is_empty() {
            return Ok(());
        }
        let body = json!({ "Boot": direct });
        self.patch(action, &read.system.path, &read.system.reply, &body).await
    }
}

fn boot(resource: &Value) -> Option<&Map<String, Value>> {
    resource.get("Boot")?.as_object()
}

/// The properties of both; the first one's count.
fn merged(first: Option<&Map<String, Value>>, second: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut merged = second.cloned().unwrap_or_default();
    merged.extend(first.cloned().unwrap_or_default());
    merged
}

/// The properties of a change that the settings object holds, and the others.
fn split(patch: &Value, pending: Option<&Map<String, Value>>) -> (Map<String, Value>, Map<String, Value>) {
    let properties = boot(patch).cloned().unwrap_or_default();
    properties.into_iter().partition(|(name, _)| pending.is_some_and(|pending| pending.contains_key(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_property_goes_to_the_resource_that_holds_it() {
        let patch = json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideMode": "UEFI"}});
        let names = |pending: Option<Value>| {
            let pending = pending.as_ref().and_then(Value::as_object);
            let (waiting, direct) = split(&patch, pending);
            [waiting, direct].map(|part| part.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        let (target, mode) = ("BootSourceOverrideTarget".to_owned(), "BootSourceOverrideMode".to_owned());
        assert_eq!(names(None), [vec![], vec![mode.clone(), target.clone()]]);
        assert_eq!(names(Some(json!({"BootOrder": []}))), [vec![], vec![mode.clone(), target.clone()]]);
        let only_mode = json!({"BootOrder": [], "BootSourceOverrideMode": null});
        assert_eq!(names(Some(only_mode)), [vec![mode.clone()], vec![target.clone()]]);
        let all = json!({"BootSourceOverrideMode": null, "BootSourceOverrideTarget": "None"});
        assert_eq!(names(Some(all)), [vec![mode, target], vec![]]);
    }

    #[test]
    fn choices_are_those_of_the_system_and_what_boots_next_is_what_waits() {
        let read = |body: Value| Read { path: "/x".to_owned(), reply: Reply::of(body) };
        let both = BootResources {
            system: read(
                json!({"Id": "1", "Boot": {"BootSourceOverrideTarget": "None", "Choices": ["Pxe"]}}),
            ),
            pending: Some(read(
                json!({"Boot": {"BootSourceOverrideTarget": "Cd", "Choices": ["Cd"], "More": 1}}),
            )),
            on_reset: false,
        };
        assert_eq!(both.next()["Boot"]["BootSourceOverrideTarget"], "Cd");
        let offered = both.offered();
        assert_eq!((&offered["Boot"]["Choices"], &offered["Boot"]["More"]), (&json!(["Pxe"]), &json!(1)));
        assert_eq!(offered["Id"], "1");
    }
}
