//! `PATCH /v1/nodes/{ident}`.

use super::{rights, show, validation};
use crate::call::Call;
use crate::error::{ApiError, Reply};
use crate::fields::{self, NODE};
use crate::patch::{self, Op};
use crate::resources::allocations;
use crate::resources::field::{self, Field};
use crate::write;
use axum::extract::Path;
use model::bmc_login::{PasswordRedirect, redirected};
use model::{Event, Node};
use serde_json::{Map, Value};

/// `PATCH /v1/nodes/{ident}[?reset_interfaces=true]`.
pub async fn patch(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["reset_interfaces"])?;
    let reset_interfaces = call.args.boolean("reset_interfaces")?;
    if reset_interfaces.is_some() {
        call.version.needs(45)?;
    }
    let reset_interfaces = reset_interfaces.unwrap_or(false);
    // Ironic answers 404 before it reads the patch, and 400 before it looks at the state.
    let seen = call.node(&ident).await?;
    let ops = patch::parse(&call.json()?, call.version)?;
    for op in &ops {
        let field = NODE
            .iter()
            .find(|field| field.name == op.field())
            .filter(|field| field.patchable().is_some())
            .ok_or_else(|| patch::not_patchable(op, NODE))?;
        if !op.removes() {
            call.version.needs(field.since)?;
        }
        if let (true, Some(Value::String(name))) = (op.field() == "name", op.whole_value())
            && !name.is_empty()
        {
            validation::name(
                name,
                call.version,
                &format!("Node {ident}: Cannot change name to invalid name"),
            )?;
        }
    }
    let sets_driver = ops.iter().any(|op| op.field() == "driver" && !op.removes());
    if reset_interfaces && !sets_driver {
        return Err(ApiError::invalid(
            "The reset_interfaces parameter can only be used when changing the node's driver.",
        ));
    }

    // Before an answer could reveal anything about the objects that the patch names.
    rights::patch(&call, &seen, &ops)?;
    for op in ops.iter().filter(|op| op.field() == "chassis_uuid") {
        validation::chassis(&call, op.whole_value()).await?;
    }
    let frees = ops.iter().any(|op| op.field() == "instance_uuid");
    let allocated = frees && !allocations::held_by(&call, std::slice::from_ref(&seen)).await?.is_empty();
    let wanted = ops.iter().filter(|op| op.field() == "parent_node").find_map(Op::whole_value);
    let parent = match wanted {
        Some(Value::String(parent)) => Some(validation::parent(&call, &seen, parent).await?),
        _ => None,
    };
    let decide = |old: &Node| {
        let changed = decide(&call, &ident, old, &ops, reset_interfaces, parent.as_deref())?;
        if allocated {
            validation::keeps_its_allocation(old, &changed.0)?;
        }
        Ok(changed)
    };
    let node = if ops.iter().any(about_retirement) {
        write::change_unlocked(&call, &ident, decide).await?
    } else {
        write::change(&call, &ident, decide).await?
    };
    show::answer(&call, 200, node, None).await
}

/// specs/node-retirement.txt: "can also be set for nodes in transient states, as long as the node is not locked".
fn about_retirement(op: &Op) -> bool {
    ["retired", "retired_reason"].contains(&op.field())
}

/// What is only shown to users, and at most given to agents with a command.
const DESCRIPTIVE: [&str; 15] = [
    "chassis_uuid",
    "conductor_group",
    "description",
    "extra",
    "instance_name",
    "lessee",
    "name",
    "network_data",
    "owner",
    "parent_node",
    "protected",
    "protected_reason",
    "resource_class",
    "retired_reason",
    "shard",
];

/// Whether the change of these fields may be the one that the conductor waits for. At a node at rest it waits for none that
/// only describes the node; otherwise each would have the BMC asked for the power state.
fn wakes(old: &Node, changed: &[&str]) -> bool {
    let at_rest =
        old.wait.is_none() && old.target_power_state.is_none() && old.target_provision_state.is_none();
    changed.iter().any(|name| !at_rest || !DESCRIPTIVE.contains(name))
}

