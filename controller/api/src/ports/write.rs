//! Making, changing and removing ports.

use super::{find, view};
use crate::body::python;
use crate::call::{Call, empty, json, locate};
use crate::error::{ApiError, Reply};
use crate::patch::{self, Op};
use crate::resources::portgroups;
use crate::schema;
use axum::extract::Path;
use model::port::canonical_mac;
use model::{Node, Port, ProvisionState};
use serde_json::{Map, Value};
use store::{Noun, StoreError};
use uuid::Uuid;

/// Keys of `local_link_connection`, all texts.
const LINK_KEYS: [&str; 7] = [
    "port_id",
    "switch_id",
    "hostname",
    "switch_info",
    "network_type",
    "vtep-logical-switch",
    "vtep-physical-switch",
];

/// `POST /v1/ports`.
pub async fn create(call: Call) -> Reply {
    call.args.only(&[])?;
    let given = schema::object("port", call.json()?)?;
    let unknown: Vec<_> = given
        .keys()
        .map(String::as_str)
        .filter(|name| !matches!(*name, "uuid" | "node_ident"))
        .filter(|name| view::find(name).is_none_or(|field| field.kind.is_none()))
        .collect();
    schema::no_others("port", &unknown)?;
    let Some(address) = given.get("address") else {
        return Err(ApiError::invalid("Schema error for port: 'address' is a required property"));
    };
    let address = mac(address)?;
    let ident = match (given.get("node_uuid"), given.get("node_ident")) {
        (Some(uuid), None) => match schema::check("port", "node_uuid", crate::fields::Kind::Uuid, uuid)? {
            Value::String(uuid) => uuid,
            _ => {
                return Err(ApiError::invalid(
                    "Schema error for port: None is not of type 'string' (field \"node_uuid\")",
                ));
            }
        },
        (None, Some(ident)) => {
            let ident = ident.as_str().ok_or_else(|| {
                ApiError::invalid(format!(
                    "Schema error for port: {} is not of type 'string' (field \"node_ident\")",
                    python(ident)
                ))
            })?;
            call.version.needs(94)?;
            ident.to_owned()
        }
        (None, None) => {
            return Err(ApiError::invalid("Schema error for port: 'node_uuid' is a required property"));
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid(
                "Schema error for port: only one of 'node_uuid' and 'node_ident' may be given",
            ));
        }
    };
    let node = owner(&call, &ident).await?;
    call.permit("baremetal:port:create", &node)?;
    let uuid = match given.get("uuid") {
        Some(value) => crate::body::uuid("uuid", value)?.unwrap_or_else(Uuid::new_v4),
        None => Uuid::new_v4(),
    };
    let mut port = Port {
        uuid,
        node_uuid: node.uuid,
        address,
        name: None,
        pxe_enabled: true,
        extra: Map::new(),
        local_link_connection: Map::new(),
        other: Map::new(),
        created_at: call.now(),
        updated_at: None,
    };
    for (name, value) in &given {
        let Some((field, kind)) = view::find(name).and_then(|field| Some((field, field.kind?))) else {
            continue;
        };
        if matches!(field.name, "address" | "node_uuid") {
            continue;
        }
        let value = schema::check("port", name, kind, value)?;
        if !value.is_null() {
            call.version.needs(field.since)?;
        }
        check(field.name, &value)?;
        view::set(&mut port, name, value);
    }
    portgroups::takes(&call, &port).await?;
    name_is_free(&call, &port).await?;
    let port = call.app.store.create_port(port).await.map_err(duplicate)?;
    let location = call.links.v1(&format!("ports/{}", port.uuid));
    let mut response = json(201, &Value::Object(view::view(&port, &call.links, call.version, None)));
    locate(&mut response, Some(&location));
    Ok(response)
}

