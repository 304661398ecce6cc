//! The columns of nodes and resources: computed here from the noun, and written by the statement that writes its document.

use crate::value::{Kind, Value};
use model::{Node, Resource};
use serde_json::Value as Json;
use std::sync::LazyLock;
use store::{FieldValue, NodeField, ResourceField};

/// What a column of a field holds.
pub fn kind_of_node_field(field: NodeField) -> Kind {
    match field {
        NodeField::Uuid | NodeField::InstanceUuid => Kind::Uuid,
        NodeField::CreatedAt => Kind::Number,
        NodeField::Maintenance | NodeField::Retired => Kind::Bool,
        _ => Kind::Text,
    }
}

/// Whether the column of a field may hold no value.
pub fn node_field_may_be_null(field: NodeField) -> bool {
    !matches!(
        field,
        NodeField::Uuid
            | NodeField::CreatedAt
            | NodeField::Driver
            | NodeField::ProvisionState
            | NodeField::Maintenance
            | NodeField::Retired
    )
}

/// What a column of a field holds.
pub fn kind_of_resource_field(field: ResourceField) -> Kind {
    match field {
        ResourceField::Uuid | ResourceField::Node => Kind::Uuid,
        ResourceField::CreatedAt => Kind::Number,
        _ => Kind::Text,
    }
}

/// Whether the column of a field may hold no value.
pub fn resource_field_may_be_null(field: ResourceField) -> bool {
    !matches!(field, ResourceField::Uuid | ResourceField::CreatedAt)
}

