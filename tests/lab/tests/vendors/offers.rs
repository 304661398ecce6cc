//! What a tree itself offers, read here without the driver: so that no verb is refused for nothing.

use lab::recorded::Tree;
use serde_json::Value;

use crate::machine::Machine;

/// Whether an override for a boot source is offered: by the system, or where it lists none, by its settings object.
pub fn source(machine: &Machine, names: &[&str], enabled: &str) -> bool {
    list_has(machine, "BootSourceOverrideTarget", names)
        && list_has(machine, "BootSourceOverrideEnabled", &[enabled])
}

fn list_has(machine: &Machine, property: &str, names: &[&str]) -> bool {
    let tree = machine.recorded.tree();
    let key = format!("{property}@Redfish.AllowableValues");
    let list = |resource: &Value| resource["Boot"][&key].as_array().cloned();
    let own = tree.get(&machine.system).and_then(list);
    let waiting = tree.pending_of(&machine.system).and_then(|(_, pending)| list(pending));
    own.or(waiting).is_none_or(|list| list.iter().any(|value| names.iter().any(|name| value == name)))
}

/// Whether there is a virtual CD drive, below the system or one of its managers.
pub fn cd(machine: &Machine) -> bool {
    let tree = machine.recorded.tree();
    let Some(system) = tree.get(&machine.system) else { return false };
    let managers = system["Links"]["ManagedBy"].as_array().into_iter().flatten();
    let managers = managers.filter_map(|manager| tree.linked(manager)).map(|(_, manager)| manager);
    std::iter::once(system).chain(managers).any(|owner| {
        let drives = tree.linked(&owner["VirtualMedia"]).map(|(_, drives)| members(&tree, drives));
        let is_cd =
            |drive: &&Value| drive["MediaTypes"].as_array().is_some_and(|kinds| kinds.contains(&"CD".into()));
        drives.unwrap_or_default().iter().any(is_cd)
    })
}

fn members<'a>(tree: &'a Tree, collection: &Value) -> Vec<&'a Value> {
    let members = collection["Members"].as_array().into_iter().flatten();
    members.filter_map(|member| tree.linked(member)).map(|(_, member)| member).collect()
}

/// URLs of the media that are in any virtual drive.
pub fn media(machine: &Machine) -> Vec<String> {
    let tree = machine.recorded.tree();
    let inserted = tree.every("VirtualMedia").filter(|(_, drive)| drive["Inserted"] == true);
    inserted.filter_map(|(_, drive)| drive["Image"].as_str().map(str::to_owned)).collect()
}

/// Whether the system has resources of a schema.
pub fn has(machine: &Machine, schema: &str) -> bool {
    let below = format!("{}/", machine.system);
    machine.recorded.tree().every(schema).any(|(path, _)| path.starts_with(&below))
}

/// Whether a URL can be passed to the firmware.
pub fn url(machine: &Machine) -> bool {
    let waits = {
        let tree = machine.recorded.tree();
        tree.pending_of(&machine.system)
            .is_some_and(|(_, pending)| pending["Boot"].get("HttpBootUri").is_some())
    };
    let has_property = waits || machine.look()["Boot"].get("HttpBootUri").is_some();
    let bios = machine.linked("Bios").unwrap_or_default();
    let has_setting = {
        let tree = machine.recorded.tree();
        ["HttpDev1Uri", "UrlBootFile"].iter().any(|name| tree.has_writable_setting(&bios, name))
    };
    source(machine, &["UefiHttp"], "Once") && (has_property || has_setting)
}

/// Whether there are BIOS settings.
pub fn bios(machine: &Machine) -> bool {
    machine.linked("Bios").is_some_and(|bios| bios["Attributes"].is_object())
}
