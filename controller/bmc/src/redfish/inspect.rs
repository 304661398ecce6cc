//! Inspection: reads what a Redfish service reports about a system, bounded in time, number and depth.
//!
//! ```text
//!   System ─┬─ Processors ─▶ members
//!           ├─ EthernetInterfaces ─▶ members
//!           └─ Storage ─▶ members ─▶ Drives      (none: SimpleStorage ─▶ members with their Devices)
//! ```
//!
//! No path is read twice, and nothing deeper than drawn: a service whose links lead in a circle is read once.
//! What the service does not have, or reports in a wrong form, is left out and noted in
//! `plugin_data.redfish.notes`. A resource that cannot be read now (busy, unreachable, refused) is an error:
//! otherwise the inventory of a busy service would look like that of a node without disks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::inventory::{self, Listed, Parts};
use super::{Redfish, client, system};
use crate::{BmcError, ErrorKind, Settings};

const ACTION: &str = "inspect the system";
/// The whole inspection.
const TIME: Duration = Duration::from_secs(110);
/// Members that are read of one collection, and drives of one node.
const MOST: usize = 256;
/// Pages that are read of one collection.
const PAGES: usize = 32;
const NOTES: usize = 32;
const LONGEST_NOTE: usize = 300;

pub(crate) async fn inspect(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<Value, BmcError> {
    let redfish = Redfish::new(info, settings)?;
    let survey = Survey { redfish: &redfish, read: BTreeSet::new(), notes: Vec::new() };
    tokio::time::timeout(TIME, survey.run()).await.unwrap_or_else(|_| {
        let message = format!("its inventory was not read within {} s", TIME.as_secs());
        Err(redfish.client.error(ErrorKind::Timeout, ACTION, &message))
    })
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST_NOTE).collect()
}

struct Survey<'a> {
    redfish: &'a Redfish,
    read: BTreeSet<String>,
    notes: Vec<String>,
}

impl Survey<'_> {
    async fn run(mut self) -> Result<Value, BmcError> {
        let system = self.redfish.system(ACTION).await?.body;
        if system.get("PowerState").is_none() && system.get("UUID").is_none() {
            let path = self.redfish.system_path(ACTION).await?;
            let message = format!("{path} is not a ComputerSystem");
            return Err(self.redfish.client.error(ErrorKind::Protocol, ACTION, &message));
        }
        let processors = self.collection(&system, "Processors").await?;
        let nics = self.collection(&system, "EthernetInterfaces").await?;
        let drives = self.drives(&system).await?;
        let parts = Parts { system: &system, processors: &processors, nics: &nics.found, drives: &drives };
        let mut notes = Vec::new();
        let inventory =
            inventory::inventory(&parts, self.redfish.config.endpoint.base.host_str(), &mut notes);
        notes.into_iter().for_each(|note| self.note(note));
        let mut details = inventory::plugin_data(&system);
        details.insert("system".to_owned(), json!(self.redfish.system_path(ACTION).await?));
        details.insert("notes".to_owned(), json!(self.notes));
        Ok(json!({"inventory": inventory, "plugin_data": {"redfish": details}}))
    }

    fn note(&mut self, note: String) {
        let note = short(&note);
        match self.notes.len() {
            len if len < NOTES => self.notes.push(note),
            NOTES => self.notes.push("and more".to_owned()),
            _ => {}
        }
    }

    /// A resource that was not read yet and is there; otherwise a note.
    async fn resource(&mut self, path: &str) -> Result<Option<Value>, BmcError> {
        if !self.read.insert(path.to_owned()) {
            return Ok(None);
        }
        let client = &self.redfish.client;
        let action = format!("read {}", short(path));
        let reply = client.request(&action, Method::GET, path, None, None).await?;
        let passing = client::is_passing(reply.status);
        match client.succeeded(&action, &reply) {
            Ok(()) if reply.body.is_object() => Ok(Some(reply.body)),
            Err(error) if passing => Err(error),
            // Links to what is not there are common; sushy-emulator answers 500 to them.
            Err(error) => {
                self.note(format!("left out: {error}"));
                Ok(None)
            }
            Ok(()) => {
                self.note(format!("left out: {path} is not a JSON object"));
                Ok(None)
            }
        }
    }

    /// The members of the collection that `parent` links to under `key`.
    async fn collection(&mut self, parent: &Value, key: &str) -> Result<Listed, BmcError> {
        let mut page = system::link(parent.get(key)).map(str::to_owned);
        let mut paths: Vec<String> = Vec::new();
        let mut pages = 0;
        while let Some(path) = page.take()
            && paths.len() <= MOST
        {
            pages += 1;
            if pages > PAGES {
                self.note(format!("{key} has more than {PAGES} pages: the rest is left out"));
                break;
            }
            let Some(collection) = self.resource(&path).await? else { break };
            paths.extend(system::members(&collection).into_iter().map(str::to_owned));
            let next = collection.get("Members@odata.nextLink").and_then(Value::as_str);
            page = next.filter(|next| super::config::is_path(next)).map(str::to_owned);
        }
        self.all(key, paths).await
    }

    async fn all(&mut self, what: &str, paths: Vec<String>) -> Result<Listed, BmcError> {
        if paths.len() > MOST {
            self.note(format!("it lists more than {MOST} {what}: the rest is left out"));
        }
        let mut listed = Listed { found: Vec::new(), complete: paths.len() <= MOST };
        for path in paths.iter().take(MOST) {
            // Listed twice is there once.
            if self.read.contains(path) {
                continue;
            }
            match self.resource(path).await? {
                Some(resource) => listed.found.push(resource),
                None => listed.complete = false,
            }
        }
        Ok(listed)
    }

    async fn drives(&mut self, system: &Value) -> Result<Vec<Value>, BmcError> {
        let storage = self.collection(system, "Storage").await?.found;
        let links = storage.iter().filter_map(|one| one.get("Drives")?.as_array()).flatten();
        let paths: Vec<String> =
            links.filter_map(|link| system::link(Some(link))).map(str::to_owned).collect();
        if !paths.is_empty() {
            return Ok(self.all("Drives", paths).await?.found);
        }
        let simple = self.collection(system, "SimpleStorage").await?.found;
        let devices = simple.iter().filter_map(|one| one.get("Devices")?.as_array()).flatten();
        let devices: Vec<Value> = devices.cloned().collect();
        if devices.len() > MOST {
            self.note(format!("it lists more than {MOST} Devices: the rest is left out"));
        }
        Ok(devices.into_iter().take(MOST).collect())
    }
}
