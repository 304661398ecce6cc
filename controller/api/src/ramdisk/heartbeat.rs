//! `POST /v1/heartbeat/{ident}`: the agent is alive and reachable at this URL.
//!
//! Checks come in Ironic's order, so that a client sees the same error for the same fault, but for one thing: before the token
//! is checked, nothing of the answer depends on the node.

use super::callback::{CallbackUrl, Sender};
use super::{Rates, anneal, required_proof};
use crate::body;
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::microversion::Version;
use crate::token;
use axum::Extension;
use axum::extract::Path;
use model::agent::{AgentState, UnsignedAgent};
use model::boot::{AGENT_KIND, RamdiskAgent};
use model::{Contact, Node};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{HeartbeatRecord, StoreError};
use tokio::time::Instant;
use tpm::Digest;
use uuid::Uuid;

/// What a heartbeat may hold.
pub const ARGUMENTS: [&str; 7] = [
    "callback_url",
    "agent_version",
    "agent_token",
    "agent_verify_ca",
    "agent_status",
    "agent_status_message",
    "anneal",
];

/// The node, where the path does not name it.
pub const IDENT: &str = "node_ident";

/// Longest version that is kept, in bytes.
const VERSION_MAX: usize = 255;

/// `POST /v1/heartbeat/{ident}`: 202 without a body.
pub async fn heartbeat(
    Path(ident): Path<String>,
    Extension(nodes): Extension<Arc<Rates<Uuid>>>,
    call: Call,
) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&ARGUMENTS)?;
    beat(&call, &nodes, &ident, &given).await
}

/// `POST /v1/heartbeat`: the same, the node being `node_ident` of the body.
pub async fn with_ident(Extension(nodes): Extension<Arc<Rates<Uuid>>>, call: Call) -> Reply {
    call.args.only(&[])?;
    let mut given = call.arguments(&[&[IDENT][..], &ARGUMENTS].concat())?;
    let ident = body::required(&given, IDENT)?.to_owned();
    given.remove(IDENT);
    beat(&call, &nodes, &ident, &given).await
}

async fn beat(call: &Call, nodes: &Rates<Uuid>, ident: &str, given: &Map<String, Value>) -> Reply {
    let callback_url = body::required(given, "callback_url")?;
    let agent_version = body::text(given, "agent_version")?;
    let agent_token = body::text(given, "agent_token")?;
    let verify_ca = body::text(given, "agent_verify_ca")?;
    let status = body::text(given, "agent_status")?;
    let status_message = body::text(given, "agent_status_message")?;

    if !call.version.has(22) {
        return Err(ApiError::not_found());
    }
    let has_status = status.is_some() || status_message.is_some();
    fields_exist(call.version, agent_version.is_some(), has_status, verify_ca.is_some())?;
    let callback = CallbackUrl::parse(callback_url)?;
    let agent_token = required_token(agent_token, status, agent_version)?;
    let (node, contact) = authenticate(call, ident, agent_token).await?;
    if contact.callback_url.as_deref().is_some_and(|known| known != callback_url) {
        tracing::warn!(node_uuid = %node.uuid, callback_url, "rejected a heartbeat: another callback URL");
        return Err(ApiError::invalid("Detected change in ramdisk provided \"callback_url\""));
    }
    check_callback(call, &node, &contact, &callback)?;
    if call.app.settings.require_agent_tls && !callback.secure {
        return Err(ApiError::invalid("TLS is required by configuration"));
    }
    if agent_version.is_some_and(|version| version.len() > VERSION_MAX) {
        return Err(ApiError::invalid(format!("agent_version is longer than {VERSION_MAX} bytes")));
    }
    let certificate = verify_ca.map(|pem| CertificateDer::from_pem_slice(pem.as_bytes())).transpose();
    let certificate =
        certificate.map_err(|_| ApiError::invalid("agent_verify_ca is not a certificate in PEM form"))?;
    // The certificate is pinned by the first heartbeat of a boot, like the URL.
    if let (Some(known), Some(sent)) = (&contact.verify_ca, verify_ca)
        && known != sent
    {
        tracing::warn!(node_uuid = %node.uuid, "rejected a heartbeat: another certificate");
        return Err(ApiError::invalid("Detected change in ramdisk provided \"agent_verify_ca\""));
    }
    let state = given.get("anneal").filter(|value| !value.is_null()).map(anneal::parse).transpose()?;
    if is_unsigned(&node, &contact, state.as_ref()) {
        return Err(refuse_unsigned(call, &node, agent_token).await?);
    }
    check_key(&node, &contact, state.as_ref())?;
    if let Err(why) = is_proved(&contact, callback.secure, certificate.as_ref(), state.as_ref()) {
        return Err(refuse_unproved(call, &node, why).await);
    }

    // Each one is a write and a pass. An agent with the right token may still be a hostile program.
    if !nodes.accepts(node.uuid, Instant::now()) {
        return Err(ApiError::client(429, "This node sends too many heartbeats; try again later."));
    }
    let beat = HeartbeatRecord {
        callback_url: callback_url.to_owned(),
        verify_ca: verify_ca.map(str::to_owned).or_else(|| contact.verify_ca.clone()),
        agent_version: agent_version.map(str::to_owned),
        at: call.now(),
        agent: state.into(),
    };
    match call.app.store.record_heartbeat(node.uuid, agent_token, beat).await {
        Ok(()) => Ok(empty(202, None)),
        // The token was revoked after it was read: its boot is over.
        Err(StoreError::Stale(_)) => Err(wrong_token()),
        Err(other) => Err(other.into()),
    }
}