/// `PATCH /v1/ports/{ident}`.
pub async fn patch(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let mut port = find(&call, &ident).await?;
    let ops = patch::parse(&call.json()?, call.version)?;
    for op in &ops {
        let field =
            view::find(op.field()).filter(|field| field.kind.is_some()).ok_or_else(|| not_patchable(op))?;
        call.version.needs(field.since)?;
    }
    let before: Map<_, _> = view::FIELDS
        .iter()
        .filter(|field| field.kind.is_some())
        .map(|field| (field.name.to_owned(), view::value(&port, field.name)))
        .collect();
    let after = patch::apply(before.clone(), &ops)?;
    for field in &view::FIELDS {
        let Some(kind) = field.kind else { continue };
        let value = after.get(field.name).unwrap_or(&Value::Null);
        match field.name {
            "address" => port.address = mac(value)?,
            "node_uuid" => {
                let Value::String(uuid) = schema::check("patch", "node_uuid", kind, value)? else {
                    return Err(ApiError::invalid(
                        "Schema error for patch: 'node_uuid' is a required property",
                    ));
                };
                let node = owner(&call, &uuid).await?;
                // It must not leave for a node where the caller could not have put it.
                call.permit("baremetal:port:update", &node)?;
                port.node_uuid = node.uuid;
            }
            name => {
                let value = schema::check("patch", name, kind, value)?;
                if before.get(name) != Some(&value) {
                    check(name, &value)?;
                    view::set(&mut port, name, value);
                }
            }
        }
    }
    let node = owner(&call, &port.node_uuid.to_string()).await?;
    if node.provision_state == ProvisionState::Inspecting && call.version.has(39) {
        return Err(ApiError::conflict(format!(
            "Cannot update port \"{}\" on \"{}\" while it is in state \"inspecting\".",
            port.uuid, node.uuid
        )));
    }
    portgroups::takes(&call, &port).await?;
    name_is_free(&call, &port).await?;
    port.updated_at = Some(call.now());
    let port = call.app.store.update_port(port).await.map_err(duplicate)?;
    Ok(json(200, &Value::Object(view::view(&port, &call.links, call.version, None))))
}

/// `DELETE /v1/ports/{ident}`.
pub async fn delete(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let port = find(&call, &ident).await?;
    call.app.store.delete_port(port.uuid).await?;
    Ok(empty(204, None))
}

fn not_patchable(op: &Op) -> ApiError {
    let allowed: Vec<_> =
        view::FIELDS.iter().filter(|field| field.kind.is_some()).map(|field| field.name).collect();
    ApiError::invalid(format!(
        "Cannot patch {}. Only the following can be updated: {}",
        op.pointer(),
        allowed.join(", ")
    ))
}

fn mac(value: &Value) -> Result<String, ApiError> {
    let bad = || ApiError::invalid(format!("Expected valid MAC address for address: {}", plain(value)));
    canonical_mac(value.as_str().ok_or_else(bad)?).ok_or_else(bad)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| python(value), |text| text.chars().take(64).collect())
}

/// The node of a port. A node that is not there is 400 here: it stands in the body, not in the path.
async fn owner(call: &Call, ident: &str) -> Result<Node, ApiError> {
    call.node(ident).await.map_err(|error| match error.status {
        404 => ApiError::invalid(error.message),
        _ => error,
    })
}

/// What the type of a field does not say.
fn check(name: &str, value: &Value) -> Result<(), ApiError> {
    match (name, value) {
        ("name", Value::String(name)) if !name.is_empty() && !crate::args::is_logical_name(name) => {
            Err(ApiError::invalid(format!("Cannot create port with invalid name '{name}'")))
        }
        ("local_link_connection", Value::Object(link)) => {
            let unknown: Vec<_> =
                link.keys().map(String::as_str).filter(|key| !LINK_KEYS.contains(key)).collect();
            schema::no_others("local_link_connection", &unknown)?;
            for (key, value) in link {
                if !value.is_string() {
                    return Err(ApiError::invalid(format!(
                        "Schema error for local_link_connection: {} is not of type 'string' (field \"{key}\")",
                        python(value)
                    )));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn name_is_free(call: &Call, port: &Port) -> Result<(), ApiError> {
    let Some(name) = &port.name else { return Ok(()) };
    let taken = call
        .unscoped_app
        .store
        .ports(None)
        .await?
        .iter()
        .any(|other| other.uuid != port.uuid && other.name.as_ref() == Some(name));
    if taken {
        return Err(ApiError::conflict(format!("A port with name {name} already exists.")));
    }
    Ok(())
}

fn duplicate(error: StoreError) -> ApiError {
    match error {
        StoreError::NotFound { what: Noun::Node, ident } => {
            ApiError::invalid(format!("Node {ident} could not be found."))
        }
        other => other.into(),
    }
}
