//! `/v1/volume`: remote volumes of a node, and what it reaches them by. They are kept for clients: no node boots from
//! a volume here.

use super::field::{Type, Write, object, written};
use super::list;
use super::resource::{ResourceHandler, ResourceSpec, TooOld, owner, unlocked};
use super::write;
use crate::auth::policy;
use crate::call::{Call, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use model::mask::masked_value;
use model::{PowerState, ProvisionState, Resource, ResourceKind};
use serde_json::{Map, Value, json};

/// What a node reaches volumes by.
pub struct Connector;

/// Ironic's policy for the properties of a target, which may hold credentials.
const VIEW_PROPERTIES: &str = "baremetal:volume:view_target_properties";

/// A volume.
pub struct Target;

/// The minor version that brought both.
const SINCE: u16 = 32;

/// States in which volumes of a node may be removed whatever its power (Ironic's DELETE_ALLOWED_STATES).
const REMOVED_IN: [ProvisionState; 4] = [
    ProvisionState::AdoptFail,
    ProvisionState::Enroll,
    ProvisionState::Manageable,
    ProvisionState::Available,
];

/// Why they do nothing.
const KEPT: &str = "no node is booted from a volume";

/// Endpoints of volumes.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/volume" 32 "baremetal:volume:get", "links to both kinds" => volume;
        GET "/v1/volume/connectors" 32 "baremetal:volume:list_all", "volume connectors" => list::list::<Connector>;
        POST "/v1/volume/connectors" 32 "baremetal:volume:create", "add one" => write::create::<Connector>;
        GET "/v1/volume/connectors/{ident}" 32 "baremetal:volume:get", "a volume connector" => list::show::<Connector>;
        PATCH "/v1/volume/connectors/{ident}" 32 "baremetal:volume:update", "change it" => write::patch::<Connector>;
        DELETE "/v1/volume/connectors/{ident}" 32 "baremetal:volume:delete", "remove it" => write::delete::<Connector>;
        GET "/v1/volume/targets" 32 "baremetal:volume:list_all", "volume targets" => list::list::<Target>;
        POST "/v1/volume/targets" 32 "baremetal:volume:create", "add one" => write::create::<Target>;
        GET "/v1/volume/targets/{ident}" 32 "baremetal:volume:get", "a volume target" => list::show::<Target>;
        PATCH "/v1/volume/targets/{ident}" 32 "baremetal:volume:update", "change it" => write::patch::<Target>;
        DELETE "/v1/volume/targets/{ident}" 32 "baremetal:volume:delete", "remove it" => write::delete::<Target>;
        GET "/v1/nodes/{ident}/volume" 32 "baremetal:volume:get", "links to its volumes" => of_node;
        GET "/v1/nodes/{ident}/volume/connectors" 32 "baremetal:volume:list", "volume connectors of a node"
            => list::of_node::<Connector>;
        GET "/v1/nodes/{ident}/volume/targets" 32 "baremetal:volume:list", "volume targets of a node"
            => list::of_node::<Target>;
    ];
    rows.into_iter().map(|row| row.kept(KEPT)).collect()
}

impl ResourceHandler for Connector {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::VolumeConnector,
        one: "a volume connector",
        word: "connector",
        path: "volume/connectors",
        list: "connectors",
        since: SINCE,
        too_old: TooOld::Unsupported,
        detail: Some(SINCE),
        named: None,
        fields: &[
            written("connector_id", SINCE, Write::Required(Type::Text)),
            object("extra", SINCE),
            written("node_uuid", SINCE, Write::Required(Type::Node)),
            written("type", SINCE, Write::Required(Type::Text)),
        ],
        short: &["uuid", "node_uuid", "type", "connector_id"],
        filters: &[("node", SINCE)],
        below: &[],
    };

    async fn validate(call: &Call, old: Option<&Resource>, mut new: Resource) -> Result<Resource, ApiError> {
        changed(call, "volume connector update", old, &new).await?;
        new.key = Some(format!("{} {}", text(&new, "type"), text(&new, "connector_id")));
        Ok(new)
    }

    async fn may_go(call: &Call, connector: &Resource) -> Result<(), ApiError> {
        removed(call, "volume connector deletion", connector).await
    }

    fn taken(connector: &Resource) -> String {
        format!(
            "A volume connector with type {} and connector ID {} already exists.",
            text(connector, "type"),
            text(connector, "connector_id")
        )
    }
}

