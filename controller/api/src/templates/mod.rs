//! `/v1/deploy_templates`: deploy steps under the name of a trait.

mod list;
mod view;
mod write;

pub use view::FIELDS;

use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::ApiError;
use model::{DeployTemplate, Node, RequestedStep};
use serde_json::Value;
use std::collections::BTreeSet;
use store::StoreError;
use uuid::Uuid;

/// The minor version since which there are templates.
const SINCE: u16 = 55;

/// Endpoints of deploy templates.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/deploy_templates" 55 "baremetal:deploy_template:get", "deploy templates" => list::list;
        POST "/v1/deploy_templates" 55 "baremetal:deploy_template:create", "add one" => write::create;
        GET "/v1/deploy_templates/{ident}" 55 "baremetal:deploy_template:get", "a deploy template" => list::show;
        PATCH "/v1/deploy_templates/{ident}" 55 "baremetal:deploy_template:update", "change it" => write::patch;
        DELETE "/v1/deploy_templates/{ident}" 55 "baremetal:deploy_template:delete", "remove it" => write::delete;
    ]
}

/// Before 1.55: `status` of what is not there, with Ironic's words.
fn since(call: &Call, status: u16) -> Result<(), ApiError> {
    let too_old = || ApiError::plain(status, "The API version does not allow deploy templates");
    call.version.has(SINCE).then_some(()).ok_or_else(too_old)
}

/// The template with this UUID or name.
async fn find(call: &Call, ident: &str) -> Result<DeployTemplate, ApiError> {
    if Uuid::parse_str(ident).is_err() && !crate::args::is_logical_name(ident) {
        return Err(ApiError::invalid(format!("Expected UUID or name for template_ident: {ident}")));
    }
    Ok(call.app.store.template(ident).await?)
}

/// Deploy steps of the templates that the instance of a node asks for: those named like one of
/// `instance_info.traits`, by name. 400 when these are no traits of the node.
pub async fn of_instance(call: &Call, node: &Node) -> Result<Vec<RequestedStep>, ApiError> {
    let names = instance_traits(node).map_err(|why| {
        ApiError::invalid(format!("Failed to validate deploy or power info for node {}: {why}", node.uuid))
    })?;
    let templates = call.app.store.templates_named(&names).await?;
    Ok(templates.into_iter().flat_map(|template| template.steps).collect())
}

/// What the instance asks for, in the words of Ironic when it cannot have that.
fn instance_traits(node: &Node) -> Result<Vec<String>, String> {
    let no_list = || {
        format!(
            "Error parsing traits from Node {} instance_info field. A list of strings is expected.",
            node.uuid
        )
    };
    let items = match node.instance_info.get("traits") {
        None | Some(Value::Null) => return Ok(Vec::new()),
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
    Ok(names.into_iter().collect())
}

/// A stale write in words of templates; everything else in those of the store.
fn refused(error: StoreError) -> ApiError {
    match error {
        StoreError::Stale(template) => ApiError::conflict(format!(
            "Deploy template {template} was changed by somebody else meanwhile, please retry."
        )),
        other => other.into(),
    }
}
