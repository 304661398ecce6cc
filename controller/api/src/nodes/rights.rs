//! Policies that a change of a node needs in addition to that of its row. Pure.

use crate::auth::Owners;
use crate::body;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields;
use crate::patch::Op;
use model::{Node, ProvisionState};
use serde_json::Value;

/// Ironic's policy for an operation of a patch.
fn policy(op: &Op) -> &'static str {
    match op.field() {
        "instance_info" | "instance_name" => "baremetal:node:update_instance_info",
        "extra" => "baremetal:node:update_extra",
        "driver_info" => "baremetal:node:update:driver_info",
        "properties" => "baremetal:node:update:properties",
        "chassis_uuid" => "baremetal:node:update:chassis_uuid",
        "instance_uuid" => "baremetal:node:update:instance_uuid",
        "lessee" => "baremetal:node:update:lessee",
        "owner" => "baremetal:node:update:owner",
        "network_data" => "baremetal:node:update:network_data",
        "conductor_group" => "baremetal:node:update:conductor_group",
        "name" => "baremetal:node:update:name",
        "retired" | "retired_reason" => "baremetal:node:update:retired",
        "shard" => "baremetal:node:update:shard",
        "parent_node" => "baremetal:node:update:parent_node",
        "disable_power_off" => "baremetal:node:update:disable_power_off",
        "automated_clean" if switches_off(op) => "baremetal:node:disable_cleaning",
        field if field == "driver" || field.ends_with("_interface") => {
            "baremetal:node:update:driver_interfaces"
        }
        _ => "baremetal:node:update",
    }
}

fn switches_off(op: &Op) -> bool {
    op.whole_value().is_some_and(|value| matches!(body::boolean("automated_clean", value), Ok(Some(false))))
}

/// 403 unless the caller may do all of a patch to the node; 409 for the owner of a node in use.
pub fn patch(call: &Call, node: &Node, ops: &[Op]) -> Result<(), ApiError> {
    for op in ops {
        call.permit(policy(op), node)?;
    }
    let changes_owner = ops.iter().any(|op| op.field() == "owner" && !op.removes());
    if changes_owner
        && node.provision_state == ProvisionState::Active
        && !call.may("baremetal:node:update_owner_provisioned", node)
    {
        return Err(ApiError::conflict(format!(
            "Cannot update owner of node \"{}\" while it is in state \"active\".",
            node.uuid
        )));
    }
    Ok(())
}

/// A node that a project enrols belongs to it, and so does its parent.
pub async fn create(call: &Call, node: &mut Node) -> Result<(), ApiError> {
    let Some(project) = call.identity.project() else { return Ok(()) };
    if Owners::of(node).owner.is_some_and(|owner| owner != project) {
        return Err(ApiError::invalid(
            "Cannot create a node as a project scoped admin with an owner other than your own project.",
        ));
    }
    fields::write(node, "owner", Value::from(project));
    if let Value::String(parent) = fields::read(node, "parent_node") {
        let owner = match call.node(&parent).await {
            Ok(parent) => Owners::of(&parent).owner,
            Err(_) => None,
        };
        if owner.as_deref() != Some(project) {
            return Err(ApiError::invalid(format!(
                "Unable to apply the requested parent_node '{parent}'. Requested value was invalid."
            )));
        }
    }
    Ok(())
}
