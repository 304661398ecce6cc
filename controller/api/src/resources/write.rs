//! Making, changing and removing a resource.

use super::{Rest, field, owner, refused, rights, view};
use crate::call::{Call, empty, json, locate};
use crate::error::{ApiError, Reply};
use crate::patch::{self, Op};
use crate::schema;
use axum::body::Body;
use axum::extract::Path;
use axum::http::Response;
use model::Resource;
use serde_json::{Map, Value};
use store::{ResourceWrite, StoreError};
use uuid::Uuid;

/// How often a change is tried again when another one was faster.
pub const TRIES: usize = 5;

/// `POST /v1/…`.
pub async fn create<R: Rest>(call: Call) -> Reply {
    R::SORT.exists(&call, 405)?;
    call.args.only(&[])?;
    let given = schema::object(R::SORT.word, call.json()?)?;
    let new = R::settle(&call, None, read::<R>(&call, given)?).await?;
    let new = rights::settle(&call, None, new).await?;
    let write = ResourceWrite::Create(new.clone());
    let made = call.app.store.write_resource(write, None).await.map_err(|error| refused::<R>(error, &new))?;
    Ok(created::<R>(&call, &made))
}

/// `PATCH /v1/…/{ident}`.
pub async fn patch<R: Rest>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SORT.exists(&call, 405)?;
    call.args.only(&[])?;
    let ops = patch::parse(&call.json()?, call.version)?;
    let mut old = R::SORT.find(&call, &ident).await?;
    may_be_patched::<R>(&call, &ops)?;
    for _ in 0..TRIES {
        let new = patched::<R>(&old, &ops)?;
        if let Some(node) = new.node {
            owner(&call, node).await?;
        }
        let new = R::settle(&call, Some(&old), new).await?;
        let mut new = rights::settle(&call, Some(&old), new).await?;
        if new == old {
            break;
        }
        new.updated_at = Some(call.now());
        match call.app.store.write_resource(ResourceWrite::Update(new.clone()), None).await {
            Ok(written) => return Ok(json(200, &view::view::<R>(&call, &written, None))),
            Err(StoreError::Stale(_)) => old = R::SORT.find(&call, &old.uuid.to_string()).await?,
            Err(other) => return Err(refused::<R>(other, &new)),
        }
    }
    let now = R::SORT.find(&call, &old.uuid.to_string()).await?;
    if now == old {
        return Ok(json(200, &view::view::<R>(&call, &old, None)));
    }
    Err(refused::<R>(StoreError::Stale(old.uuid), &old))
}

/// `DELETE /v1/…/{ident}`.
pub async fn delete<R: Rest>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SORT.exists(&call, 405)?;
    call.args.only(&[])?;
    let resource = R::SORT.find(&call, &ident).await?;
    remove::<R>(&call, resource).await
}

/// Remove it, once it may go.
pub async fn remove<R: Rest>(call: &Call, mut resource: Resource) -> Reply {
    for _ in 0..TRIES {
        R::may_go(call, &resource).await?;
        let write = ResourceWrite::Delete(resource.kind, resource.uuid, resource.version);
        match call.app.store.write_resource(write, None).await {
            Ok(_) => return Ok(empty(204, None)),
            Err(StoreError::Stale(uuid)) => resource = R::SORT.find(call, &uuid.to_string()).await?,
            Err(other) => return Err(refused::<R>(other, &resource)),
        }
    }
    Err(refused::<R>(StoreError::Stale(resource.uuid), &resource))
}

/// 201 with what was made, and where.
pub fn created<R: Rest>(call: &Call, made: &Resource) -> Response<Body> {
    let mut response = json(201, &view::view::<R>(call, made, None));
    locate(&mut response, Some(&call.links.v1(&format!("{}/{}", R::SORT.path, made.uuid))));
    response
}

/// A new one by its schema.
pub fn read<R: Rest>(call: &Call, given: Map<String, Value>) -> Result<Resource, ApiError> {
    let sort = &R::SORT;
    let unknown: Vec<_> = given
        .keys()
        .map(String::as_str)
        .filter(|name| sort.field(name).and_then(field::Field::creatable).is_none())
        .collect();
    schema::no_others(sort.word, &unknown)?;
    required::<R>(sort.word, &given)?;
    let mut new = Resource::new(sort.kind, Uuid::new_v4(), call.now());
    for (name, value) in &given {
        let Some(field) = sort.field(name) else { continue };
        let Some(kind) = field.creatable() else { continue };
        let value = field::check(sort.word, name, kind, value)?;
        if !value.is_null() {
            call.version.needs(field.since)?;
        }
        field::set(&mut new, name, value);
    }
    Ok(new)
}

fn required<R: Rest>(what: &str, given: &Map<String, Value>) -> Result<(), ApiError> {
    match R::missing(given) {
        None => Ok(()),
        Some(missing) => {
            Err(ApiError::invalid(format!("Schema error for {what}: '{missing}' is a required property")))
        }
    }
}

/// Refuses operations on what PATCH does not change, or on what is too new.
fn may_be_patched<R: Rest>(call: &Call, ops: &[Op]) -> Result<(), ApiError> {
    for op in ops {
        match R::SORT.field(op.field()).filter(|field| field.patchable().is_some()) {
            Some(field) => call.version.needs(field.since)?,
            None => {
                let allowed: Vec<_> = R::SORT
                    .fields
                    .iter()
                    .filter(|field| field.patchable().is_some())
                    .map(|field| field.name)
                    .collect();
                return Err(ApiError::invalid(format!(
                    "Cannot patch {}. Only the following can be updated: {}",
                    op.pointer(),
                    allowed.join(", ")
                )));
            }
        }
    }
    Ok(())
}

/// The resource after the operations.
fn patched<R: Rest>(old: &Resource, ops: &[Op]) -> Result<Resource, ApiError> {
    let sort = &R::SORT;
    let writable = || sort.fields.iter().filter_map(|field| Some((field, field.patchable()?)));
    let before: Map<_, _> =
        writable().map(|(field, _)| (field.name.to_owned(), field::read(sort, old, field.name))).collect();
    let after = patch::apply(before.clone(), ops)?;
    required::<R>("patch", &after)?;
    let mut new = old.clone();
    for (field, kind) in writable() {
        let value = after.get(field.name).unwrap_or(&Value::Null);
        if before.get(field.name) != Some(value) {
            let value = match value {
                // Taken away, or set to nothing: it is again what it is when nobody wrote it.
                Value::Null if !after.contains_key(field.name) => Value::Null,
                value => field::check("patch", field.name, kind, value)?,
            };
            field::set(&mut new, field.name, value);
        }
    }
    Ok(new)
}
