//! Every field of a node: the version that introduced it, whether and with which type clients write it, and where the
//! model stores it. The one table behind create, patch, show, list and sort.

use crate::error::ApiError;
use crate::microversion::Version;
use crate::resources::field::{self, Field, Type, Write, read_only};
use crate::schema::Kind;
use crate::shown;
use model::Node;
use serde_json::{Map, Value};
use uuid::Uuid;

const LONG: usize = 65_535;
const NAME: usize = 255;

const fn written(name: &'static str, since: u16, kind: Kind) -> Field {
    let field = field::written(name, since, Write::Always(Type::Plain(kind)));
    if matches!(kind, Kind::Object) { field.unsortable() } else { field }
}

const fn in_patch(name: &'static str, since: u16, kind: Kind) -> Field {
    field::written(name, since, Write::Patch(Type::Plain(kind)))
}

const fn interface(name: &'static str, since: u16) -> Field {
    written(name, since, Kind::Text(NAME))
}

/// The fields, in the order in which messages list them.
pub const NODE: &[Field] = &[
    written("automated_clean", 47, Kind::Boolean),
    interface("bios_interface", 40),
    interface("boot_interface", 31),
    written("chassis_uuid", 1, Kind::Uuid).unsortable(),
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
    in_patch("protected", 48, Kind::Boolean),
    in_patch("protected_reason", 48, Kind::Text(LONG)),
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
    field::written("uuid", 1, Write::Create(Type::Plain(Kind::Uuid))),
    read_only("created_at", 1),
    read_only("updated_at", 1),
    read_only("boot_mode", 75),
    read_only("clean_step", 7).unsortable(),
    read_only("console_enabled", 1),
    read_only("deploy_step", 44).unsortable(),
    read_only("driver_internal_info", 3).unsortable(),
    read_only("fault", 42),
    read_only("health", 109),
    read_only("inspection_finished_at", 6),
    read_only("inspection_started_at", 6),
    read_only("last_error", 1),
    read_only("maintenance_reason", 1),
    read_only("power_state", 1),
    read_only("provision_state", 1),
    read_only("provision_updated_at", 1),
    read_only("raid_config", 12).unsortable(),
    read_only("reservation", 1),
    read_only("secure_boot", 75),
    read_only("service_step", 87).unsortable(),
    read_only("target_power_state", 1),
    read_only("target_provision_state", 1),
    read_only("target_raid_config", 12).unsortable(),
    read_only("traits", 37).unsortable(),
    read_only("conductor", 49).unsortable(),
    read_only("allocation_uuid", 52).unsortable(),
];

/// Anneal's own fields: shown only to a client that asks for them by name, so no client of Ironic's meets one.
pub const OWN: &[Field] = &[read_only(BASIS, 1)];

/// The word of a node's [`model::Basis`].
pub const BASIS: &str = "anneal_basis";

/// The field of this name.
pub fn find(name: &str) -> Option<&'static Field> {
    NODE.iter().chain(OWN).find(|field| field.name == name)
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
            let Some(Type::Plain(kind)) = field.patchable().or(field.creatable()) else { continue };
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
