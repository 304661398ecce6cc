//! The resources of a recording, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// Largest file of a recording that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// Longest chain of directories.
const DEEPEST: usize = 32;

/// What a boot of a system was made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boot {
    /// `BootSourceOverrideTarget`, where an override was in force.
    pub source: Option<String>,
    /// Every URL that the firmware had: `HttpBootUri`, and settings of the BIOS.
    pub urls: Vec<String>,
}

/// A recorded tree, and what happened to it.
#[derive(Debug, Default, Clone)]
pub struct Tree {
    resources: BTreeMap<String, Value>,
    /// Recorded answers that are not a resource: status and body.
    other: BTreeMap<String, (StatusCode, String)>,
    /// Settings objects, with the resource that each is for.
    pending: BTreeMap<String, String>,
    /// Changes in settings objects that wait for a boot, by the object's path.
    waiting: BTreeMap<String, Value>,
    /// Settings objects that were recorded with nothing that waits.
    empty: BTreeMap<String, Value>,
    /// Resource and name of an action by its target.
    actions: BTreeMap<String, (String, String)>,
    /// Resources and names of the actions that were recorded.
    recorded_actions: BTreeSet<(String, String)>,
    changes: u64,
    /// Boots, oldest first.
    pub boots: Vec<Boot>,
}

