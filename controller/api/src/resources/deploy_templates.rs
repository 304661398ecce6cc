//! `/v1/deploy_templates`: deploy steps under the name of a trait.

use super::field::{Empty, Field, Reader, Type, Write, read_only, written};
use super::resource::{ResourceHandler, ResourceSpec, TooOld};
use super::{list, write};
use crate::body::{self, python};
use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::ApiError;
use crate::{schema, steps, traits};
use model::mask::masked_value;
use model::{Node, RequestedStep, Resource, ResourceKind, StepKind};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A deploy template.
pub struct DeployTemplate;

/// The minor version since which deploy templates exist.
const SINCE: u16 = 55;

/// Longest description, in characters.
const DESCRIPTION: usize = 255;

/// What is served of deploy templates.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/deploy_templates" 55 "baremetal:deploy_template:get", "deploy templates"
            => list::list::<DeployTemplate>;
        POST "/v1/deploy_templates" 55 "baremetal:deploy_template:create", "add one"
            => write::create::<DeployTemplate>;
        GET "/v1/deploy_templates/{ident}" 55 "baremetal:deploy_template:get", "a deploy template"
            => list::show::<DeployTemplate>;
        PATCH "/v1/deploy_templates/{ident}" 55 "baremetal:deploy_template:update", "change it"
            => write::patch::<DeployTemplate>;
        DELETE "/v1/deploy_templates/{ident}" 55 "baremetal:deploy_template:delete", "remove it"
            => write::delete::<DeployTemplate>;
    ]
}

const fn optional(name: &'static str, read: Reader) -> Field {
    written(name, SINCE, Write::Always(Type::Special(read)))
}

const fn required(name: &'static str, read: Reader) -> Field {
    written(name, SINCE, Write::Required(Type::Special(read)))
}

impl ResourceHandler for DeployTemplate {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::DeployTemplate,
        one: "a deploy template",
        word: "template",
        path: "deploy_templates",
        list: "deploy_templates",
        since: SINCE,
        too_old: TooOld::Disallowed("deploy templates"),
        detail: Some(SINCE),
        named: Some(1),
        fields: &[
            optional("extra", read_extra).or(Empty::Object).unsortable(),
            required("name", |what, _, value| Ok(traits::name(what, value)?.into())),
            required("steps", read_steps).unsortable(),
            optional("description", read_description),
            written("uuid", SINCE, Write::Create(Type::Special(read_uuid))),
            read_only("links", SINCE).unsortable(),
        ],
        short: &["uuid", "name"],
        filters: &[],
        below: &[],
    };

    async fn validate(_: &Call, _: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
        Ok(new)
    }

    /// Ironic keeps no description: it is shown when there is one.
    fn extend_view(_: &Call, template: &Resource, view: &mut Map<String, Value>) {
        if template.field("description").is_null() {
            view.remove("description");
        }
        if let Some(Value::Array(steps)) = view.get_mut("steps") {
            for step in steps {
                step["args"] = masked_value(&step["args"]);
            }
        }
    }

    fn missing(given: &Map<String, Value>) -> Option<&'static str> {
        ["steps", "name"].into_iter().find(|name| !given.contains_key(*name))
    }

    fn unknown_fields(unknown: &[&str]) -> ApiError {
        let first = unknown.first().copied().unwrap_or_default();
        let known: Vec<_> = field_names().iter().map(|name| format!("'{name}'")).collect();
        ApiError::invalid(format!("Schema error: '{first}' is not one of [{}]", known.join(", ")))
    }
}

/// Names of all fields, in alphabetical order.
pub fn field_names() -> BTreeSet<&'static str> {
    DeployTemplate::SPEC.fields.iter().chain(super::field::COMMON).map(|field| field.name).collect()
}

fn read_uuid(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    match value {
        Value::Null | Value::String(_) => {
            Ok(body::uuid(name, value)?.map_or(Value::Null, |uuid| uuid.to_string().into()))
        }
        other => Err(schema::wrong_type(what, other, "'string', 'null'")),
    }
}

