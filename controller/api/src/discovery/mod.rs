//! `/v1/anneal/discovery`: machines that no node was known for, for operators. Extensions of Anneal's, so no microversion guards
//! them. What their agents ask is in [`crate::ramdisk`].

mod new_node;
mod settings;

pub use new_node::{DiscoveredNode, Reported};
pub use settings::DiscoverySettings;

use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::format::{at, iso};
use axum::extract::Path;
use model::discovery::{DiscoveredMachine, DiscoveryState};
use model::history::{EventKind, Severity};
use model::{Event, Node};
use serde_json::{Value, json};
use store::{NodeChange, StoreError, log_events};
use uuid::Uuid;

/// Endpoints of discovery.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/discovery" 1 "anneal:discovery:get", "machines that no node was known for" => list;
        POST "/v1/anneal/discovery/{machine}/approve" 1 "anneal:discovery:decide", "keep the node of one" => approve;
        POST "/v1/anneal/discovery/{machine}/reject" 1 "anneal:discovery:decide", "delete the node of one" => reject;
        DELETE "/v1/anneal/discovery/{machine}" 1 "anneal:discovery:decide", "forget one" => forget;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

async fn list(call: Call) -> Reply {
    call.args.only(&[])?;
    let mut machines = Vec::new();
    for machine in call.app.store.discovered_machines().await? {
        let node = node_of(&call, &machine).await?;
        machines.push(view(&machine, node.as_ref()));
    }
    Ok(json(200, &json!({"machines": machines})))
}

/// `POST …/approve`: its node is one like any other from now on.
async fn approve(Path(ident): Path<String>, call: Call) -> Reply {
    let (machine, node) = found(&call, &ident).await?;
    let change = match (machine.state_with(node.as_ref()), node) {
        (DiscoveryState::Waiting, Some(node)) => (NodeChange::Update(Box::new(node.clone())), Some(node)),
        // It was put to work: a conductor may be writing it.
        (DiscoveryState::Approved, node) => (NodeChange::None, node),
        (state, _) => return Err(refused(&machine, "approved", state)),
    };
    decided(&call, machine, DiscoveryState::Approved, change, EventKind::Flag).await
}

/// `POST …/reject`: its node is deleted, and it is not booted again.
async fn reject(Path(ident): Path<String>, call: Call) -> Reply {
    let (machine, node) = found(&call, &ident).await?;
    let change = match (machine.state_with(node.as_ref()), node) {
        (DiscoveryState::Waiting, Some(node)) => (NodeChange::Delete(node.uuid, node.version), Some(node)),
        (DiscoveryState::Booted | DiscoveryState::Rejected, None) => (NodeChange::None, None),
        (state, _) => return Err(refused(&machine, "rejected", state)),
    };
    decided(&call, machine, DiscoveryState::Rejected, change, EventKind::Deleted).await
}

/// `DELETE …`: it may be discovered again.
async fn forget(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let (machine, node) = found(&call, &ident).await?;
    if machine.state_with(node.as_ref()) == DiscoveryState::Waiting {
        return Err(refused(&machine, "forgotten", DiscoveryState::Waiting));
    }
    call.app.store.forget_discovered(machine.id, machine.version).await?;
    tracing::info!(machine = %machine.id, mac = %machine.mac, request_id = call.request_id, "a discovered machine is forgotten");
    Ok(empty(204, None))
}

/// Store what an operator decided, with the change of the node.
async fn decided(
    call: &Call,
    machine: DiscoveredMachine,
    state: DiscoveryState,
    (change, node): (NodeChange, Option<Node>),
    kind: EventKind,
) -> Reply {
    call.args.only(&[])?;
    call.arguments(&[])?;
    let text = format!("discovery: {} by a user", state.as_str());
    let events = match &change {
        NodeChange::None => Vec::new(),
        _ => call.caused(vec![Event::new(kind, Severity::Info, text, call.now())]),
    };
    let decided_at = machine.decided_at.filter(|_| machine.state == state).or(Some(call.now()));
    let machine = DiscoveredMachine { state, decided_at, ..machine };
    let machine = call.app.store.write_discovered(machine, change, events.clone()).await?;
    tracing::info!(machine = %machine.id, mac = %machine.mac, state = state.as_str(), request_id = call.request_id, "an operator decided about a discovered machine");
    if let Some(node) = &node {
        log_events(node, &events);
    }
    Ok(json(200, &view(&machine, node.as_ref().filter(|_| state == DiscoveryState::Approved))))
}

/// The machine with this id or MAC address, and its node.
async fn found(call: &Call, ident: &str) -> Result<(DiscoveredMachine, Option<Node>), ApiError> {
    let machine = match (Uuid::try_parse(ident), ident.parse::<mac::Mac>()) {
        (Ok(id), _) => call.app.store.discovered_machine(id).await?,
        (Err(_), Ok(mac)) => {
            let mut known = call.app.store.discovered_machines().await?.into_iter().rev();
            known.find(|machine| machine.macs.contains(&mac)).ok_or_else(|| absent(ident))?
        }
        (Err(_), Err(_)) => {
            return Err(ApiError::invalid("Expected the UUID or a MAC address of a discovered machine"));
        }
    };
    let node = node_of(call, &machine).await?;
    Ok((machine, node))
}

/// The node that its report made, while there is one.
pub async fn node_of(call: &Call, machine: &DiscoveredMachine) -> Result<Option<Node>, ApiError> {
    let Some(node) = machine.node else { return Ok(None) };
    match call.app.store.node(node).await {
        Ok(node) => Ok(Some(node)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn absent(ident: &str) -> ApiError {
    ApiError::client(404, format!("Discovered machine {ident} could not be found."))
}

fn refused(machine: &DiscoveredMachine, what: &str, state: DiscoveryState) -> ApiError {
    let why = match state {
        DiscoveryState::Booted => "it has not reported its hardware",
        DiscoveryState::Waiting => "it waits for approval: approve or reject it first",
        DiscoveryState::Approved => "its node is one like any other: delete that",
        DiscoveryState::Rejected => {
            "it was rejected, or its node was deleted: forget it, so that it may boot again"
        }
    };
    ApiError::conflict(format!("Discovered machine {} can not be {what}: {why}.", machine.id))
}

fn view(machine: &DiscoveredMachine, node: Option<&Node>) -> Value {
    json!({
        "uuid": machine.id,
        "state": machine.state_with(node).as_str(),
        "mac": machine.mac.to_string(),
        "macs": machine.macs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "address": machine.address.to_string(),
        "node_uuid": node.map(|node| node.uuid),
        "node_name": node.and_then(|node| node.name.clone()),
        "booted_at": iso(machine.booted_at),
        "waits_until": iso(machine.until),
        "decided_at": at(machine.decided_at),
    })
}