/// 400 for fields that came with a later version.
fn fields_exist(
    version: Version,
    has_agent_version: bool,
    has_status: bool,
    has_verify_ca: bool,
) -> Result<(), ApiError> {
    if has_agent_version && !version.has(36) {
        return Err(ApiError::invalid("Field \"agent_version\" not recognised"));
    }
    if has_status && !version.has(72) {
        return Err(ApiError::invalid(
            "Fields \"agent_status\" and \"agent_status_message\" not recognised.",
        ));
    }
    if has_verify_ca && !version.has(68) {
        return Err(ApiError::invalid("Field \"agent_verify_ca\" not recognised in this version"));
    }
    Ok(())
}

/// The token, from an agent that also sends a version, or a status that exists.
fn required_token<'a>(
    token: Option<&'a str>,
    status: Option<&str>,
    version: Option<&str>,
) -> Result<&'a str, ApiError> {
    let Some(token) = token else {
        return Err(ApiError::invalid("Agent token is required for heartbeat processing."));
    };
    if status.is_some_and(|status| !["start", "end", "error"].contains(&status)) {
        return Err(ApiError::invalid("Agent status is invalid. Valid states are start,end,error."));
    }
    if version.is_none() && status.is_none() {
        return Err(ApiError::invalid(
            "Agent did not transmit a version, and a version is required. Please update the agent being used.",
        ));
    }
    Ok(token)
}

/// The node, and the contact with the agent that has this token and shows the nonce that it was given for: without that it is
/// worth nothing. The answer is the same for a node that does not exist, so that it does not reveal which do.
async fn authenticate(
    call: &Call,
    ident: &str,
    agent_token: &str,
) -> Result<(Arc<Node>, Arc<Contact>), ApiError> {
    let node = match call.shared_node(ident).await {
        Ok(node) => node,
        Err(error) if error.status == 404 => {
            tracing::warn!(ident, "rejected a heartbeat: no such node");
            return Err(wrong_token());
        }
        Err(error) => return Err(error),
    };
    let contact = call.app.store.shared_contacts(&[node.uuid]).await?.pop().unwrap_or_default();
    if !contact.token.as_deref().is_some_and(|known| token::same(known, agent_token)) {
        tracing::warn!(node_uuid = %node.uuid, "rejected a heartbeat: wrong agent token");
        return Err(wrong_token());
    }
    let has_nonce = was_given_for_nonce(&contact);
    if has_nonce && !store::contact::is_of_this_boot(&contact, call.nonce.as_ref(), false) {
        tracing::warn!(node_uuid = %node.uuid, "rejected a heartbeat: wrong nonce");
        return Err(wrong_token());
    }
    Ok((node, contact))
}

