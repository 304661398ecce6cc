//! Every field of a node: the version that introduced it, whether and with which type clients write it, and where the
//! model stores it. The one table behind create, patch, show, list and sort.

use crate::error::ApiError;
use crate::microversion::Version;
use crate::shown;
use model::Node;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Type of a field that clients write. All may also be null, except the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text of at most so many characters.
    Text(usize),
    /// Text of 1 to so many characters.
    NonEmpty(usize),
    /// Boolean, also as a word.
    Boolean,
    /// UUID.
    Uuid,
    /// JSON object.
    Object,
    /// Name of a driver; never null.
    Driver,
}

/// When a field can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// Never: only the controller does.
    Never,
    /// When the node is made.
    Create(Kind),
    /// When the node is made, and by PATCH.
    Always(Kind),
    /// By PATCH only.
    Patch(Kind),
}

/// A field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name on the wire.
    pub name: &'static str,
    /// Minor version since which it exists.
    pub since: u16,
    /// Which side writes it.
    pub write: Write,
    /// Whether lists can be sorted by it.
    pub sortable: bool,
}

const LONG: usize = 65_535;
const NAME: usize = 255;

const fn read_only(name: &'static str, since: u16) -> Field {
    Field { name, since, write: Write::Never, sortable: true }
}

/// One that lists cannot be sorted by: an object, or one that Ironic's database has under another name.
const fn read_only_unsorted(name: &'static str, since: u16) -> Field {
    Field { name, since, write: Write::Never, sortable: false }
}

const fn written(name: &'static str, since: u16, kind: Kind) -> Field {
    Field { name, since, write: Write::Always(kind), sortable: !matches!(kind, Kind::Object) }
}

const fn interface(name: &'static str, since: u16) -> Field {
    written(name, since, Kind::Text(NAME))
}

/// The fields, in the order in which messages list them.
pub const NODE: &[Field] = &[
    written("automated_clean", 47, Kind::Boolean),
    interface("bios_interface", 40),
    interface("boot_interface", 31),
    Field { name: "chassis_uuid", since: 1, write: Write::Always(Kind::Uuid), sortable: false },
    written("conductor_group", 46, Kind::Text(NAME)),
    interface("console_interface", 31),
    interface("deploy_interface", 31),
    written("description", 51, Kind::Text(4096)),
    written("disable_power_off", 95, Kind::Boolean),
    written("driver", 1, Kind::Driver),
    written("driver_info", 1, Kind::Object),
    written("extra", 1, Kind::Object),
    interface("inspect_interface", 31),
    written("instance_info", 1, Kind::Object),
    written("instance_name", 104, Kind::NonEmpty(NAME)),
    written("instance_uuid", 1, Kind::Uuid),
    written("lessee", 65, Kind::Text(NAME)),
    written("maintenance", 1, Kind::Boolean),
    interface("management_interface", 31),
    written("name", 5, Kind::Text(NAME)),
    written("network_data", 66, Kind::Object),
    interface("network_interface", 20),
    written("owner", 50, Kind::Text(NAME)),
    interface("power_interface", 31),
    written("properties", 1, Kind::Object),
    Field { name: "protected", since: 48, write: Write::Patch(Kind::Boolean), sortable: true },
    Field { name: "protected_reason", since: 48, write: Write::Patch(Kind::Text(LONG)), sortable: true },
    interface("raid_interface", 31),
    interface("rescue_interface", 38),
    written("resource_class", 21, Kind::Text(80)),
    written("retired", 61, Kind::Boolean),
    written("retired_reason", 61, Kind::Text(LONG)),
    written("shard", 82, Kind::Text(NAME)),
    interface("storage_interface", 33),
    interface("vendor_interface", 31),
    written("parent_node", 83, Kind::Text(36)),
    interface("firmware_interface", 86),
    Field { name: "uuid", since: 1, write: Write::Create(Kind::Uuid), sortable: true },
    read_only("created_at", 1),
    read_only("updated_at", 1),
    read_only("boot_mode", 75),
    read_only_unsorted("clean_step", 7),
    read_only("console_enabled", 1),
    read_only_unsorted("deploy_step", 44),
    read_only_unsorted("driver_internal_info", 3),
    read_only("fault", 42),
    read_only("health", 109),
    read_only("inspection_finished_at", 6),
    read_only("inspection_started_at", 6),
    read_only("last_error", 1),
    read_only("maintenance_reason", 1),
    read_only("power_state", 1),
    read_only("provision_state", 1),
    read_only("provision_updated_at", 1),
    read_only_unsorted("raid_config", 12),
    read_only("reservation", 1),
    read_only("secure_boot", 75),
    read_only_unsorted("service_step", 87),
    read_only("target_power_state", 1),
    read_only("target_provision_state", 1),
    read_only_unsorted("target_raid_config", 12),
    read_only_unsorted("traits", 37),
    read_only_unsorted("conductor", 49),
    read_only_unsorted("allocation_uuid", 52),
];

/// The field of this name.
pub fn find(name: &str) -> Option<&'static Field> {
    NODE.iter().find(|field| field.name == name)
}

