//! Choice of the node for an allocation.

use super::allocation::Allocation;
use crate::call::Call;
use crate::error::ApiError;
use crate::lock::{Lock, LockWait};
use crate::resources::resource::refused;
use model::history::{EventKind, Severity};
use model::{Event, Node, ProvisionState, Resource, request};
use serde_json::Value;
use std::collections::BTreeSet;
use store::{
    FieldValue, NodeField, NodeFilter, NodeQuery, Place, ResourceWrite, StoreError, Unique, log_events,
};
use uuid::Uuid;

/// Nodes that are read at a time, to be tried one after the other.
const AT_ONCE: usize = 100;

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
    let wanted = traits(&wish);
    let mut nodes = Nodes::of(&wish);
    // Those that only lack traits are counted too: the reason is another one.
    let (mut free, mut suitable, mut busy) = (0_usize, 0_usize, Vec::new());
    while let Some(batch) = nodes.next(call).await? {
        free += batch.len();
        for node in batch.into_iter().filter(|node| wanted.iter().all(|name| node.traits.contains(*name))) {
            suitable += 1;
            let uuid = node.uuid;
            match give(call, &wish, node).await? {
                Given::Made(made) => return Ok(*made),
                Given::Busy => busy.push(uuid),
                Given::Gone => {}
            }
        }
    }
    if let Some(made) = first_released(call, &nodes, busy).await? {
        return Ok(made);
    }
    let why = if suitable > 0 {
        format!("could not reserve any of {suitable} suitable nodes")
    } else if free > 0 {
        let wanted: Vec<_> = wanted.into_iter().collect();
        format!("no suitable nodes have the requested traits {}", wanted.join(", "))
    } else if candidates(&wish).is_empty() {
        format!("no available nodes match the resource class {}", class(&wish))
    } else {
        format!("none of the requested nodes are available and match the resource class {}", class(&wish))
    };
    failed(call, wish, &why).await
}

/// Give an allocation the first of these nodes that is released and still suits it; `None` once none suits it any more.
async fn first_released(
    call: &Call,
    nodes: &Nodes<'_>,
    mut busy: Vec<Uuid>,
) -> Result<Option<Resource>, ApiError> {
    let Some(first) = busy.first().copied() else { return Ok(None) };
    let locked = || ApiError::locked(first, call.app.members.own());
    let mut waiting = LockWait::begin(call).ok_or_else(locked)?;
    let mut look = busy.clone();
    let mut in_time = true;
    loop {
        for uuid in look {
            let node = match call.app.store.node(uuid).await {
                Ok(node) => Some(node).filter(|node| nodes.suits(node)),
                Err(StoreError::NotFound { .. }) => None,
                Err(other) => return Err(other.into()),
            };
            let given = match node {
                Some(node) => give(call, nodes.wish, node).await?,
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

/// The nodes that an allocation may be given, apart from their traits, some at a time.
struct Nodes<'a> {
    wish: &'a Resource,
    filter: NodeFilter,
    next: Next,
    /// The node with the allocation's name.
    first: Option<Uuid>,
}

/// Which nodes come next.
enum Next {
    /// The one with the allocation's name: a client that names both alike expects it.
    Named,
    /// Those after this place, in the order of creation.
    After(Option<Place>),
    /// None.
    End,
}

impl<'a> Nodes<'a> {
    fn of(wish: &'a Resource) -> Self {
        let equal = vec![
            (NodeField::ProvisionState, ProvisionState::Available.as_str().into()),
            (NodeField::InstanceUuid, FieldValue::Null),
            (NodeField::Maintenance, FieldValue::Bool(false)),
            (NodeField::ResourceClass, class(wish).into()),
        ];
        let mut filter = NodeFilter { equal, ..NodeFilter::default() };
        if let Some(owner) = wish.text("owner").filter(|owner| !owner.is_empty()) {
            filter = filter.within(owner);
        }
        Self { wish, filter, next: Next::Named, first: None }
    }

    async fn next(&mut self, call: &Call) -> Result<Option<Vec<Node>>, ApiError> {
        let mut nodes = match &self.next {
            Next::End => return Ok(None),
            Next::Named => {
                let nodes = self.named(call).await?;
                self.first = nodes.first().map(|node| node.uuid);
                self.next = Next::After(None);
                return Ok(Some(nodes));
            }
            Next::After(_) if !candidates(self.wish).is_empty() => {
                self.next = Next::End;
                self.requested(call).await?
            }
            Next::After(place) => {
                let query =
                    NodeQuery { after: place.clone(), ..NodeQuery::first(AT_ONCE, self.filter.clone()) };
                let page = call.app.store.node_page(query).await?;
                let last = page.nodes.last().filter(|_| page.more).map(|node| Place::of_node(node, None));
                self.next = last.map_or(Next::End, |last| Next::After(Some(last)));
                page.nodes
            }
        };
        nodes.retain(|node| self.first != Some(node.uuid) && self.is_free(node));
        Ok(Some(nodes))
    }

    async fn named(&self, call: &Call) -> Result<Vec<Node>, ApiError> {
        let Some(name) = &self.wish.name else { return Ok(Vec::new()) };
        let mut filter = self.filter.clone();
        filter.equal.push((NodeField::Name, name.as_str().into()));
        let mut nodes = call.app.store.node_page(NodeQuery::first(1, filter)).await?.nodes;
        nodes.retain(|node| self.is_free(node));
        Ok(nodes)
    }

    /// The nodes that the allocation asks for, in the order of creation.
    async fn requested(&self, call: &Call) -> Result<Vec<Node>, ApiError> {
        let mut nodes = Vec::new();
        for uuid in candidates(self.wish).into_iter().filter_map(|uuid| Uuid::parse_str(uuid).ok()) {
            match call.app.store.node(uuid).await {
                Ok(node) if self.filter.matches(&node) => nodes.push(node),
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        nodes.sort_by_key(|node| (node.created_at, node.uuid));
        nodes.dedup_by_key(|node| node.uuid);
        Ok(nodes)
    }

    /// Whether a node that was read again may still be given.
    fn suits(&self, node: &Node) -> bool {
        let has_traits = traits(self.wish).iter().all(|name| node.traits.contains(*name));
        self.filter.matches(node) && self.is_free(node) && has_traits
    }

    /// What the filter of the store does not say.
    fn is_free(&self, node: &Node) -> bool {
        let candidates = candidates(self.wish);
        node.target_provision_state.is_none()
            && node.power_state.is_some()
            && (candidates.is_empty() || candidates.contains(&node.uuid.to_string().as_str()))
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
    let made = call
        .app
        .store
        .write_resource(ResourceWrite::Create(given.clone()), change, call.did(given, "created"))
        .await?;
    log_events(&node, &events);
    Ok(made)
}

fn class(wish: &Resource) -> &str {
    wish.text("resource_class").unwrap_or_default()
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
    let written = call
        .app
        .store
        .write_resource(ResourceWrite::Create(new.clone()), None, call.did(&new, "created"))
        .await;
    written.map_err(|error| refused::<Allocation>(error, &new))
}