impl ResourceHandler for Target {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::VolumeTarget,
        one: "a volume target",
        word: "target",
        path: "volume/targets",
        list: "targets",
        since: SINCE,
        too_old: TooOld::Unsupported,
        detail: Some(SINCE),
        named: None,
        fields: &[
            written("boot_index", SINCE, Write::Required(Type::Integer)),
            object("extra", SINCE),
            written("node_uuid", SINCE, Write::Required(Type::Node)),
            object("properties", SINCE),
            written("volume_id", SINCE, Write::Required(Type::Text)),
            written("volume_type", SINCE, Write::Required(Type::Text)),
        ],
        short: &["uuid", "node_uuid", "volume_type", "boot_index", "volume_id"],
        filters: &[("node", SINCE)],
        below: &[],
    };

    async fn validate(call: &Call, old: Option<&Resource>, mut new: Resource) -> Result<Resource, ApiError> {
        changed(call, "volume target update", old, &new).await?;
        new.key = new.node.map(|node| format!("{node} {}", new.field("boot_index")));
        Ok(new)
    }

    async fn may_go(call: &Call, target: &Resource) -> Result<(), ApiError> {
        removed(call, "volume target deletion", target).await
    }

    fn extend_view(call: &Call, _: &Resource, view: &mut Map<String, Value>) {
        if let Some(properties) = view.get_mut("properties") {
            *properties = if policy::may(VIEW_PROPERTIES, &call.identity, None) {
                masked_value(properties)
            } else {
                json!({"redacted_contents": format!(
                    "** Value redacted: Requires permission {VIEW_PROPERTIES} access. Permission denied. **"
                )})
            };
        }
    }

    fn taken(target: &Resource) -> String {
        let index = target.field("boot_index");
        format!("A volume target with boot index '{index}' for the same node already exists.")
    }
}

fn text<'a>(resource: &'a Resource, name: &str) -> &'a str {
    resource.text(name).unwrap_or_default()
}

/// Volumes of a node change only while it is off.
async fn changed(call: &Call, action: &str, old: Option<&Resource>, new: &Resource) -> Result<(), ApiError> {
    let Some(node) = new.node else { return Ok(()) };
    owner(call, node).await?;
    let Some(old) = old else { return Ok(()) };
    let old_owner = old.node.filter(|old| *old != node);
    for node in [Some(node), old_owner].into_iter().flatten() {
        let node = unlocked(call, node).await?;
        if node.power_state != Some(PowerState::Off) {
            return Err(powered(action, &node));
        }
    }
    Ok(())
}

async fn removed(call: &Call, action: &str, resource: &Resource) -> Result<(), ApiError> {
    let Some(node) = resource.node else { return Ok(()) };
    let node = unlocked(call, node).await?;
    if node.power_state == Some(PowerState::Off) || REMOVED_IN.contains(&node.provision_state) {
        return Ok(());
    }
    Err(powered(action, &node))
}

fn powered(action: &str, node: &model::Node) -> ApiError {
    let state = node.power_state.map_or("None", PowerState::as_str);
    ApiError::invalid(format!(
        "The requested action \"{action}\" can not be performed on node \"{}\" while it is in state \"{state}\".",
        node.uuid
    ))
}

/// `GET /v1/volume`.
async fn volume(call: Call) -> Reply {
    Target::SPEC.exists(&call, 404)?;
    call.args.only(&[])?;
    Ok(json(200, &links(&call, "volume/")))
}

/// `GET /v1/nodes/{ident}/volume`.
async fn of_node(Path(ident): Path<String>, call: Call) -> Reply {
    Target::SPEC.exists(&call, 404)?;
    call.args.only(&[])?;
    call.node(&ident).await?;
    Ok(json(200, &links(&call, &format!("nodes/{ident}/volume/"))))
}

fn links(call: &Call, path: &str) -> Value {
    json!({
        "links": call.links.pair(path),
        "connectors": call.links.pair(&format!("{path}connectors")),
        "targets": call.links.pair(&format!("{path}targets")),
    })
}
