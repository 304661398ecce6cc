//! `/v1/allocations`: a client wishes for a node, and is given one at once or told why not.

mod choose;

use super::field::{Empty, Field, Type, Write, object, told, written};
use super::{Rest, Sort, TooOld, check_name, list, refused, rights, view, write};
use crate::body::python;
use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::fields::Kind;
use crate::nodes::rules::UPDATE_ALLOWED;
use crate::traits;
use crate::write as nodes;
use axum::extract::Path;
use model::{Node, ProvisionState, Resource, ResourceKind};
use serde_json::Value;
use store::ResourceWrite;
use uuid::Uuid;

/// An allocation.
pub struct Allocation;

/// What is served of allocations.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/allocations" 52 "baremetal:allocation:list", "allocations" => list::list::<Allocation>;
        POST "/v1/allocations" 52 "baremetal:allocation:create", "wish for a node" => create;
        GET "/v1/allocations/{ident}" 52 "baremetal:allocation:get", "an allocation" => list::show::<Allocation>;
        PATCH "/v1/allocations/{ident}" 57 "baremetal:allocation:update", "change it" => patch;
        DELETE "/v1/allocations/{ident}" 52 "baremetal:allocation:delete", "give the node back" => delete;
        GET "/v1/nodes/{ident}/allocation" 52 "baremetal:allocation:get", "allocation of a node" => of_node;
        DELETE "/v1/nodes/{ident}/allocation" 52 "baremetal:allocation:delete", "give the node back" => delete_of_node;
    ]
}

const fn list_of(name: &'static str, kind: super::field::Reader) -> Field {
    written(name, 52, Write::Create(Type::Special(kind))).or(Empty::List).unsortable()
}

impl Rest for Allocation {
    const SORT: Sort = Sort {
        kind: ResourceKind::Allocation,
        one: "an allocation",
        word: "allocation",
        path: "allocations",
        list: "allocations",
        since: 52,
        too_old: TooOld::Disallowed("allocations"),
        detail: None,
        named: true,
        fields: &[
            list_of("candidate_nodes", texts),
            object("extra", 52),
            written("name", 52, Write::Always(Type::Plain(Kind::Text(255)))),
            written("owner", 60, Write::Create(Type::Plain(Kind::Text(255)))),
            written("resource_class", 52, Write::Create(Type::Plain(Kind::Text(80)))),
            list_of("traits", trait_names),
            told("last_error", 52),
            told("node_uuid", 52),
            told("state", 52),
        ],
        short: &[
            "uuid",
            "name",
            "candidate_nodes",
            "extra",
            "last_error",
            "node_uuid",
            "owner",
            "resource_class",
            "state",
            "traits",
            "created_at",
            "updated_at",
        ],
        filters: &[("node", 52), ("resource_class", 52), ("state", 52), ("owner", 60)],
        below: &[],
    };

    async fn settle(_: &Call, old: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
        let verb = if old.is_some() { "update" } else { "create" };
        check_name(&new, &format!("Cannot {verb} allocation with invalid name"))?;
        Ok(new)
    }

    async fn filtered(call: &Call, found: Vec<Resource>) -> Result<Vec<Resource>, ApiError> {
        let mut found = super::equal(call, &Self::SORT, found)?;
        if let Some(ident) = call.args.text("node") {
            let node = named_node(call, ident).await?.uuid;
            found.retain(|allocation| allocation.node == Some(node));
        }
        Ok(found)
    }
}

fn texts(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    each(what, name, value, |item| match item {
        Value::String(_) => Ok(()),
        other => Err(ApiError::invalid(format!(
            "Schema error for {what}: {} is not of type 'string' (field \"{name}\")",
            python(other)
        ))),
    })
}

/// A list of names of traits, or null.
pub fn trait_names(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    each(what, name, value, |item| traits::name(what, item).map(drop))
}

fn each(
    what: &str,
    name: &str,
    value: &Value,
    check: impl Fn(&Value) -> Result<(), ApiError>,
) -> Result<Value, ApiError> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Array(items) => items.iter().try_for_each(check).map(|()| value.clone()),
        other => Err(ApiError::invalid(format!(
            "Schema error for {what}: {} is not of type 'array', 'null' (field \"{name}\")",
            python(other)
        ))),
    }
}

