//! `POST /v1/continue_inspection`: an agent reports the hardware that it found, before its lookup.
//!
//! It has no token yet, so it shows the nonce of its boot. docs/decisions/0007 and 0021.

use super::report::{Report, Sender};
use super::report_body::{ReportBody, ReportGate};
use super::{discovery, foreign_boot, lookup, required_proof};
use crate::app::App;
use crate::call::{Call, json};
use crate::client_address;
use crate::error::{ApiError, Reply};
use crate::microversion::MIN;
use agent_protocol::lookup::MASKED;
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{Response, Uri};
use axum::response::IntoResponse;
use http_server::address_key;
use mac::Mac;
use model::{Inventory, Node, ProvisionState, RunKind};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use uuid::Uuid;

/// The states of a node that waits for a report.
const INSPECTING: [ProvisionState; 2] = [ProvisionState::Inspecting, ProvisionState::InspectWait];

/// Minor version since which this is there (and in 1.1, which ironic-python-agent asks for).
const SINCE: u16 = 84;

/// `POST /v1/continue_inspection[?node_uuid=<uuid>][&anneal_boot_id=<boot id>]`: 202; since 1.84 with what a lookup answers.
pub async fn continue_inspection(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let gate = parts.extensions.get::<Arc<ReportGate>>().cloned().unwrap_or_default();
    let address = client_address::of(&parts.extensions).map(address_key);
    let call = match Call::from_request(Request::from_parts(parts, Body::empty()), &app).await {
        Ok(call) => call,
        Err(refused) => return refused,
    };
    let _turn = gate.turn(address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))).await;
    receive(call, body, &gate).await.into_response()
}

async fn receive(call: Call, body: Body, gate: &ReportGate) -> Reply {
    call.args.only(&["node_uuid", "anneal_boot_id"])?;
    lookup::check_boot_id(call.args.text("anneal_boot_id"), "anneal_boot_id")?;
    let discovered = discovery::machine(&call).await?;
    let awaited = async { if discovered.is_some() { Ok(true) } else { is_awaited(&call).await } };
    let body = ReportBody::read(body, gate, awaited).await?;
    let sender = Sender::read(&body)?;
    if let Some(machine) = discovered {
        return discovery::report(&call, machine, sender, &body).await;
    }
    let Sender { addresses, bmc } = sender;
    let uuid = call.args.uuid("node_uuid")?;
    if !call.version.has(SINCE) && (call.version.has(MIN + 1) || uuid.is_some()) {
        return Err(ApiError::client(404, format!("API version 1.{SINCE} or newer is required")));
    }
    if uuid.is_none() && addresses.is_empty() && bmc.is_empty() {
        return Err(ApiError::invalid("No lookup information provided"));
    }
    let node = find(&call, uuid, &addresses, &bmc).await?;
    let Some(began) = expected_since(&node) else {
        let (node_uuid, state) = (node.uuid, node.provision_state.as_str());
        tracing::warn!(%node_uuid, state, "rejected an inventory: the node does not wait for one");
        foreign_boot::remark(&call, &node).await;
        return Err(ApiError::not_found());
    };
    let contact = call.app.store.contact(node.uuid).await?;
    if !lookup::is_of_this_boot(&call, &contact) {
        tracing::warn!(node_uuid = %node.uuid, "rejected an inventory: it does not show the nonce of the node's boot");
        foreign_boot::remark(&call, &node).await;
        return Err(ApiError::not_found());
    }
    let boot_id = call.args.text("anneal_boot_id");
    required_proof::check_proved(&call, &node, &contact, boot_id).await?;
    let Report { inventory, plugin_data } = Report::read(body.without_logs(node.uuid)?)?;
    drop(body.bytes);
    let reported =
        Inventory { inventory, plugin_data, at: call.now(), source: "agent".to_owned(), ruled: false };
    // The first of an inspection counts. An agent that missed the answer may repeat it.
    match call.app.store.inventory(node.uuid).await?.filter(|known| known.at >= began) {
        None => call.app.store.put_inventory(node.uuid, reported).await?,
        Some(known) if same(&known, &reported) => {}
        Some(_) => {
            tracing::warn!(node_uuid = %node.uuid, "rejected a second, different inventory in one inspection");
            return Err(ApiError::not_found());
        }
    }
    if !call.version.has(SINCE) {
        return Ok(json(202, &json!({"uuid": node.uuid})));
    }
    // The report is stored. When the inspection has already ended with it, nothing awaits the agent.
    let token = lookup::grant(&call, &node, boot_id).await?.unwrap_or_else(|| MASKED.to_owned());
    Ok(json(202, &lookup::answer(&call, &node, Some(token)).await?))
}

