//! Choice of the node for an allocation.

use super::allocation::Allocation;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields;
use crate::lock::{Lock, LockWait};
use crate::resources::resource::refused;
use model::history::{EventKind, Severity};
use model::{Event, Node, ProvisionState, Resource, request};
use serde_json::Value;
use std::collections::BTreeSet;
use store::{ResourceWrite, StoreError, Unique, log_events};
use uuid::Uuid;

/// What came of giving a node to an allocation.
enum Given {
    /// It has the node.
    Made(Box<Resource>),
    /// The node is locked, or was changed since it was read.
    Busy,
    /// The node is gone.
    Gone,
}

/// Allocate a free, suitable node, or store why there is none. Where every suitable node is locked, the first that is released is
/// taken.
///
/// # Errors
/// 409: all stay locked. Ironic then stores an allocation in the state `error`, which ends there; clients repeat a 409.
pub async fn allocate(call: &Call, wish: Resource) -> Result<Resource, ApiError> {
    let nodes = call.app.store.nodes().await?;
    let mut suitable = match suitable(&wish, nodes) {
        Ok(suitable) => suitable,
        Err(why) => return failed(call, wish, &why).await,
    };
    // A node with the allocation's name first: a client that names both alike expects it.
    suitable.sort_by_key(|node| node.name.is_none() || node.name != wish.name);
    let count = suitable.len();
    let mut busy = Vec::new();
    for node in suitable {
        let uuid = node.uuid;
        match give(call, &wish, node).await? {
            Given::Made(made) => return Ok(*made),
            Given::Busy => busy.push(uuid),
            Given::Gone => {}
        }
    }
    match first_released(call, &wish, busy).await? {
        Some(made) => Ok(made),
        None => failed(call, wish, &format!("could not reserve any of {count} suitable nodes")).await,
    }
}

/// Give an allocation the first of these nodes that is released and still suits it; `None` once none suits it any more.
async fn first_released(
    call: &Call,
    wish: &Resource,
    mut busy: Vec<Uuid>,
) -> Result<Option<Resource>, ApiError> {
    let Some(first) = busy.first().copied() else { return Ok(None) };
    let locked = || ApiError::locked(first, &call.app.settings.conductor_host);
    let mut waiting = LockWait::begin(call).ok_or_else(locked)?;
    let mut look = busy.clone();
    let mut in_time = true;
    loop {
        for uuid in look {
            let node = match call.app.store.node(uuid).await {
                Ok(node) => suitable(wish, vec![node]).ok().and_then(|mut nodes| nodes.pop()),
                Err(StoreError::NotFound { .. }) => None,
                Err(other) => return Err(other.into()),
            };
            let given = match node {
                Some(node) => give(call, wish, node).await?,
                None => Given::Gone,
            };
            match given {
                Given::Made(made) => return Ok(Some(*made)),
                Given::Busy => {}
                Given::Gone => busy.retain(|other| *other != uuid),
            }
        }
        if busy.is_empty() {
            return Ok(None);
        }
        if !in_time {
            return Err(locked());
        }
        // All of them once more when the time is over: a lease that expires rings no bell.
        let rung = waiting.next(|rung| busy.contains(&rung)).await;
        in_time = rung.is_some();
        look = rung.map_or_else(|| busy.clone(), |rung| vec![rung]);
    }
}

/// Give an allocation this node, unless it is locked.
async fn give(call: &Call, wish: &Resource, node: Node) -> Result<Given, ApiError> {
    if Lock::Held.holder(call, &node).await?.is_some() {
        return Ok(Given::Busy);
    }
    let given = Resource { node: Some(node.uuid), ..in_state(wish, "active") };
    match write(call, &given, given_to(wish, node, call)).await {
        Ok(made) => Ok(Given::Made(Box::new(made))),
        Err(StoreError::Stale(_)) => Ok(Given::Busy),
        Err(StoreError::NotFound { .. }) => Ok(Given::Gone),
        Err(StoreError::Duplicate { what: Unique::InstanceUuid, value }) => {
            Err(StoreError::Duplicate { what: Unique::InstanceUuid, value }.into())
        }
        Err(other) => Err(refused::<Allocation>(other, &given)),
    }
}

/// Keep the allocation of a node that has been deployed without one.
pub async fn backfill(call: &Call, wish: Resource, node: Node) -> Result<Resource, ApiError> {
    let node = Lock::Held.opened(call, node).await?;
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