/// A node that a query or a body names: 400 when there is none.
async fn named_node(call: &Call, ident: &str) -> Result<Node, ApiError> {
    call.node(ident).await.map_err(|error| match error.status {
        404 => ApiError::invalid(error.message),
        _ => error,
    })
}

/// `POST /v1/allocations`. Ironic looks for the node later and answers `allocating`; here it is done when the answer
/// comes, `active` or `error`.
async fn create(call: Call) -> Reply {
    Allocation::SORT.exists(&call, 405)?;
    call.args.only(&[])?;
    let mut given = crate::schema::object("allocation", call.json()?)?;
    let target = match given.remove("node") {
        None | Some(Value::Null) => None,
        Some(Value::String(ident)) if call.version.has(58) => Some(named_node(&call, &ident).await?),
        Some(Value::String(_)) => {
            return Err(ApiError::invalid("Cannot set node when creating an allocation in this API version"));
        }
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "Schema error for allocation: {} is not of type 'string', 'null' (field \"node\")",
                python(&other)
            )));
        }
    };
    let has_uuid = given.get("uuid").is_some_and(|uuid| !uuid.is_null());
    let mut new = write::read::<Allocation>(&call, given)?;
    new = Allocation::settle(&call, None, new).await?;
    new = rights::settle(&call, None, new).await?;
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
        None => choose::allocate(&call, new).await?,
    };
    Ok(write::created::<Allocation>(&call, &made))
}

/// `PATCH /v1/allocations/{ident}`.
async fn patch(path: Path<String>, call: Call) -> Reply {
    Allocation::SORT.exists(&call, 405)?;
    if !call.version.has(57) {
        return Err(ApiError::plain(405, "The API version does not allow updating allocations"));
    }
    write::patch::<Allocation>(path, call).await
}

/// `DELETE /v1/allocations/{ident}`.
async fn delete(Path(ident): Path<String>, call: Call) -> Reply {
    Allocation::SORT.exists(&call, 405)?;
    call.args.only(&[])?;
    let allocation = Allocation::SORT.find(&call, &ident).await?;
    end(&call, allocation).await
}

/// `GET /v1/nodes/{ident}/allocation`.
async fn of_node(Path(ident): Path<String>, call: Call) -> Reply {
    Allocation::SORT.exists(&call, 404)?;
    call.args.only(&["fields"])?;
    let wanted = list::fields::<Allocation>(&call)?;
    let allocation = that_of(&call, &ident).await?;
    Ok(json(200, &view::view::<Allocation>(&call, &allocation, wanted.as_deref())))
}

/// `DELETE /v1/nodes/{ident}/allocation`.
async fn delete_of_node(Path(ident): Path<String>, call: Call) -> Reply {
    Allocation::SORT.exists(&call, 404)?;
    call.args.only(&[])?;
    let allocation = that_of(&call, &ident).await?;
    end(&call, allocation).await
}

async fn that_of(call: &Call, ident: &str) -> Result<Resource, ApiError> {
    let node = call.node(ident).await?.uuid;
    let found = call.app.store.resources(ResourceKind::Allocation, Some(node)).await?.pop();
    found.ok_or_else(|| ApiError::client(404, format!("Allocation for node {ident} was not found")))
}

/// The allocation that a node holds, for its view.
pub async fn held_by(call: &Call, node: &Node) -> Result<Option<Uuid>, ApiError> {
    if node.instance_uuid.is_none() {
        return Ok(None);
    }
    let found = call.app.store.resources(ResourceKind::Allocation, Some(node.uuid)).await?;
    Ok(found.first().map(|allocation| allocation.uuid))
}

/// End it. One that holds a node ends with the instance of that node.
async fn end(call: &Call, allocation: Resource) -> Reply {
    let Some(node) = allocation.node else {
        let write = ResourceWrite::Delete(allocation.kind, allocation.uuid, allocation.version);
        let gone = call.app.store.write_resource(write, None).await;
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
