//! `GET /v1/lookup`: an agent asks which node it runs on, and gets the node's token, once.

use super::{discovery, foreign_boot, required_proof};
use crate::bundles;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::token;
use crate::view::stored_internal_info;
use agent_protocol::lookup::{LookupAnswer, LookupConfig, LookupNode, MASKED, Offer, add_erase_settings};
use mac::Mac;
use model::mask::masked_instance_info;
use model::{Contact, Node, ProvisionState, ResourceKind, Run};
use serde_json::{Map, Value, json};
use store::{StoreError, TokenGrant, TokenRequest};
use uuid::Uuid;

/// States in which an agent is expected (Ironic's LOOKUP_ALLOWED_STATES). In any other the answer does not reveal that
/// the node exists.
pub const EXPECTED: [ProvisionState; 9] = [
    ProvisionState::CleanWait,
    ProvisionState::Cleaning,
    ProvisionState::Deploying,
    ProvisionState::DeployWait,
    ProvisionState::Inspecting,
    ProvisionState::InspectWait,
    ProvisionState::Rescuing,
    ProvisionState::RescueWait,
    ProvisionState::ServiceWait,
];

/// Longest boot id that is kept: a UUID has 36 characters.
const BOOT_ID_MAX: usize = 64;

/// `GET /v1/lookup?addresses=<mac>,<mac>[&node_uuid=<uuid>][&anneal_boot_id=<boot id>]`.
pub async fn lookup(call: Call) -> Reply {
    call.args.only(&["addresses", "node_uuid", "anneal_boot_id"])?;
    let uuid = call.args.uuid("node_uuid")?;
    let boot_id = call.args.text("anneal_boot_id");
    check_boot_id(boot_id, "anneal_boot_id")?;
    if !call.version.has(22) {
        return Err(ApiError::not_found());
    }
    let asked = call.args.list("addresses").unwrap_or_default();
    let addresses: Vec<Mac> = asked.iter().filter_map(|address| address.parse().ok()).collect();
    if addresses.len() < asked.len() {
        tracing::warn!(?asked, "lookup: ignored invalid MAC addresses");
    }
    if addresses.is_empty() && uuid.is_none() {
        return Err(ApiError::invalid("At least one of 'addresses' and 'node_uuid' parameters is required"));
    }
    if let Some(machine) = discovery::machine(&call).await? {
        return discovery::verdict(&call, &machine).await;
    }
    let node = find(&call, uuid, &addresses).await?;
    if !EXPECTED.contains(&node.provision_state) {
        tracing::warn!(node_uuid = %node.uuid, state = node.provision_state.as_str(), "rejected a lookup: no agent is expected in this state");
        foreign_boot::remark(&call, &node).await;
        return Err(ApiError::not_found());
    }

    // A caller that asks while no agent is awaited, or without the nonce, does not run in a boot of ours, and learns nothing.
    let contact = call.app.store.contact(node.uuid).await?;
    if !is_of_this_boot(&call, &contact) {
        tracing::warn!(node_uuid = %node.uuid, "rejected a lookup: it does not show the nonce of the node's boot");
        foreign_boot::remark(&call, &node).await;
        return Err(ApiError::not_found());
    }
    let is_awaited = node.run.as_ref().is_some_and(Run::awaits_agent);
    if !is_awaited && contact.token.is_none() {
        tracing::warn!(node_uuid = %node.uuid, "rejected a lookup: the node's run does not wait for an agent");
        return Err(ApiError::not_found());
    }

    required_proof::check_proved(&call, &node, &contact, boot_id).await?;

    // Before 1.62 there are no tokens; such an agent is shown the node and cannot heartbeat.
    let token = if call.version.has(62) {
        Some(grant(&call, &node, boot_id).await?.ok_or_else(ApiError::not_found)?)
    } else {
        None
    };
    Ok(json(200, &answer(&call, &node, token).await?))
}