fn was_given_for_nonce(contact: &Contact) -> bool {
    contact.boot.as_ref().is_some_and(|boot| boot.shown)
}

/// Check where the agent is to be called. Only the first heartbeat of a boot needs it: later ones name the same URL.
fn check_callback(
    call: &Call,
    node: &Node,
    contact: &Contact,
    callback: &CallbackUrl,
) -> Result<(), ApiError> {
    if contact.callback_url.is_some() {
        return Ok(());
    }
    let lease = contact.boot.as_ref().and_then(|boot| boot.fetched_from);
    callback.check(Sender { peer: call.client(), lease }, &call.app.settings).map_err(|why| {
        tracing::warn!(node_uuid = %node.uuid, why, "rejected a heartbeat: callback URL");
        ApiError::invalid(format!("The \"callback_url\" is not accepted: {why}"))
    })
}

/// Whether the node booted our agent, which signs, and this one in its place, with the nonce of the boot, does not.
fn is_unsigned(node: &Node, contact: &Contact, state: Option<&AgentState>) -> bool {
    let signs = state.is_some_and(|state| state.evidence_key.is_some());
    was_given_for_nonce(contact) && !signs && RamdiskAgent::of(&node.properties) == RamdiskAgent::Anneal
}

/// Note the agent, so that the node's run fails and names it.
async fn refuse_unsigned(call: &Call, node: &Node, agent_token: &str) -> Result<ApiError, ApiError> {
    tracing::warn!(node_uuid = %node.uuid, "rejected a heartbeat: the node boots Anneal's agent, this one signs nothing");
    call.app.store.refuse_unsigned(node.uuid, agent_token, UnsignedAgent { address: call.client() }).await?;
    Ok(ApiError::invalid(format!(
        "The node boots Anneal's agent, which signs its evidence; this agent names no key. Property {AGENT_KIND:?} declares \
         another agent."
    )))
}

/// Check that the key with which a process signs evidence stays the same.
fn check_key(node: &Node, contact: &Contact, state: Option<&AgentState>) -> Result<(), ApiError> {
    // It is pinned like the certificate.
    if let (Some(known), Some(sent)) = (contact.anneal(), state)
        && known.process_id == sent.process_id
        && known.evidence_key.is_some()
        && known.evidence_key != sent.evidence_key
    {
        tracing::warn!(node_uuid = %node.uuid, "rejected a heartbeat: another evidence key");
        return Err(ApiError::invalid("Detected change in ramdisk provided \"anneal.evidence_key\""));
    }
    Ok(())
}

/// Whether it comes from the agent whose boot the node's TPM has proved, if it has: from its boot, with its keys.
fn is_proved(
    contact: &Contact,
    is_by_tls: bool,
    certificate: Option<&CertificateDer>,
    state: Option<&AgentState>,
) -> Result<(), &'static str> {
    let Some(proof) = &contact.proof else { return Ok(()) };
    let digest = certificate.map(|certificate| Digest::of(certificate).to_string());
    match digest {
        Some(digest) if digest != proof.tls_certificate => Err("another certificate"),
        None if contact.verify_ca.is_none() => Err("no certificate"),
        _ if !is_by_tls => Err("a URL without TLS"),
        _ if state.and_then(|state| state.evidence_key.as_ref()) != Some(&proof.evidence_key) => {
            Err("another evidence key")
        }
        _ if state.is_none_or(|state| state.boot_id != proof.boot_id) => Err("another boot id"),
        _ => Ok(()),
    }
}

/// 400, and in the history of the node: another program than the one that was proved has its token.
async fn refuse_unproved(call: &Call, node: &Node, why: &str) -> ApiError {
    tracing::warn!(node_uuid = %node.uuid, why, "rejected a heartbeat: it is not of the boot that the TPM has proved");
    let place = required_proof::place(call);
    let text = format!(
        "a heartbeat from {place} was refused: it shows {why}, and the node's TPM has proved a boot with other keys"
    );
    required_proof::remark(call, node, "heartbeat", &text).await;
    ApiError::invalid(format!(
        "The heartbeat shows {why}, and the node's TPM has proved a boot with other keys"
    ))
}

fn wrong_token() -> ApiError {
    ApiError::invalid("Invalid or missing agent token received.")
}