/// Whether any node, or the one that the query names, waits for a report.
async fn is_awaited(call: &Call) -> Result<bool, ApiError> {
    let nodes = match call.args.uuid("node_uuid")? {
        Some(uuid) => vec![lookup::known(call, uuid).await?],
        None => call.app.store.nodes_in(&INSPECTING).await?,
    };
    Ok(nodes.iter().any(|node| expected_since(node).is_some()))
}

/// Whether the report repeats the stored one. Plugin data that rules have changed cannot be compared.
fn same(known: &Inventory, reported: &Inventory) -> bool {
    known.inventory == reported.inventory && (known.ruled || known.plugin_data == reported.plugin_data)
}

/// Start of the inspection for which the node waits for an inventory, if it does.
fn expected_since(node: &Node) -> Option<model::Timestamp> {
    let run = node.run.as_ref().filter(|run| run.kind == RunKind::Inspect && !run.abort)?;
    let inspecting = INSPECTING.contains(&node.provision_state);
    (inspecting && run.awaits_agent()).then_some(run.started_at)
}

/// The one node that UUID, MAC addresses and BMC addresses all identify; 404 without a reason otherwise.
async fn find(call: &Call, uuid: Option<Uuid>, addresses: &[Mac], bmc: &[IpAddr]) -> Result<Node, ApiError> {
    let conflict = |what: &str| {
        tracing::warn!(?uuid, ?addresses, ?bmc, "inspection: {what}");
        ApiError::not_found()
    };
    let mut found = match uuid {
        Some(uuid) => Some(lookup::known(call, uuid).await?),
        None => None,
    };
    if let Some(owner) = lookup::owner(call, addresses).await? {
        if found.as_ref().is_some_and(|node| node.uuid != owner) {
            return Err(conflict("the addresses belong to another node than the UUID"));
        }
        found = Some(lookup::known(call, owner).await?);
    }
    let is_its_own = |node: &Node| {
        expected_since(node).is_some() && bmc_addresses(node).any(|address| bmc.contains(&address))
    };
    if !bmc.is_empty() && !found.as_ref().is_some_and(is_its_own) {
        let mut waiting = call.app.store.nodes_in(&INSPECTING).await?;
        waiting.retain(is_its_own);
        match (&found, waiting.as_slice()) {
            (_, []) => {}
            (None, [_]) => found = waiting.pop(),
            _ => return Err(conflict("the BMC's address belongs to another node, or to several")),
        }
    }
    found.ok_or_else(|| conflict("nothing in the report identifies a node"))
}

/// Addresses of the BMC in `driver_info`. Host names are not resolved: DNS is not trusted here.
fn bmc_addresses(node: &Node) -> impl Iterator<Item = IpAddr> {
    node.driver_info.iter().filter(|(key, _)| key.ends_with("_address")).filter_map(|(_, value)| {
        let text = value.as_str()?;
        let host = text.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        let host = host.unwrap_or_else(|| text.to_owned());
        host.trim_matches(['[', ']']).parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_bmcs() {
        let of = |key: &str, value: &str| -> Vec<String> {
            let mut node = Node::enrolled(Uuid::nil(), "redfish", model::Timestamp(0));
            node.driver_info.insert(key.into(), value.into());
            bmc_addresses(&node).map(|address| address.to_string()).collect()
        };
        assert_eq!(of("redfish_address", "https://192.0.2.1:8443"), ["192.0.2.1"]);
        assert_eq!(of("redfish_address", "https://[2001:db8::1]/"), ["2001:db8::1"]);
        assert_eq!(of("ipmi_address", "192.0.2.1"), ["192.0.2.1"]);
        assert_eq!(of("ipmi_address", "2001:db8::1"), ["2001:db8::1"]);
        for (key, value) in [("ipmi_address", "bmc1.example"), ("redfish_password", "192.0.2.1")] {
            assert!(of(key, value).is_empty(), "{key} {value}");
        }
    }
}