/// 400 that names the member `name`, if this is no boot id.
pub fn check_boot_id(id: Option<&str>, name: &str) -> Result<(), ApiError> {
    let is_one =
        |id: &str| (1..=BOOT_ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    match id.is_none_or(is_one) {
        true => Ok(()),
        false => {
            Err(ApiError::invalid(format!("Expected 1 to {BOOT_ID_MAX} printable characters for {name}")))
        }
    }
}

/// Whether the request comes from the boot that the controller ordered.
pub fn is_of_this_boot(call: &Call, contact: &Contact) -> bool {
    let without = call.app.settings.lookup_without_nonce;
    store::contact::is_of_this_boot(contact, call.nonce.as_ref(), without)
}

/// The answer of a lookup: the node and the configuration of the agent.
pub async fn answer(call: &Call, node: &Node, token: Option<String>) -> Result<Value, ApiError> {
    let contact = call.app.store.contact(node.uuid).await?;
    let links = match call.links.pair(&format!("nodes/{}", node.uuid)) {
        Value::Array(links) => links,
        _ => Vec::new(),
    };
    let mut driver_internal_info = stored_internal_info(node, &contact);
    if node.run.as_ref().is_some_and(|run| run.kind.steps().is_some()) {
        add_erase_settings(&mut driver_internal_info);
    }
    let answer = LookupAnswer {
        node: LookupNode {
            uuid: node.uuid.to_string(),
            properties: node.properties.clone(),
            instance_info: masked_instance_info(&node.instance_info),
            driver_internal_info,
            links,
        },
        config: LookupConfig {
            heartbeat_timeout: call.app.settings.heartbeat_timeout_s,
            agent_token: token,
            agent_token_required: true,
            anneal: Some(Offer { extension: agent_protocol::EXTENSION }),
            anneal_bundles: bundles::offers(call, node).await?,
            other: other_config(),
        },
    };
    serde_json::to_value(&answer).map_err(|error| {
        tracing::error!(%error, "a lookup answer could not be written as JSON");
        ApiError::client(500, "The lookup answer could not be written.")
    })
}

/// The one node that is meant; the same 404 for none, for several, and for one that may not be looked up.
pub async fn find(call: &Call, uuid: Option<Uuid>, addresses: &[Mac]) -> Result<Node, ApiError> {
    let found = match uuid {
        Some(uuid) => Some(uuid),
        None => owner(call, addresses).await?,
    };
    let Some(node) = found else {
        tracing::warn!(?addresses, "lookup: no node has any of these addresses");
        return Err(ApiError::not_found());
    };
    known(call, node).await
}

/// The node with this id; 404 without a reason when there is none.
pub async fn known(call: &Call, uuid: Uuid) -> Result<Node, ApiError> {
    call.app.store.node(uuid).await.map_err(|error| match error {
        StoreError::NotFound { .. } => ApiError::not_found(),
        other => other.into(),
    })
}

/// The node that has ports with these addresses; 404 without a reason when there are several.
pub async fn owner(call: &Call, addresses: &[Mac]) -> Result<Option<Uuid>, ApiError> {
    let mut found = None;
    for address in addresses {
        match call.app.store.resource_by_key(ResourceKind::Port, &address.to_string()).await {
            Ok(port) if found.is_some() && found != port.node => {
                tracing::warn!(?addresses, "the addresses belong to several nodes");
                return Err(ApiError::not_found());
            }
            Ok(port) => found = port.node,
            Err(StoreError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(found)
}

/// A new token for the first caller since the run powered the node on; later callers get a mask that says that one exists.
/// `None` when the run awaits no agent, or the node is gone.
///
/// The caller is unknown, so a later caller that was noted a moment ago writes nothing.
pub async fn grant(call: &Call, node: &Node, boot_id: Option<&str>) -> Result<Option<String>, ApiError> {
    let contact = call.app.store.contact(node.uuid).await?;
    if store::contact::is_noted(&contact, boot_id, call.now()) {
        return Ok(Some(MASKED.to_owned()));
    }
    let token = token::fresh().map_err(|error| {
        tracing::error!(%error, "no randomness for an agent token");
        ApiError::client(500, "No agent token could be made; see the controller's log.")
    })?;
    let request = TokenRequest {
        token: token.clone(),
        boot_id: boot_id.map(str::to_owned),
        nonce: call.nonce.clone(),
        without_nonce: call.app.settings.lookup_without_nonce,
        proof_required: required_proof::is_required(call, node),
        address: call.client(),
        at: call.now(),
    };
    match call.app.store.grant_token(node.uuid, request).await {
        Ok(TokenGrant::Given) => Ok(Some(token)),
        Ok(TokenGrant::AlreadyOut) => {
            tracing::warn!(node_uuid = %node.uuid, boot_id, "lookup: an agent of this node has its token already");
            Ok(Some(MASKED.to_owned()))
        }
        // The run has moved on since the node was read.
        Ok(TokenGrant::NotAwaited) | Err(StoreError::NotFound { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// What ironic-python-agent also reads, at Ironic's defaults.
fn other_config() -> Map<String, Value> {
    let config = json!({
        "metrics": {
            "backend": "noop",
            "prepend_host": false,
            "prepend_uuid": false,
            "prepend_host_reverse": true,
            "global_prefix": null,
        },
        "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
        "agent_containers": {
            "allow_arbitrary_containers": false,
            "allowed_containers": [],
            "container_steps_file": "/etc/ironic-python-agent.d/mysteps.yaml",
            "runner": "podman",
            "pull_options": [],
            "run_options": ["--rm", "--network=host"],
        },
        "agent_md5_checksum_enable": true,
        "disable_deep_image_inspection": false,
        "permitted_image_formats": ["raw", "gpt", "qcow2", "iso"],
        "agent_skip_bmc_detect": false,
        "enable_bios_bootloader_install": false,
        "tls_min_version": "1.3",
        "tls_cipher_suites": null,
    });
    match config {
        Value::Object(config) => config,
        _ => Map::new(),
    }
}
