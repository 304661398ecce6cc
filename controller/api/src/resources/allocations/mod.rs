//! `/v1/allocations`: a client asks for a node. It is given one, or the reason why not, before the answer, which says
//! `allocating` all the same, as Ironic's does: clients read the end.

mod allocation;
mod choose;

use super::resource::{ResourceHandler, named_node, refused};
use super::{list, rights, view, write};
use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::nodes::validation::UPDATE_ALLOWED;
use crate::schema;
use crate::write as nodes;
use allocation::Allocation;
use axum::extract::Path;
use model::{Node, ProvisionState, Resource, ResourceKind};
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use store::ResourceWrite;
use uuid::Uuid;

/// Endpoints of allocations.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/allocations" 52 "baremetal:allocation:list", "allocations" => list::list::<Allocation>;
        POST "/v1/allocations" 52 "baremetal:allocation:create", "ask for a node" => create;
        GET "/v1/allocations/{ident}" 52 "baremetal:allocation:get", "an allocation" => list::show::<Allocation>;
        PATCH "/v1/allocations/{ident}" 57 "baremetal:allocation:update", "change it" => patch;
        DELETE "/v1/allocations/{ident}" 52 "baremetal:allocation:delete", "release the node" => delete;
        GET "/v1/nodes/{ident}/allocation" 52 "baremetal:allocation:get", "allocation of a node" => of_node;
        DELETE "/v1/nodes/{ident}/allocation" 52 "baremetal:allocation:delete", "release the node" => delete_of_node;
    ]
}

/// `POST /v1/allocations`. What came of it is there when the answer comes; who asked sees it by GET. A node that is named
/// is looked at while the client waits, in Ironic too.
async fn create(call: Call) -> Reply {
    Allocation::SPEC.exists(&call, 405)?;
    call.args.only(&[])?;
    let mut given = schema::object("allocation", call.json()?)?;
    let target = match given.remove("node") {
        None | Some(Value::Null) => None,
        Some(Value::String(ident)) if call.version.has(58) => Some(named_node(&call, &ident).await?),
        Some(Value::String(_)) => {
            return Err(ApiError::invalid("Cannot set node when creating an allocation in this API version"));
        }
        Some(other) => return Err(schema::wrong_field("allocation", "node", &other, "'string', 'null'")),
    };
    let has_uuid = given.get("uuid").is_some_and(|uuid| !uuid.is_null());
    let mut new = write::read::<Allocation>(&call, given)?;
    new = Allocation::validate(&call, None, new).await?;
    new = rights::validate(&call, None, new).await?;
    if new.text("resource_class").is_none_or(str::is_empty) {
        let class = target.as_ref().and_then(|node| node.resource_class.clone());
        if target.is_none() {
            return Err(ApiError::invalid("The resource_class field is mandatory when not backfilling"));
        }
        new.fields.insert("resource_class".into(), class.map_or(Value::Null, Value::from));
    }
    let mut candidates: Vec<Uuid> = Vec::new();
    for ident in new.field("candidate_nodes").as_array().into_iter().flatten().filter_map(Value::as_str) {
        candidates.push(named_node(&call, ident).await?.uuid);
    }
    if !candidates.is_empty() {
        let uuids = candidates.iter().map(|uuid| Value::from(uuid.to_string())).collect();
        new.fields.insert("candidate_nodes".into(), uuids);
    }
    let made = match target {
        Some(node) => {
            if let (false, Some(instance)) = (has_uuid, node.instance_uuid) {
                new.uuid = instance;
            }
            choose::backfill(&call, new, node).await?
        }
        None => as_asked_for(choose::allocate(&call, new).await?),
    };
    Ok(write::created::<Allocation>(&call, &made))
}

/// An allocation as it was before a node was looked for.
fn as_asked_for(mut made: Resource) -> Resource {
    made.node = None;
    made.updated_at = None;
    made.fields.insert("state".into(), "allocating".into());
    made.fields.remove("last_error");
    made
}

/// `PATCH /v1/allocations/{ident}`.
async fn patch(path: Path<String>, call: Call) -> Reply {
    Allocation::SPEC.exists(&call, 405)?;
    if !call.version.has(57) {
        return Err(ApiError::plain(405, "The API version does not allow updating allocations"));
    }
    write::patch::<Allocation>(path, call).await
}

