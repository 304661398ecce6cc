//! What rules may set of a node and of a port, and what their templates see of a node.
//!
//! Ironic's rules may set every field. Here they may set what an operator could set by PATCH without a further check:
//! nothing that says where the node stands, who it is, or whether it may be touched. Whether the controller has a driver that they
//! choose is looked at where they are applied.

use crate::python::{text, type_name};
use crate::signature::OperationError;
use model::mask::{masked, masked_instance_info};
use model::request::RESCUE_HASH;
use model::{Node, Resource};
use serde_json::{Map, Value, json};

/// What an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text of at most so many characters, or null.
    Text(usize),
    /// A text of at most so many characters that is never empty and never null.
    Name(usize),
    /// True or false; null where the node is to be treated as is configured.
    Flag,
    /// A JSON object.
    Map,
}

/// Attributes of nodes that rules may set.
pub const NODE: [(&str, Kind); 14] = [
    ("driver", Kind::Name(255)),
    ("driver_info", Kind::Map),
    ("properties", Kind::Map),
    ("extra", Kind::Map),
    ("instance_info", Kind::Map),
    ("resource_class", Kind::Text(80)),
    ("description", Kind::Text(4096)),
    ("owner", Kind::Text(255)),
    ("lessee", Kind::Text(255)),
    ("shard", Kind::Text(255)),
    ("conductor_group", Kind::Text(255)),
    ("automated_clean", Kind::Flag),
    ("retired", Kind::Flag),
    ("retired_reason", Kind::Text(65_535)),
];

/// Attributes of ports that rules may set.
pub const PORT: [(&str, Kind); 8] = [
    ("extra", Kind::Map),
    ("local_link_connection", Kind::Map),
    ("pxe_enabled", Kind::Flag),
    ("is_smartnic", Kind::Flag),
    ("physical_network", Kind::Text(64)),
    ("description", Kind::Text(255)),
    ("vendor", Kind::Text(32)),
    ("category", Kind::Text(80)),
];

/// Something that has attributes.
pub trait Attributes {
    /// Those that rules may set.
    const TABLE: &'static [(&'static str, Kind)];
    /// What messages call it.
    const NOUN: &'static str;
    /// An attribute that is a map.
    fn map(&mut self, name: &str) -> Option<&mut Map<String, Value>>;
    /// Set one that is a text.
    fn set_text(&mut self, name: &str, text: Option<String>);
    /// Set one that is a flag; without one, to what it is in a new one.
    fn set_flag(&mut self, name: &str, flag: Option<bool>);

    /// What the attribute of this name holds, or that rules must not set it.
    fn kind(name: &str) -> Result<Kind, OperationError> {
        let found = Self::TABLE.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let names: Vec<_> = Self::TABLE.iter().map(|(name, _)| *name).collect();
            OperationError(format!(
                "{name:?} of a {} cannot be set by inspection rules; these can: {}",
                Self::NOUN,
                names.join(", ")
            ))
        })
    }

    /// Set a whole attribute.
    fn set(&mut self, name: &str, value: Value) -> Result<(), OperationError> {
        let refuse = |value: &Value, wanted: &str| {
            OperationError(format!("{name} is {wanted}, and not a {}", type_name(value)))
        };
        match (Self::kind(name)?, value) {
            (Kind::Map, value @ (Value::Object(_) | Value::Null)) => {
                if let Some(map) = self.map(name) {
                    *map = value.as_object().cloned().unwrap_or_default();
                }
            }
            (Kind::Map, other) => return Err(refuse(&other, "a JSON object")),
            (Kind::Text(_), Value::Null) => self.set_text(name, None),
            (Kind::Text(most), value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => {
                let text = text(&value, false);
                if text.chars().count() > most {
                    return Err(OperationError(format!("{name} would be longer than {most} characters")));
                }
                self.set_text(name, Some(text));
            }
            (Kind::Text(_), other) => return Err(refuse(&other, "a text")),
            (Kind::Name(most), Value::String(text)) if (1..=most).contains(&text.chars().count()) => {
                self.set_text(name, Some(text));
            }
            (Kind::Name(_), other) => return Err(refuse(&other, "a name")),
            (Kind::Flag, value) => {
                let flag = match &value {
                    Value::Null => None,
                    Value::Bool(flag) => Some(*flag),
                    Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
                    Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
                    other => return Err(refuse(other, "true or false")),
                };
                self.set_flag(name, flag);
            }
        }
        Ok(())
    }
}