/// Columns and their values, but the document.
pub type Row = Vec<(&'static str, Value)>;

/// The columns of a node.
pub fn of_node(node: &Node) -> Row {
    let mut row = vec![
        ("version", Value::Number(Some(node.version.cast_signed()))),
        ("next_wake_at", Value::Number(node.next_wake_at.map(|at| at.0))),
        ("at_work", Value::Bool(Some(is_at_work(node)))),
        ("description", lowered(node.other.get("description").and_then(Json::as_str))),
    ];
    row.extend(
        NodeField::ALL.map(|field| (field.name(), column(kind_of_node_field(field), &field.read(node)))),
    );
    row
}

/// Whether something is under way, so that a change of its contact or of what a user asks for must be acted upon.
fn is_at_work(node: &Node) -> bool {
    node.run.is_some() || node.wait.is_some() || node.target_power_state.is_some()
}

/// The columns of a resource.
pub fn of_resource(resource: &Resource) -> Row {
    let key = resource.key.as_deref().map_or(Value::none(Kind::Text), Value::text);
    let mut row = vec![
        ("kind", Value::text(resource.kind.as_str())),
        ("version", Value::Number(Some(resource.version.cast_signed()))),
        ("key", key),
        ("description", lowered(resource.text("description"))),
    ];
    let fields = ResourceField::ALL;
    row.extend(
        fields.map(|field| (field.name(), column(kind_of_resource_field(field), &field.read(resource)))),
    );
    row
}

fn column(kind: Kind, field: &FieldValue) -> Value {
    // A field has values of one kind only.
    Value::of(kind, field).unwrap_or(Value::none(kind))
}

/// As `node_filter::contains` looks at it.
fn lowered(text: Option<&str>) -> Value {
    text.map_or(Value::none(Kind::Text), |text| Value::text(&text.to_lowercase()))
}

/// The statements that write a row. Their parameters are the values of the row, then the document.
pub struct Statements {
    pub insert: String,
    pub update: String,
}

/// Of nodes.
pub static NODE: LazyLock<Statements> = LazyLock::new(|| {
    let node = Node::enrolled(uuid::Uuid::nil(), "", model::Timestamp(0));
    statements("node", &of_node(&node), &["uuid"])
});

/// Of resources.
pub static RESOURCE: LazyLock<Statements> = LazyLock::new(|| {
    let resource = Resource::new(model::ResourceKind::Port, uuid::Uuid::nil(), model::Timestamp(0));
    statements("resource", &of_resource(&resource), &["kind", "uuid"])
});

fn statements(table: &str, row: &Row, key: &[&str]) -> Statements {
    let names: Vec<&str> = row.iter().map(|(name, _)| *name).chain(["doc"]).collect();
    let marks: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    let pairs = |wanted: bool, between: &str| {
        let of_key = names.iter().zip(&marks).filter(|(name, _)| key.contains(name) == wanted);
        of_key.map(|(name, mark)| format!("{name} = {mark}")).collect::<Vec<_>>().join(between)
    };
    Statements {
        insert: format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), marks.join(", ")),
        update: format!("UPDATE {table} SET {} WHERE {}", pairs(false, ", "), pairs(true, " AND ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PowerTarget, ResourceKind, Run, RunKind, Timestamp};
    use uuid::Uuid;

    fn get<'a>(row: &'a Row, name: &str) -> &'a Value {
        &row.iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("column {name}")).1
    }

    /// Every field that lists know, from the document that is stored next to the columns.
    #[test]
    fn columns_and_document_say_the_same() {
        let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(5));
        node.name = Some("n\0".to_owned());
        node.instance_uuid = Some(Uuid::from_u128(8));
        node.version = 3;
        node.next_wake_at = Some(Timestamp(9));
        node.maintenance = true;
        node.other.insert("owner".into(), "o".into());
        node.other.insert("shard".into(), 1.into());
        node.other.insert("description".into(), "ÄB".into());
        let read: Node = serde_json::from_str(&serde_json::to_string(&node).unwrap()).unwrap();
        let row = of_node(&read);
        for field in NodeField::ALL {
            let value = field.read(&node);
            assert_eq!(get(&row, field.name()), &column(kind_of_node_field(field), &value), "{field:?}");
            assert!(
                Value::of(kind_of_node_field(field), &value).is_some(),
                "{field:?} has no value of its kind"
            );
            assert!(value != FieldValue::Null || node_field_may_be_null(field), "{field:?}");
        }
        assert_eq!(get(&row, "name"), &Value::Text(Some("n\u{1}\u{1}".to_owned())));
        assert_eq!(get(&row, "version"), &Value::Number(Some(3)));
        assert_eq!(get(&row, "next_wake_at"), &Value::Number(Some(9)));
        assert_eq!(get(&row, "description"), &Value::Text(Some("äb".to_owned())));
        assert_eq!(get(&row, "shard"), &Value::Text(None));
        assert_eq!(get(&row, "at_work"), &Value::Bool(Some(false)));
        node.target_power_state = Some(PowerTarget::On);
        assert_eq!(get(&of_node(&node), "at_work"), &Value::Bool(Some(true)));
        node.target_power_state = None;
        node.run = Some(Run::new(RunKind::AutomatedClean, Timestamp(0)));
        assert_eq!(get(&of_node(&node), "at_work"), &Value::Bool(Some(true)));
    }

    #[test]
    fn columns_and_document_of_a_resource_say_the_same() {
        let mut port = Resource::new(ResourceKind::Port, Uuid::from_u128(7), Timestamp(5));
        port.node = Some(Uuid::from_u128(8));
        port.key = Some("52:54:00:00:00:01".to_owned());
        port.fields.insert("address".into(), "52:54:00:00:00:01".into());
        let read: Resource = serde_json::from_str(&serde_json::to_string(&port).unwrap()).unwrap();
        let row = of_resource(&read);
        for field in ResourceField::ALL {
            let value = field.read(&port);
            assert_eq!(get(&row, field.name()), &column(kind_of_resource_field(field), &value), "{field:?}");
            assert!(Value::of(kind_of_resource_field(field), &value).is_some(), "{field:?}");
        }
        assert_eq!(get(&row, "key"), &Value::Text(port.key.clone()));
        assert_eq!(get(&row, "kind"), &Value::Text(Some("port".to_owned())));
    }

    #[test]
    fn statements_name_every_column_once() {
        assert!(
            NODE.insert.starts_with("INSERT INTO node (version, next_wake_at, at_work, description, uuid, ")
        );
        assert!(NODE.insert.ends_with("$21, $22, $23)"), "{}", NODE.insert);
        assert!(NODE.update.ends_with(", doc = $23 WHERE uuid = $5"), "{}", NODE.update);
        assert!(
            RESOURCE.update.ends_with(", doc = $14 WHERE kind = $1 AND uuid = $5"),
            "{}",
            RESOURCE.update
        );
    }
}