/// A path without the slash at its end.
fn plain(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

fn link(value: &Value) -> Option<String> {
    value["@odata.id"].as_str().map(plain)
}

impl Tree {
    /// Reads every `index.json` below a directory; its directory is the path of the resource. A `custom.json` is an answer with
    /// another status.
    ///
    /// # Errors
    /// When a file cannot be read, or there is no service root.
    pub fn load(directory: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read(directory, "", 0)?;
        ensure!(tree.get("/redfish/v1").is_some(), "{} holds no /redfish/v1", directory.display());
        tree.index();
        Ok(tree)
    }

    fn read(&mut self, directory: &Path, path: &str, depth: usize) -> Result<()> {
        ensure!(depth <= DEEPEST, "{} is nested too deeply", directory.display());
        for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let file = entry.path();
            if entry.file_type()?.is_dir() {
                self.read(&file, &format!("{path}/{name}"), depth + 1)?;
                continue;
            }
            if !matches!(name.as_str(), "index.json" | "custom.json") || entry.metadata()?.len() > LARGEST {
                continue;
            }
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let json: Result<Value, _> = serde_json::from_str(&text);
            let json = match (name.as_str(), json) {
                ("index.json", Ok(json)) => {
                    self.resources.insert(path.to_owned(), json);
                    continue;
                }
                // Some services send what is no JSON.
                ("index.json", Err(_)) => {
                    self.other.insert(path.to_owned(), (StatusCode::OK, text));
                    continue;
                }
                (_, json) => json.with_context(|| file.display().to_string())?,
            };
            let status = json["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            let status = status.and_then(|status| StatusCode::from_u16(status).ok());
            let status = status.with_context(|| format!("{} has no status", file.display()))?;
            self.other
                .insert(path.to_owned(), (status, json["body"].as_str().unwrap_or_default().to_owned()));
        }
        Ok(())
    }

    fn index(&mut self) {
        for (path, resource) in &self.resources {
            if let Some(object) = link(&resource["@Redfish.Settings"]["SettingsObject"]) {
                self.pending.insert(object, path.clone());
            }
            for (name, action) in resource["Actions"].as_object().into_iter().flatten() {
                if let Some(target) = action["target"].as_str() {
                    self.actions.insert(plain(target), (path.clone(), name.clone()));
                }
            }
        }
        self.recorded_actions = self.actions.values().cloned().collect();
        for object in self.pending.keys() {
            let recorded = self.resources.get(object).cloned().unwrap_or_default();
            if recorded["Attributes"].as_object().is_none_or(Map::is_empty) && recorded.get("Boot").is_none()
            {
                self.empty.insert(object.clone(), recorded);
            }
        }
    }

    /// A resource.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.resources.get(path.trim_end_matches('/'))
    }

    /// A resource that another one links to.
    #[must_use]
    pub fn linked(&self, value: &Value) -> Option<(String, &Value)> {
        let path = link(value)?;
        let resource = self.get(&path)?;
        Some((path, resource))
    }

    /// Whether a resource was recorded with an action.
    pub(super) fn was_recorded_with(&self, path: &str, name: &str) -> bool {
        self.recorded_actions.contains(&(plain(path), name.to_owned()))
    }

    /// Shows an action of a resource that was not recorded, or hides it again.
    pub(super) fn offer(&mut self, path: &str, name: &str, target: Option<&str>) {
        if let Some(target) = target {
            self.actions.insert(plain(target), (plain(path), name.to_owned()));
        }
        self.change(path, |resource| match (target, resource["Actions"].as_object_mut()) {
            (Some(target), Some(actions)) => drop(actions.insert(name.to_owned(), json!({"target": target}))),
            (None, Some(actions)) => drop(actions.remove(name)),
            (_, None) => {}
        });
    }

    /// Every resource of a schema, with its path.
    pub fn every(&self, schema: &str) -> impl Iterator<Item = (&String, &Value)> {
        let prefix = format!("#{schema}.");
        let is_one = move |(_, resource): &(&String, &Value)| {
            resource["@odata.type"].as_str().is_some_and(|kind| kind.starts_with(&prefix))
        };
        self.resources.iter().filter(is_one)
    }

    /// Every resource with its path.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.resources.iter()
    }

    pub(super) fn other_answer(&self, path: &str) -> Option<(StatusCode, &str)> {
        let (status, body) = self.other.get(path.trim_end_matches('/'))?;
        Some((*status, body))
    }

    pub(super) fn is_sessions(&self, path: &str) -> bool {
        let root = self.get("/redfish/v1").unwrap_or(&Value::Null);
        link(&root["Links"]["Sessions"]) == Some(plain(path))
    }

    /// Resource and name of the action with this target.
    pub(super) fn action(&self, target: &str) -> Option<(String, String)> {
        self.actions.get(target.trim_end_matches('/')).cloned()
    }

    /// The resource whose settings object this is.
    pub(super) fn is_pending_for(&self, path: &str) -> Option<&str> {
        self.pending.get(path.trim_end_matches('/')).map(String::as_str)
    }

    /// Settings object of a resource, and its path.
    #[must_use]
    pub fn pending_of(&self, path: &str) -> Option<(String, &Value)> {
        self.linked(&self.get(path)?["@Redfish.Settings"]["SettingsObject"])
    }

    /// Changes a resource that is there; its ETag changes with it.
    pub(super) fn change(&mut self, path: &str, work: impl FnOnce(&mut Value)) {
        let Some(resource) = self.resources.get_mut(path.trim_end_matches('/')) else { return };
        work(resource);
        self.changes += 1;
        let tag = resource["@odata.etag"].as_str().map(|tag| if tag.starts_with("W/") { "W/" } else { "" });
        if let Some(weak) = tag {
            resource["@odata.etag"] = json!(format!("{weak}\"changed-{}\"", self.changes));
        }
    }

    /// The systems, in the order of their collection.
    #[must_use]
    pub fn systems(&self) -> Vec<String> {
        let root = self.get("/redfish/v1").unwrap_or(&Value::Null);
        let collection = self.linked(&root["Systems"]).map_or(&Value::Null, |(_, collection)| collection);
        collection["Members"].as_array().into_iter().flatten().filter_map(link).collect()
    }

    /// A system starts: what waits in settings objects is put in force, and an override for one boot is used up.
    pub(super) fn boot(&mut self, system: &str) {
        self.apply(system, "Boot");
        let bios = self.get(system).and_then(|system| link(&system["Bios"]));
        if let Some(bios) = &bios {
            self.apply(bios, "Attributes");
        }
        let resource = self.get(system).cloned().unwrap_or_default();
        let attributes = bios.and_then(|bios| self.get(&bios)?["Attributes"].as_object().cloned());
        let enabled = resource["Boot"]["BootSourceOverrideEnabled"].as_str();
        let source = resource["Boot"]["BootSourceOverrideTarget"].as_str();
        self.boots.push(Boot {
            source: source.filter(|_| enabled.is_some_and(|word| word != "Disabled")).map(str::to_owned),
            urls: urls(&resource, &attributes.unwrap_or_default()),
        });
        if enabled == Some("Once") {
            self.use_up(system);
        }
    }

    /// An override for one boot ends, also where a settings object mirrors it.
    fn use_up(&mut self, system: &str) {
        let pending = self.pending_of(system).map(|(path, _)| path);
        for path in std::iter::once(system.to_owned()).chain(pending) {
            self.change(&path, |resource| {
                for (name, none) in
                    [("BootSourceOverrideEnabled", "Disabled"), ("BootSourceOverrideTarget", "None")]
                {
                    if let Some(value) = resource.get_mut("Boot").and_then(|boot| boot.get_mut(name)) {
                        *value = json!(none);
                    }
                }
            });
        }
    }

    /// Notes a change in a settings object for the next boot; any other resource is not noted.
    pub(super) fn wait(&mut self, path: &str, change: &Value) {
        let path = plain(path);
        if self.pending.contains_key(&path) {
            merge(self.waiting.entry(path).or_insert_with(|| json!({})), change);
        }
    }

    /// Puts an object of a resource in force as it waits in its settings object.
    fn apply(&mut self, path: &str, object: &str) {
        let Some(pending) = self.pending_of(path).map(|(pending, _)| pending) else { return };
        let waiting = self.waiting.get_mut(&pending).and_then(Value::as_object_mut);
        let Some(change) = waiting.and_then(|waiting| waiting.remove(object)) else { return };
        self.change(path, |resource| merge(&mut resource[object], &change));
        if let Some(empty) = self.empty.get(&pending).cloned() {
            self.change(&pending, |resource| *resource = empty);
        }
    }
}

/// Takes the members of a change over into a value.
pub(super) fn merge(value: &mut Value, change: &Value) {
    match (value, change) {
        (Value::Object(value), Value::Object(change)) => {
            for (name, inner) in change {
                merge(value.entry(name.clone()).or_insert_with(|| json!({})), inner);
            }
        }
        (value, change) => *value = change.clone(),
    }
}

/// URLs that the firmware may boot from.
fn urls(system: &Value, attributes: &Map<String, Value>) -> Vec<String> {
    let settings = attributes.iter().filter(|(name, _)| {
        name.starts_with("UrlBootFile") || (name.starts_with("HttpDev") && name.ends_with("Uri"))
    });
    std::iter::once(&system["Boot"]["HttpBootUri"])
        .chain(settings.map(|(_, value)| value))
        .filter_map(|value| value.as_str().filter(|url| url.contains("://")))
        .map(str::to_owned)
        .collect()
}