fn put(other: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    match value {
        Some(value) => other.insert(name.to_owned(), value.into()),
        None => other.remove(name),
    };
}

impl Attributes for Node {
    const TABLE: &'static [(&'static str, Kind)] = &NODE;
    const NOUN: &'static str = "node";

    fn map(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        Some(match name {
            "driver_info" => &mut self.driver_info,
            "properties" => &mut self.properties,
            "extra" => &mut self.extra,
            "instance_info" => &mut self.instance_info,
            _ => return None,
        })
    }

    fn set_text(&mut self, name: &str, text: Option<String>) {
        match name {
            "driver" => self.driver = text.unwrap_or_default(),
            "resource_class" => self.resource_class = text,
            "retired_reason" => self.retired_reason = text,
            // They are compared without case.
            "conductor_group" => put(&mut self.other, name, text.map(|text| text.to_lowercase())),
            name => put(&mut self.other, name, text),
        }
    }

    fn set_flag(&mut self, name: &str, flag: Option<bool>) {
        match name {
            "automated_clean" => self.automated_clean = flag,
            "retired" => self.retired = flag.unwrap_or(false),
            name => put(&mut self.other, name, flag),
        }
    }
}

/// A port: the only kind of resource that rules change.
impl Attributes for Resource {
    const TABLE: &'static [(&'static str, Kind)] = &PORT;
    const NOUN: &'static str = "port";

    fn map(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        self.fields.entry(name).or_insert_with(|| json!({})).as_object_mut()
    }

    fn set_text(&mut self, name: &str, text: Option<String>) {
        put(&mut self.fields, name, text);
    }

    fn set_flag(&mut self, name: &str, flag: Option<bool>) {
        put(&mut self.fields, name, flag);
    }
}

/// `{node.NAME}`: a field of the node under Ironic's name, secrets masked; `None` for what templates do not see.
pub fn shown(node: &Node, name: &str) -> Option<Value> {
    let text = |value: Option<&str>| Some(value.map_or(Value::Null, Value::from));
    match name {
        "uuid" => Some(json!(node.uuid)),
        "name" => text(node.name.as_deref()),
        "driver" => text(Some(&node.driver)),
        "driver_info" => Some(Value::Object(masked(&node.driver_info))),
        "properties" => Some(Value::Object(masked(&node.properties))),
        "extra" => Some(Value::Object(masked(&node.extra))),
        "instance_info" => {
            let mut shown = masked_instance_info(&node.instance_info);
            shown.remove(RESCUE_HASH);
            Some(Value::Object(shown))
        }
        "instance_uuid" => Some(json!(node.instance_uuid)),
        "resource_class" => text(node.resource_class.as_deref()),
        "provision_state" => text(Some(node.provision_state.as_str())),
        "target_provision_state" => text(node.target_provision_state.map(|state| state.as_str())),
        "power_state" => Some(json!(node.power_state)),
        "last_error" => text(node.last_error.as_deref()),
        "maintenance" => Some(node.maintenance.into()),
        "maintenance_reason" => text(node.maintenance_reason.as_deref()),
        "automated_clean" => Some(json!(node.automated_clean)),
        "retired" => Some(node.retired.into()),
        "retired_reason" => text(node.retired_reason.as_deref()),
        "protected" => Some(node.protected.into()),
        "protected_reason" => text(node.protected_reason.as_deref()),
        "description" | "owner" | "lessee" | "shard" | "conductor_group" | "chassis_uuid" | "parent_node" => {
            Some(node.other.get(name).cloned().unwrap_or(Value::Null))
        }
        name if name.ends_with("_interface") => text(node.interfaces.get(name).map(String::as_str)),
        _ => None,
    }
}