/// 400 for a patch that would have the stored password of the BMC sent elsewhere.
fn keeps_the_password(ident: &str, old: &Node, new: &Node, ops: &[Op]) -> Result<(), ApiError> {
    let given = |key: &str| ops.iter().any(|op| op.sets("driver_info", key));
    match redirected(&old.driver_info, &new.driver_info, given) {
        None => Ok(()),
        Some(PasswordRedirect { key, password }) => Err(ApiError::invalid(format!(
            "Cannot change {key} of node {ident} without {password} in the same request: the stored password would \
             be sent to another service, or to one that is verified in another way."
        ))),
    }
}

/// The node after the patch.
fn decide(
    call: &Call,
    ident: &str,
    old: &Node,
    ops: &[Op],
    reset_interfaces: bool,
    parent: Option<&str>,
) -> Result<(Node, Vec<Event>), ApiError> {
    rights::patch(call, old, ops)?;
    // A node in maintenance may always lose its instance.
    let frees_instance =
        old.maintenance && matches!(ops, [op] if op.removes() && op.field() == "instance_uuid");
    let retires = !ops.is_empty() && ops.iter().all(about_retirement);
    if !frees_instance && !retires {
        validation::may_be_patched(old, ident, call.version)?;
    }
    let is_named = |field: &&Field| ops.iter().any(|op| op.field() == field.name);
    let writable = NODE.iter().filter(|field| field.patchable().is_some()).filter(is_named);
    let before: Map<_, _> =
        writable.clone().map(|field| (field.name.to_owned(), fields::read(old, field.name))).collect();
    let after = patch::apply(before.clone(), ops)?;

    let mut new = old.clone();
    let mut changed = Vec::new();
    for field in writable {
        let Some(kind) = field.patchable() else { continue };
        let value = after.get(field.name).unwrap_or(&Value::Null);
        let value = field::check("patch", field.name, kind, value)?;
        let value = match (field.name, parent) {
            ("parent_node", Some(parent)) => parent.into(),
            _ => value,
        };
        if before.get(field.name) != Some(&value) {
            fields::write(&mut new, field.name, value);
            changed.push(field.name);
        }
    }
    if changed.contains(&"chassis_uuid") && fields::read(&new, "chassis_uuid").is_null() {
        call.version.needs(25)?;
    }
    // Older clients know the name of an instance by this key only.
    if let (true, Value::Null, Some(Value::String(name))) = (
        changed.contains(&"instance_info"),
        fields::read(&new, "instance_name"),
        new.instance_info.get("display_name").cloned(),
    ) && !name.is_empty()
    {
        fields::write(&mut new, "instance_name", name.into());
    }
    if reset_interfaces {
        // Those that the same patch sets stay; the others go back to the new driver's defaults.
        new.interfaces.retain(|name, _| ops.iter().any(|op| op.field() == name));
    }
    if changed.contains(&"network_data") {
        validation::network_data(&new, "Invalid network_data")?;
    }
    validation::complete(old, &mut new)?;
    keeps_the_password(ident, old, &new, ops)?;
    if new.driver != old.driver && old.other.get("console_enabled") == Some(&Value::Bool(true)) {
        return Err(ApiError::conflict(format!(
            "Node {ident} can not update the driver while the console is enabled. Please stop the console first."
        )));
    }
    if new.driver != old.driver || new.interfaces != old.interfaces {
        validation::driver_and_interfaces(&call.app, &new)?;
    }
    let mut events = Vec::new();
    for (name, before, after, reason) in [
        ("maintenance", old.maintenance, new.maintenance, &new.maintenance_reason),
        ("retired", old.retired, new.retired, &new.retired_reason),
        ("protected", old.protected, new.protected, &new.protected_reason),
    ] {
        if before != after {
            events.push(validation::flag_event(name, after, reason.as_deref(), call.now()));
        }
    }
    events.extend(write::change_event(&changed, call.now()));
    if wakes(old, &changed) {
        new.next_wake_at = Some(call.now());
    }
    Ok((new, events))
}
