//! Making, changing and removing a resource.

use super::resource::{ResourceHandler, owner, refused};
use super::{field, rights, view};
use crate::call::{Call, empty, json, locate};
use crate::error::{ApiError, Reply};
use crate::patch::{self, Op};
use crate::retry::Retry;
use crate::schema;
use axum::body::Body;
use axum::extract::Path;
use axum::http::Response;
use model::Resource;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::{ResourceWrite, StoreError};
use uuid::Uuid;

/// `POST /v1/…`.
pub async fn create<R: ResourceHandler>(call: Call) -> Reply {
    R::SPEC.exists(&call, 405)?;
    call.args.only(&[])?;
    let given = schema::object(R::SPEC.word, call.json()?)?;
    create_from::<R>(&call, given).await
}

/// Store a new one with the fields `given`.
pub async fn create_from<R: ResourceHandler>(call: &Call, given: Map<String, Value>) -> Reply {
    let new = R::validate(call, None, read::<R>(call, given)?).await?;
    let new = rights::validate(call, None, new).await?;
    let write = ResourceWrite::Create(new.clone());
    let events = call.did(&new, "created");
    let made = call.app.store.write_resource(write, None, events).await;
    let made = made.map_err(|error| refused::<R>(error, &new))?;
    R::written(call, None, &made).await?;
    Ok(created::<R>(call, &made))
}

/// `PATCH /v1/…/{ident}`.
pub async fn patch<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SPEC.exists(&call, 405)?;
    call.args.only(&[])?;
    let ops = patch::parse(&call.json()?, call.version)?;
    let mut old = R::SPEC.find(&call, &ident).await?;
    may_be_patched::<R>(&call, &ops)?;
    let fields: BTreeSet<&str> = ops.iter().map(Op::field).collect();
    let fields = Vec::from_iter(fields);
    let mut retry = Retry::new();
    loop {
        let new = patched::<R>(&old, &ops)?;
        if let Some(node) = new.node {
            owner(&call, node).await?;
        }
        let new = R::validate(&call, Some(&old), new).await?;
        let mut new = rights::validate(&call, Some(&old), new).await?;
        if new == old {
            return Ok(json(200, &view::view::<R>(&call, &old, None)));
        }
        new.updated_at = Some(call.now());
        let events = call.did(&new, &format!("changed ({})", fields.join(", ")));
        match call.app.store.write_resource(ResourceWrite::Update(new.clone()), None, events).await {
            Ok(written) => {
                R::written(&call, Some(&old), &written).await?;
                return Ok(json(200, &view::view::<R>(&call, &written, None)));
            }
            Err(StoreError::Stale(_)) if retry.again().await => {
                old = R::SPEC.find(&call, &old.uuid.to_string()).await?;
            }
            Err(other) => return Err(refused::<R>(other, &new)),
        }
    }
}

/// `DELETE /v1/…/{ident}`.
pub async fn delete<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SPEC.exists(&call, 405)?;
    call.args.only(&[])?;
    let resource = R::SPEC.find(&call, &ident).await?;
    remove::<R>(&call, resource).await
}

/// Remove it, once it may go.
pub async fn remove<R: ResourceHandler>(call: &Call, mut resource: Resource) -> Reply {
    let mut retry = Retry::new();
    loop {
        R::may_go(call, &resource).await?;
        let write = ResourceWrite::Delete(resource.kind, resource.uuid, resource.version);
        let events = call.did(&resource, "deleted");
        match call.app.store.write_resource(write, None, events).await {
            Ok(_) => return Ok(empty(204, None)),
            Err(StoreError::Stale(uuid)) if retry.again().await => {
                resource = R::SPEC.find(call, &uuid.to_string()).await?;
            }
            Err(other) => return Err(refused::<R>(other, &resource)),
        }
    }
}

/// 201 with what was made, and where.
pub fn created<R: ResourceHandler>(call: &Call, made: &Resource) -> Response<Body> {
    let mut response = json(201, &view::view::<R>(call, made, None));
    locate(&mut response, Some(&call.links.v1(&format!("{}/{}", R::SPEC.path, made.uuid))));
    response
}

/// A new one by its schema.
pub fn read<R: ResourceHandler>(call: &Call, given: Map<String, Value>) -> Result<Resource, ApiError> {
    let spec = &R::SPEC;
    let unknown: Vec<_> = given
        .keys()
        .map(String::as_str)
        .filter(|name| spec.field(name).and_then(field::Field::creatable).is_none())
        .collect();
    schema::no_others(spec.word, &unknown)?;
    required::<R>(spec.word, &given)?;
    let mut new = Resource::new(spec.kind, Uuid::new_v4(), call.now());
    for (name, value) in &given {
        let Some(field) = spec.field(name) else { continue };
        let Some(kind) = field.creatable() else { continue };
        let value = field::check(spec.word, name, kind, value)?;
        if !value.is_null() {
            call.version.needs(field.since)?;
        }
        field::set(&mut new, name, value);
    }
    Ok(new)
}

fn required<R: ResourceHandler>(what: &str, given: &Map<String, Value>) -> Result<(), ApiError> {
    match R::missing(given) {
        None => Ok(()),
        Some(missing) => {
            Err(ApiError::invalid(format!("Schema error for {what}: '{missing}' is a required property")))
        }
    }
}

/// Refuses operations on what PATCH does not change, or on what is too new.
fn may_be_patched<R: ResourceHandler>(call: &Call, ops: &[Op]) -> Result<(), ApiError> {
    for op in ops {
        match R::SPEC.field(op.field()).filter(|field| field.patchable().is_some()) {
            Some(field) => call.version.needs(field.since)?,
            None => return Err(patch::not_patchable(op, R::SPEC.fields)),
        }
    }
    Ok(())
}

/// The resource after the operations.
fn patched<R: ResourceHandler>(old: &Resource, ops: &[Op]) -> Result<Resource, ApiError> {
    let spec = &R::SPEC;
    let writable = || spec.fields.iter().filter_map(|field| Some((field, field.patchable()?)));
    let before: Map<_, _> =
        writable().map(|(field, _)| (field.name.to_owned(), spec.read(old, field.name))).collect();
    let after = patch::apply(before.clone(), ops)?;
    required::<R>("patch", &after)?;
    let mut new = old.clone();
    for (field, kind) in writable() {
        let value = after.get(field.name).unwrap_or(&Value::Null);
        if before.get(field.name) != Some(value) {
            let value = match value {
                // Removed: it has its default again.
                Value::Null if !after.contains_key(field.name) => Value::Null,
                value => field::check("patch", field.name, kind, value)?,
            };
            field::set(&mut new, field.name, value);
        }
    }
    Ok(new)
}
