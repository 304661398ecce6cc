//! Making, changing and removing templates.

use super::{find, refused, since, view};
use crate::body::{self, python};
use crate::call::{Call, empty, json, locate};
use crate::error::{ApiError, Reply};
use crate::patch::{self, Op};
use crate::retry::Retry;
use crate::{schema, steps, traits};
use axum::extract::Path;
use model::mask::masked_value;
use model::{DeployTemplate, RequestedStep, StepKind};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::StoreError;
use uuid::Uuid;

/// What PATCH may change, in the order in which messages list it.
const PATCHABLE: [&str; 4] = ["extra", "name", "steps", "description"];

/// Longest description, in characters.
const DESCRIPTION: usize = 255;

/// What clients write of a template.
struct Written {
    name: String,
    steps: Vec<RequestedStep>,
    description: Option<String>,
    extra: Map<String, Value>,
}

/// `POST /v1/deploy_templates`.
pub async fn create(call: Call) -> Reply {
    since(&call, 405)?;
    call.args.only(&[])?;
    let mut given = schema::object("template", call.json()?)?;
    let uuid = match given.remove("uuid").unwrap_or(Value::Null) {
        Value::Null => None,
        Value::String(text) => Some(Value::String(text)),
        other => return Err(wrong("template", &other, "'string', 'null'")),
    };
    let Written { name, steps, description, extra } = read("template", given)?;
    let uuid = body::uuid("uuid", &uuid.unwrap_or(Value::Null))?.unwrap_or_else(Uuid::new_v4);
    let template = DeployTemplate {
        uuid,
        name,
        version: 0,
        steps,
        description,
        extra,
        created_at: call.now(),
        updated_at: None,
    };
    let template = call.app.store.create_template(template).await?;
    let mut response = json(201, &view::view(&template, &call.links, None));
    let location = call.links.v1(&format!("deploy_templates/{}", template.uuid));
    locate(&mut response, Some(&location));
    Ok(response)
}

/// `PATCH /v1/deploy_templates/{ident}`.
pub async fn patch(Path(ident): Path<String>, call: Call) -> Reply {
    since(&call, 405)?;
    call.args.only(&[])?;
    let ops = patch::parse(&call.json()?, call.version)?;
    for op in &ops {
        if !PATCHABLE.contains(&op.field()) {
            return Err(ApiError::invalid(format!(
                "Cannot patch {}. Only the following can be updated: {}",
                op.pointer(),
                PATCHABLE.join(", ")
            )));
        }
    }
    let mut retry = Retry::new();
    loop {
        let old = find(&call, &ident).await?;
        let new = patched(&old, &ops)?;
        if new == old {
            return Ok(json(200, &view::view(&old, &call.links, None)));
        }
        let new = DeployTemplate { updated_at: Some(call.now()), ..new };
        match call.app.store.update_template(new).await {
            Ok(template) => return Ok(json(200, &view::view(&template, &call.links, None))),
            Err(StoreError::Stale(_)) if retry.again().await => {}
            Err(other) => return Err(refused(other)),
        }
    }
}

/// `DELETE /v1/deploy_templates/{ident}`. Runs under way keep the steps that they were begun with.
pub async fn delete(Path(ident): Path<String>, call: Call) -> Reply {
    since(&call, 405)?;
    call.args.only(&[])?;
    let template = find(&call, &ident).await?;
    call.app.store.delete_template(template.uuid).await?;
    Ok(empty(204, None))
}

fn patched(old: &DeployTemplate, ops: &[Op]) -> Result<DeployTemplate, ApiError> {
    let steps = serde_json::to_value(&old.steps).map_err(|_| ApiError::internal("steps of a template"))?;
    let before = Map::from_iter([
        ("name".to_owned(), old.name.clone().into()),
        ("steps".to_owned(), steps),
        ("extra".to_owned(), Value::Object(old.extra.clone())),
        ("description".to_owned(), old.description.clone().map_or(Value::Null, Value::from)),
    ]);
    let Written { name, steps, description, extra } = read("patch", patch::apply(before, ops)?)?;
    Ok(DeployTemplate { name, steps, description, extra, ..old.clone() })
}

/// A template by its schema; `what` is `template` or `patch`.
fn read(what: &str, mut given: Map<String, Value>) -> Result<Written, ApiError> {
    for key in ["steps", "name"] {
        if !given.contains_key(key) {
            return Err(ApiError::invalid(format!(
                "Schema error for {what}: '{key}' is a required property"
            )));
        }
    }
    let unknown: Vec<_> = given.keys().map(String::as_str).filter(|name| !PATCHABLE.contains(name)).collect();
    schema::no_others(what, &unknown)?;
    let mut take = |name: &str| given.remove(name).unwrap_or(Value::Null);
    let description = match take("description") {
        Value::Null => None,
        Value::String(text) if text.chars().count() > DESCRIPTION => {
            let text = format!("Schema error for {what}: {} is too long", python(&text.into()));
            return Err(ApiError::invalid(text));
        }
        Value::String(text) => Some(text),
        other => return Err(wrong(what, &other, "'string', 'null'")),
    };
    let extra = match take("extra") {
        Value::Null => Map::new(),
        Value::Object(extra) => extra,
        other => return Err(wrong(what, &other, "'object', 'null'")),
    };
    let name = traits::name(what, &take("name"))?.to_owned();
    Ok(Written { name, steps: read_steps(what, &take("steps"))?, description, extra })
}

fn read_steps(what: &str, given: &Value) -> Result<Vec<RequestedStep>, ApiError> {
    let items = match given {
        Value::Array(items) if items.is_empty() => {
            return Err(ApiError::invalid(format!("Schema error for {what}: [] should be non-empty")));
        }
        Value::Array(items) => items,
        other => return Err(wrong(what, other, "'array'")),
    };
    let mut found = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let step = steps::requested(item, StepKind::Deploy).map_err(|why| {
            ApiError::invalid(format!("Schema error for {what}: {why} (field \"steps[{index}]\")"))
        })?;
        found.push(step);
    }
    let mut seen = BTreeSet::new();
    let key = |step: &RequestedStep| format!("interface: {}, step: {}", step.interface, step.step);
    let twice: BTreeSet<_> = found.iter().map(key).filter(|key| !seen.insert(key.clone())).collect();
    if twice.is_empty() {
        return Ok(found);
    }
    let twice: Vec<_> = twice.into_iter().collect();
    Err(ApiError::invalid(format!(
        "Deploy template invalid: Duplicate deploy steps. A template cannot have multiple deploy steps with the \
         same interface and step. Duplicates: {}.",
        twice.join("; ")
    )))
}

fn wrong(what: &str, value: &Value, types: &str) -> ApiError {
    let shown = python(&masked_value(value));
    ApiError::invalid(format!("Schema error for {what}: {shown} is not of type {types}"))
}
