//! `POST /v1/nodes`.

use super::{rights, show, validation};
use crate::call::{Call, locate};
use crate::error::{ApiError, Reply};
use crate::fields;
use crate::resources::field::{self, Field};
use crate::schema;
use model::history::{EventKind, Severity};
use model::{Basis, Node, request};
use serde_json::Value;
use uuid::Uuid;

/// The minor version since which nodes begin in `enroll`.
const ENROLL: u16 = 11;

/// `POST /v1/nodes`. Below 1.11 nodes begin in `available` (1.1 shows it as null): those of fake-hardware, and with a
/// setting all. Of what stands on the disks of others nothing is known (decision 0056).
pub async fn create(call: Call) -> Reply {
    call.args.only(&[])?;
    let given = schema::object("node", call.json()?)?;
    let unknown: Vec<_> = given
        .keys()
        .map(String::as_str)
        .filter(|name| fields::find(name).and_then(Field::creatable).is_none())
        // Accepted by Ironic with a new node, and never true here.
        .filter(|name| !matches!(*name, "console_enabled" | "boot_mode" | "secure_boot"))
        .collect();
    schema::no_others("node", &unknown)?;
    let Some(driver) = given.get("driver") else {
        return Err(ApiError::invalid("Schema error for node: 'driver' is a required property"));
    };
    let mut node = Node::enrolled(Uuid::new_v4(), driver.as_str().unwrap_or_default(), call.now());
    for (name, value) in &given {
        let Some(field) = fields::find(name) else { continue };
        let Some(kind) = field.creatable() else {
            if !value.is_null() {
                call.version.needs(field.since)?;
            }
            continue;
        };
        let value = field::check("node", name, kind, value)?;
        if !is_empty(name, &value) {
            call.version.needs(field.since)?;
            fields::write(&mut node, name, value);
        }
    }
    if let Some(Value::String(name)) = given.get("name") {
        validation::name(name, call.version, "Cannot create node with invalid name")?;
    }
    rights::create(&call, &mut node).await?;
    validation::reason_needs(node.retired, node.retired_reason.as_ref(), "retired")?;
    validation::chassis(&call, given.get("chassis_uuid")).await?;
    validation::network_data(&node, "Schema error for node")?;
    if let Some(parent) = given.get("parent_node").and_then(Value::as_str) {
        let parent = validation::parent(&call, &node, parent).await?;
        fields::write(&mut node, "parent_node", parent.into());
    }
    validation::driver_and_interfaces(&call.app, &node)?;

    let text = format!("enrolled with driver {}", node.driver);
    let event = if begins_available(&call, &node) {
        request::make_available(&mut node, Basis::CreatedAvailable, &text, call.now())
    } else {
        request::event(EventKind::Transition, Severity::Info, text, call.now())
    };
    let events = call.caused(vec![event]);
    let node = call.app.store.create_node(node, events.clone()).await.map_err(|error| match error {
        store::StoreError::Duplicate { what: store::Unique::InstanceUuid, value } => {
            associated(&value, given.get("uuid"))
        }
        other => other.into(),
    })?;
    store::log_events(&node, &events);
    let location = call.links.v1(&format!("nodes/{}", node.uuid));
    let mut response = show::answer(&call, 201, node, None).await?;
    locate(&mut response, Some(&location));
    Ok(response)
}

fn begins_available(call: &Call, node: &Node) -> bool {
    !call.version.has(ENROLL) && (node.driver == "fake-hardware" || call.app.settings.available_below_1_11)
}

fn associated(instance: &str, node: Option<&Value>) -> ApiError {
    let node = node.and_then(Value::as_str).unwrap_or("that is to be created");
    ApiError::conflict(format!(
        "Instance {instance} is already associated with a node, it cannot be associated with this other node \
         {node}"
    ))
}

/// Values that mean "not given", accepted in versions without the field.
fn is_empty(name: &str, value: &Value) -> bool {
    value.is_null() || (name == "conductor_group" && value == "")
}