/// `DELETE /v1/allocations/{ident}`.
async fn delete(Path(ident): Path<String>, call: Call) -> Reply {
    Allocation::SPEC.exists(&call, 405)?;
    call.args.only(&[])?;
    let allocation = Allocation::SPEC.find(&call, &ident).await?;
    end(&call, allocation).await
}

/// `GET /v1/nodes/{ident}/allocation`. For Ironic the node is a filter of the list: 400 when there is none.
async fn of_node(Path(ident): Path<String>, call: Call) -> Reply {
    Allocation::SPEC.exists(&call, 404)?;
    call.args.only(&["fields"])?;
    let wanted = list::fields_asked::<Allocation>(&call)?;
    let node = named_node(&call, &ident).await?.uuid;
    let allocation = that_of(&call, node, &ident).await?;
    Ok(json(200, &view::view::<Allocation>(&call, &allocation, wanted.as_deref())))
}

/// `DELETE /v1/nodes/{ident}/allocation`.
async fn delete_of_node(Path(ident): Path<String>, call: Call) -> Reply {
    Allocation::SPEC.exists(&call, 404)?;
    call.args.only(&[])?;
    let node = call.node(&ident).await?.uuid;
    let allocation = that_of(&call, node, &ident).await?;
    end(&call, allocation).await
}

/// The allocation of a node, which the path calls `ident`.
async fn that_of(call: &Call, node: Uuid, ident: &str) -> Result<Resource, ApiError> {
    let found = call.app.store.resources(ResourceKind::Allocation, Some(node)).await?.pop();
    found.ok_or_else(|| ApiError::client(404, format!("Allocation for node {ident} was not found")))
}

/// The allocations that these nodes hold, each with its node, for their views. An allocation that holds a node has the UUID
/// of the node's instance.
pub async fn held_by(
    call: &Call,
    nodes: &[impl Borrow<Node> + Sync],
) -> Result<BTreeSet<(Uuid, Uuid)>, ApiError> {
    let instances: Vec<Uuid> = nodes.iter().filter_map(|node| node.borrow().instance_uuid).collect();
    if instances.is_empty() {
        return Ok(BTreeSet::new());
    }
    let found = call.app.store.resources_by_uuid(ResourceKind::Allocation, &instances).await?;
    Ok(found.iter().filter_map(|allocation| Some((allocation.node?, allocation.uuid))).collect())
}

/// End it. One that holds a node ends with the instance of that node.
async fn end(call: &Call, allocation: Resource) -> Reply {
    let Some(node) = allocation.node else {
        let write = ResourceWrite::Delete(allocation.kind, allocation.uuid, allocation.version);
        let gone = call.app.store.write_resource(write, None, call.did(&allocation, "deleted")).await;
        return gone.map(|_| empty(204, None)).map_err(|error| refused::<Allocation>(error, &allocation));
    };
    nodes::change_unlocked(call, &node.to_string(), |node| {
        if node.instance_uuid != Some(allocation.uuid) {
            return Err(ApiError::client(404, format!("Allocation {} could not be found.", allocation.uuid)));
        }
        may_be_freed(node, allocation.uuid)?;
        Ok((Node { instance_uuid: None, ..node.clone() }, Vec::new()))
    })
    .await?;
    Ok(empty(204, None))
}

fn may_be_freed(node: &Node, allocation: Uuid) -> Result<(), ApiError> {
    let refuse = |why: String| {
        Err(ApiError::conflict(format!(
            "Cannot remove allocation {allocation} for node {}, because the node is {why}",
            node.uuid
        )))
    };
    let state = node.provision_state;
    if node.maintenance {
        return Ok(());
    }
    if node.target_provision_state.is_some() && !UPDATE_ALLOWED.contains(&state) {
        return refuse(format!(
            "in state {} where updates are not allowed (and maintenance mode is off)",
            state.as_str()
        ));
    }
    if state == ProvisionState::Active {
        return refuse("active (and maintenance mode is off)".to_owned());
    }
    Ok(())
}
