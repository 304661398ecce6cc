//! What rights a resource needs beyond those of its row: for the node that its body names, and for whose it is.

use super::resource::owner;
use crate::call::Call;
use crate::error::ApiError;
use model::{Resource, ResourceKind};
use serde_json::Value;

/// A new one, or one that was `old`, if the caller may have it so. What a project makes is its own.
pub async fn validate(call: &Call, old: Option<&Resource>, mut new: Resource) -> Result<Resource, ApiError> {
    let verb = if old.is_some() { "update" } else { "create" };
    let object = match new.kind {
        ResourceKind::Port => "port",
        ResourceKind::Portgroup => "portgroup",
        ResourceKind::VolumeConnector | ResourceKind::VolumeTarget => "volume",
        ResourceKind::Allocation | ResourceKind::Runbook => {
            if let Some(project) = call.identity.project() {
                of_project(project, old, &mut new)?;
            }
            return Ok(new);
        }
        ResourceKind::Chassis | ResourceKind::DeployTemplate | ResourceKind::InspectionRule => {
            return Ok(new);
        }
    };
    if let Some(node) = new.node {
        call.permit(&format!("baremetal:{object}:{verb}"), &owner(call, node).await?)?;
    }
    Ok(new)
}

fn of_project(project: &str, old: Option<&Resource>, new: &mut Resource) -> Result<(), ApiError> {
    if old.is_none() && new.field("owner").is_null() {
        new.fields.insert("owner".into(), project.into());
    }
    if new.text("owner") != Some(project) {
        return Err(ApiError::forbidden(match new.kind {
            ResourceKind::Runbook => "baremetal:runbook:update:owner",
            _ => "baremetal:allocation:create_restricted",
        }));
    }
    let public = |resource: &Resource| resource.field("public") == &Value::Bool(true);
    if public(new) && !old.is_some_and(public) {
        return Err(ApiError::forbidden("baremetal:runbook:update:public"));
    }
    Ok(())
}
