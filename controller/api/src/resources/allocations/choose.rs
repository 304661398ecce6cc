//! Choice of the node for an allocation.

use super::allocation::Allocation;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields;
use crate::resources::resource::refused;
use model::history::{EventKind, Severity};
use model::{Event, Node, ProvisionState, Resource, request};
use serde_json::Value;
use std::collections::BTreeSet;
use store::{ResourceWrite, StoreError, Unique, log_events};

/// Allocate a free, suitable node, or store why there is none.
pub async fn allocate(call: &Call, wish: Resource) -> Result<Resource, ApiError> {
    let nodes = call.app.store.nodes().await?;
    let mut suitable = match suitable(&wish, nodes) {
        Ok(suitable) => suitable,
        Err(why) => return failed(call, wish, &why).await,
    };
    // A node with the allocation's name first: a client that names both alike expects it.
    suitable.sort_by_key(|node| node.name.is_none() || node.name != wish.name);
    let count = suitable.len();
    for node in suitable {
        if call.app.store.lease_holder(node.uuid, call.now()).await?.is_some() {
            continue;
        }
        let uuid = node.uuid;
        let given = Resource { node: Some(uuid), ..in_state(&wish, "active") };
        let change = given_to(&wish, node, call);
        match write(call, &given, change).await {
            Ok(made) => return Ok(made),
            // The node was changed or removed since: try the next one.
            Err(StoreError::Stale(_) | StoreError::NotFound { .. }) => {}
            Err(StoreError::Duplicate { what: Unique::InstanceUuid, value }) => {
                return Err(StoreError::Duplicate { what: Unique::InstanceUuid, value }.into());
            }
            Err(other) => return Err(refused::<Allocation>(other, &given)),
        }
    }
    failed(call, wish, &format!("could not reserve any of {count} suitable nodes")).await
}

/// Keep the allocation of a node that has been deployed without one.
pub async fn backfill(call: &Call, wish: Resource, node: Node) -> Result<Resource, ApiError> {
    if let Some(instance) = node.instance_uuid.filter(|instance| *instance != wish.uuid) {
        return Err(ApiError::conflict(format!(
            "Node {} is associated with instance {instance}.",
            node.uuid
        )));
    }
    let mut errors = Vec::new();
    if node.provision_state != ProvisionState::Active {
        errors.push(format!(
            "Node must be in the \"active\" state, but the current state is \"{}\"",
            node.provision_state.as_str()
        ));
    }
    let class = wish.text("resource_class");
    if class.is_some() && node.resource_class.as_deref() != class {
        errors.push(format!(
            "Resource class {} does not match the requested resource class {}",
            node.resource_class.as_deref().unwrap_or("None"),
            class.unwrap_or_default()
        ));
    }
    if !traits(&wish).is_subset(&node.traits.iter().map(String::as_str).collect()) {
        errors.push("List of traits of the node does not match the requested traits".to_owned());
    }
    let candidates = candidates(&wish);
    if !candidates.is_empty() && !candidates.contains(&node.uuid.to_string().as_str()) {
        errors.push("Candidate nodes must be empty or contain the target node".to_owned());
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid(format!(
            "Failed to process allocation {}: Cannot backfill an allocation for node {}: {}.",
            wish.uuid,
            node.uuid,
            errors.join("; ")
        )));
    }
    if let Some(host) = call.app.store.lease_holder(node.uuid, call.now()).await? {
        return Err(ApiError::locked(node.uuid, &host));
    }
    let given = Resource { node: Some(node.uuid), ..in_state(&wish, "active") };
    let change = given_to(&wish, node, call);
    write(call, &given, change).await.map_err(|error| match error {
        StoreError::Duplicate { what: Unique::InstanceUuid, .. } => error.into(),
        other => refused::<Allocation>(other, &given),
    })
}

/// Store an allocation together with the node that it is given.
async fn write(
    call: &Call,
    given: &Resource,
    (node, events): (Node, Vec<Event>),
) -> Result<Resource, StoreError> {
    let events = call.caused(events);
    let change = Some((node.clone(), events.clone()));
    let made = call.app.store.write_resource(ResourceWrite::Create(given.clone()), change).await?;
    log_events(&node, &events);
    Ok(made)
}

/// The nodes that an allocation may be given, or why there is none.
fn suitable(wish: &Resource, mut nodes: Vec<Node>) -> Result<Vec<Node>, String> {
    let class = wish.text("resource_class").unwrap_or_default();
    let candidates = candidates(wish);
    let owner = wish.text("owner").filter(|owner| !owner.is_empty());
    nodes.retain(|node| {
        node.provision_state == ProvisionState::Available
            && node.target_provision_state.is_none()
            && node.instance_uuid.is_none()
            && node.power_state.is_some()
            && !node.maintenance
            && node.resource_class.as_deref() == Some(class)
            && (candidates.is_empty() || candidates.contains(&node.uuid.to_string().as_str()))
            && owner.is_none_or(|owner| {
                ["owner", "lessee"].iter().any(|field| fields::read(node, field) == owner)
            })
    });
    if nodes.is_empty() {
        return Err(if candidates.is_empty() {
            format!("no available nodes match the resource class {class}")
        } else {
            format!("none of the requested nodes are available and match the resource class {class}")
        });
    }
    let wanted = traits(wish);
    nodes.retain(|node| wanted.iter().all(|wanted| node.traits.contains(*wanted)));
    if nodes.is_empty() {
        let wanted: Vec<_> = wanted.into_iter().collect();
        return Err(format!("no suitable nodes have the requested traits {}", wanted.join(", ")));
    }
    Ok(nodes)
}

fn traits(wish: &Resource) -> BTreeSet<&str> {
    wish.field("traits").as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn candidates(wish: &Resource) -> Vec<&str> {
    wish.field("candidate_nodes").as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The node as it is with this allocation.
fn given_to(wish: &Resource, mut node: Node, call: &Call) -> (Node, Vec<Event>) {
    node.instance_uuid = Some(wish.uuid);
    let traits = wish.field("traits").as_array().cloned().unwrap_or_default();
    node.instance_info.insert("traits".into(), Value::Array(traits));
    node.updated_at = Some(call.now());
    let text = format!("given to allocation {}", wish.uuid);
    (node, vec![request::event(EventKind::Flag, Severity::Info, text, call.now())])
}

fn in_state(wish: &Resource, state: &str) -> Resource {
    let mut new = wish.clone();
    new.fields.insert("state".into(), state.into());
    new
}

async fn failed(call: &Call, wish: Resource, why: &str) -> Result<Resource, ApiError> {
    let mut new = in_state(&wish, "error");
    let text = format!("Failed to process allocation {}: {why}.", wish.uuid);
    new.fields.insert("last_error".into(), text.into());
    let written = call.app.store.write_resource(ResourceWrite::Create(new.clone()), None).await;
    written.map_err(|error| refused::<Allocation>(error, &new))
}
