//! Agents of machines that no node is known for: each shows the nonce of a discovery's boot. Its report makes a node; its lookups
//! bring no token, only how long it has to wait.

use super::report::{Report, Sender};
use super::report_body::ReportBody;
use crate::app::Settings;
use crate::call::{Call, json};
use crate::discovery::{DiscoveredNode, DiscoverySettings, Reported, node_of};
use crate::error::{ApiError, Reply};
use agent_protocol::discovery::{DiscoveryAnswer, DiscoveryLookup, Verdict};
use mac::Mac;
use model::boot::BootNonce;
use model::discovery::{DiscoveredMachine, DiscoveryState};
use model::{Inventory, Node, ResourceKind, Timestamp};
use serde_json::{Value, json};
use store::{NodeChange, StoreError, Unique, log_events};
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// The machine whose boot a request shows; `None`: it shows none of a discovery's.
///
/// # Errors
/// 404 without a reason: the nonce is not a machine's, or comes from a place where nothing is discovered.
pub async fn machine(call: &Call) -> Result<Option<DiscoveredMachine>, ApiError> {
    let Some(nonce) = &call.nonce else { return Ok(None) };
    let Some(id) = DiscoveredMachine::id_of(nonce) else { return Ok(None) };
    if !covers(&call.app.settings, call) {
        return Err(refused(call, id, "its address is in none of discovery.networks, or discovery is off"));
    }
    match call.app.store.discovered_machine(id).await {
        Ok(machine) if is_same(nonce, &machine.nonce) => Ok(Some(machine)),
        Ok(_) => Err(refused(call, id, "it does not show the nonce of its boot")),
        Err(StoreError::NotFound { .. }) => Err(refused(call, id, "no such machine was booted")),
        Err(other) => Err(other.into()),
    }
}

fn covers(settings: &Settings, call: &Call) -> bool {
    settings.discovery.as_ref().is_some_and(|discovery| discovery.covers(call.client()))
}

fn is_same(shown: &BootNonce, known: &BootNonce) -> bool {
    shown.expose().as_bytes().ct_eq(known.expose().as_bytes()).into()
}

/// One line of the log for each refusal; the caller learns nothing.
fn refused(call: &Call, machine: Uuid, why: &str) -> ApiError {
    tracing::warn!(%machine, client = ?call.client(), "discovery: refused a machine: {why}");
    ApiError::not_found()
}

/// What a lookup of such a machine brings: never a token.
pub async fn verdict(call: &Call, machine: &DiscoveredMachine) -> Reply {
    let node = node_of(call, machine).await?;
    Ok(json(200, &answer(machine, node.as_ref(), call.now())))
}

/// How long the machine has to wait.
fn answer(machine: &DiscoveredMachine, node: Option<&Node>, now: Timestamp) -> Value {
    let verdict = match machine.state_with(node) {
        DiscoveryState::Booted | DiscoveryState::Waiting => Verdict::Waiting,
        DiscoveryState::Approved => Verdict::Approved,
        DiscoveryState::Rejected => Verdict::Rejected,
    };
    json!(DiscoveryLookup {
        anneal_discovery: DiscoveryAnswer { verdict, seconds_left: machine.left(now).as_secs() }
    })
}

/// The report of a machine makes its node. One that is repeated changes nothing.
pub async fn report(call: &Call, machine: DiscoveredMachine, sender: Sender, body: &ReportBody) -> Reply {
    let Some(settings) = &call.app.settings.discovery else {
        return Err(refused(call, machine.id, "discovery is off"));
    };
    if machine.state != DiscoveryState::Booted {
        let node = node_of(call, &machine).await?;
        return accepted(call, &machine, node.as_ref());
    }
    if call.now() >= machine.until {
        return Err(refused(call, machine.id, "its report came after the time for which it waits"));
    }
    if !sender.addresses.contains(&machine.mac) {
        return Err(refused(call, machine.id, "its report does not name the MAC address that was booted"));
    }
    let macs = with_others(machine.mac, &sender.addresses);
    let machine = DiscoveredMachine { macs, heard: true, state: DiscoveryState::Waiting, ..machine };
    let Report { inventory, plugin_data } = Report::read(body.without_logs(machine.id)?)?;
    let at = call.now();
    let inventory = Inventory { inventory, plugin_data, at, source: "agent".to_owned(), ruled: false };
    let reported = Reported { inventory, bmc: sender.bmc.first().copied() };
    let made = made(call, &machine, reported, settings).await?;
    let (machine, node) = enrolled(call, machine, made).await?;
    accepted(call, &machine, Some(&node))
}

async fn made(
    call: &Call,
    machine: &DiscoveredMachine,
    reported: Reported,
    settings: &DiscoverySettings,
) -> Result<DiscoveredNode, ApiError> {
    let rules = call.app.store.resources(ResourceKind::InspectionRule, None).await?;
    let drivers: Vec<&str> = call.app.drivers.drivers().iter().map(|driver| driver.name.as_str()).collect();
    Ok(DiscoveredNode::of(machine, reported, (&rules, &drivers), settings, call.now()))
}

/// Store the node with all that belongs to it.
async fn enrolled(
    call: &Call,
    machine: DiscoveredMachine,
    made: DiscoveredNode,
) -> Result<(DiscoveredMachine, Node), ApiError> {
    let DiscoveredNode { new, events } = made;
    let events = call.caused(events);
    let machine = DiscoveredMachine { node: Some(new.node.uuid), ..machine };
    let node = new.node.clone();
    let change = NodeChange::Create(Box::new(new));
    match call.app.store.write_discovered(machine.clone(), change, events.clone()).await {
        Ok(machine) => {
            log_events(&node, &events);
            Ok((machine, node))
        }
        Err(StoreError::Duplicate { what: Unique::ResourceKey, value }) => {
            let refused =
                refused(call, machine.id, &format!("its report names {value}, the MAC address of a node"));
            let known = DiscoveredMachine { state: DiscoveryState::Booted, node: None, ..machine };
            call.app.store.write_discovered(known, NodeChange::None, Vec::new()).await?;
            Err(refused)
        }
        Err(other) => Err(other.into()),
    }
}

fn accepted(call: &Call, machine: &DiscoveredMachine, node: Option<&Node>) -> Reply {
    let mut body = answer(machine, node, call.now());
    body["uuid"] = json!(node.map(|node| node.uuid));
    Ok(json(202, &body))
}

/// The MAC address that was booted, and the others, each once.
fn with_others(booted: Mac, reported: &[Mac]) -> Vec<Mac> {
    let mut macs = vec![booted];
    for mac in reported {
        if !macs.contains(mac) {
            macs.push(*mac);
        }
    }
    macs
}