fn read_extra(what: &str, _: &str, value: &Value) -> Result<Value, ApiError> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Object(extra) if extra.is_empty() => Ok(Value::Null),
        Value::Object(_) => Ok(value.clone()),
        other => Err(schema::wrong_type(what, other, "'object', 'null'")),
    }
}

fn read_description(what: &str, _: &str, value: &Value) -> Result<Value, ApiError> {
    match value {
        Value::String(text) if text.chars().count() > DESCRIPTION => {
            Err(ApiError::invalid(format!("Schema error for {what}: {} is too long", python(value))))
        }
        Value::Null | Value::String(_) => Ok(value.clone()),
        other => Err(schema::wrong_type(what, other, "'string', 'null'")),
    }
}

fn read_steps(what: &str, _: &str, value: &Value) -> Result<Value, ApiError> {
    let items = match value {
        Value::Array(items) if items.is_empty() => {
            return Err(ApiError::invalid(format!("Schema error for {what}: [] should be non-empty")));
        }
        Value::Array(items) => items,
        other => return Err(schema::wrong_type(what, other, "'array'")),
    };
    let mut steps = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let step = steps::requested(item, StepKind::Deploy).map_err(|why| {
            ApiError::invalid(format!("Schema error for {what}: {why} (field \"steps[{index}]\")"))
        })?;
        steps.push(step);
    }
    let mut seen = BTreeSet::new();
    let key = |step: &RequestedStep| format!("interface: {}, step: {}", step.interface, step.step);
    let twice: BTreeSet<_> = steps.iter().map(key).filter(|key| !seen.insert(key.clone())).collect();
    if twice.is_empty() {
        return Ok(json!(steps));
    }
    let twice: Vec<_> = twice.into_iter().collect();
    Err(ApiError::invalid(format!(
        "Deploy template invalid: Duplicate deploy steps. A template cannot have multiple deploy steps with the \
         same interface and step. Duplicates: {}.",
        twice.join("; ")
    )))
}

/// Deploy steps of the templates that the instance of a node asks for: those named like one of
/// `instance_info.traits`, by name. 400 when these are not traits of the node.
pub async fn of_instance(call: &Call, node: &Node) -> Result<Vec<RequestedStep>, ApiError> {
    let names = instance_traits(node).map_err(|why| {
        ApiError::invalid(format!("Failed to validate deploy or power info for node {}: {why}", node.uuid))
    })?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut templates = call.app.store.resources(ResourceKind::DeployTemplate, None).await?;
    templates.retain(|template| template.name.as_ref().is_some_and(|name| names.contains(name)));
    templates.sort_by(|one, other| one.name.cmp(&other.name));
    let steps =
        templates.iter().flat_map(|template| template.field("steps").as_array().into_iter().flatten());
    steps
        .map(RequestedStep::deserialize)
        .collect::<Result<_, _>>()
        .map_err(|_| ApiError::internal("steps of a deploy template"))
}

/// The traits that the instance asks for, or Ironic's text on why it cannot have them.
fn instance_traits(node: &Node) -> Result<BTreeSet<String>, String> {
    let no_list = || {
        format!(
            "Error parsing traits from Node {} instance_info field. A list of strings is expected.",
            node.uuid
        )
    };
    let items = match node.instance_info.get("traits") {
        None | Some(Value::Null) => return Ok(BTreeSet::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(no_list()),
    };
    let names: BTreeSet<String> = items
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(no_list)?;
    let missing: Vec<_> = names.difference(&node.traits).map(String::as_str).collect();
    if !missing.is_empty() {
        return Err(format!(
            "Cannot specify instance traits that are not also set on the node. Node {} is missing traits {}",
            node.uuid,
            missing.join(", ")
        ));
    }
    Ok(names)
}