/// What PATCH may change.
pub fn patchable(field: &Field) -> Option<Kind> {
    match field.write {
        Write::Always(kind) | Write::Patch(kind) => Some(kind),
        Write::Never | Write::Create(_) => None,
    }
}

/// What a new node may come with.
pub fn creatable(field: &Field) -> Option<Kind> {
    match field.write {
        Write::Always(kind) | Write::Create(kind) => Some(kind),
        Write::Never | Write::Patch(_) => None,
    }
}

/// Check the fields that a client wants to see: 406 for one too new, 400 for one that does not exist.
pub fn check_wanted(wanted: &[String], version: Version) -> Result<(), ApiError> {
    for name in wanted {
        if let Some(field) = find(name) {
            version.needs(field.since)?;
        }
    }
    shown::check_known(wanted, |name| find(name).is_some() || name == "links")
}

fn text(value: Option<&String>) -> Value {
    value.map_or(Value::Null, |text| Value::String(text.clone()))
}

/// The value of a field that clients write, as it is on the wire, before defaults.
pub fn read(node: &Node, name: &str) -> Value {
    match name {
        "uuid" => Value::String(node.uuid.to_string()),
        "automated_clean" => node.automated_clean.map_or(Value::Null, Value::Bool),
        "driver" => Value::String(node.driver.clone()),
        "driver_info" => Value::Object(node.driver_info.clone()),
        "extra" => Value::Object(node.extra.clone()),
        "instance_info" => Value::Object(node.instance_info.clone()),
        "properties" => Value::Object(node.properties.clone()),
        "instance_uuid" => node.instance_uuid.map_or(Value::Null, |uuid| Value::String(uuid.to_string())),
        "maintenance" => Value::Bool(node.maintenance),
        "name" => text(node.name.as_ref()),
        "protected" => Value::Bool(node.protected),
        "protected_reason" => text(node.protected_reason.as_ref()),
        "resource_class" => text(node.resource_class.as_ref()),
        "retired" => Value::Bool(node.retired),
        "retired_reason" => text(node.retired_reason.as_ref()),
        "conductor_group" => other(node, name).unwrap_or_else(|| Value::String(String::new())),
        "disable_power_off" => other(node, name).unwrap_or(Value::Bool(false)),
        "network_data" => other(node, name).unwrap_or_else(|| Value::Object(Map::new())),
        name if name.ends_with("_interface") => text(node.interfaces.get(name)),
        name => other(node, name).unwrap_or(Value::Null),
    }
}

fn other(node: &Node, name: &str) -> Option<Value> {
    node.other.get(name).filter(|value| !value.is_null()).cloned()
}

/// Write a field with a value that [`crate::schema::check`] has let pass.
pub fn write(node: &mut Node, name: &str, value: Value) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let object = |value: Value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let uuid = |value: &Value| value.as_str().and_then(|text| Uuid::parse_str(text).ok());
    let truth = value.as_bool();
    match name {
        "uuid" => node.uuid = uuid(&value).unwrap_or(node.uuid),
        "automated_clean" => node.automated_clean = truth,
        "driver" => node.driver = text(&value).unwrap_or_default(),
        "driver_info" => node.driver_info = object(value),
        "extra" => node.extra = object(value),
        "instance_info" => node.instance_info = object(value),
        "properties" => node.properties = object(value),
        "instance_uuid" => node.instance_uuid = uuid(&value),
        "maintenance" => node.maintenance = truth.unwrap_or(false),
        "name" => node.name = text(&value).filter(|name| !name.is_empty()),
        "protected" => node.protected = truth.unwrap_or(false),
        "protected_reason" => node.protected_reason = text(&value),
        "resource_class" => node.resource_class = text(&value),
        "retired" => node.retired = truth.unwrap_or(false),
        "retired_reason" => node.retired_reason = text(&value),
        name if name.ends_with("_interface") => {
            match text(&value) {
                Some(interface) => node.interfaces.insert(name.to_owned(), interface),
                None => node.interfaces.remove(name),
            };
        }
        name => {
            // Conductor groups are compared without case (Ironic lowers them when it stores them).
            let value = match (name, &value) {
                ("conductor_group", Value::String(group)) => Value::String(group.to_lowercase()),
                _ => value,
            };
            if value.is_null() {
                node.other.remove(name);
            } else {
                node.other.insert(name.to_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_written_field_comes_back_as_it_was_written() {
        let mut node = Node::enrolled(Uuid::nil(), "fake-hardware", model::Timestamp(0));
        for field in NODE {
            let Some(kind) = patchable(field).or(creatable(field)) else { continue };
            let value = match kind {
                Kind::Text(_) | Kind::NonEmpty(_) | Kind::Driver => {
                    Value::String(format!("v-{}", field.name))
                }
                Kind::Boolean => Value::Bool(true),
                Kind::Uuid => Value::String(Uuid::from_u128(7).to_string()),
                Kind::Object => serde_json::json!({"k": field.name}),
            };
            write(&mut node, field.name, value.clone());
            assert_eq!(read(&node, field.name), value, "{}", field.name);
            if kind != Kind::Driver && field.name != "uuid" {
                write(&mut node, field.name, Value::Null);
                assert_ne!(read(&node, field.name), value, "{} cannot be unset", field.name);
            }
        }
    }
}
