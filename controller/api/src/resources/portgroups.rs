//! `/v1/portgroups`: ports of a node that are bonded.

use super::field::{Empty, Type, Write, object, read_only, written};
use super::filter::{address_asked, of_node_asked, of_nodes_asked};
use super::list;
use super::resource::{
    ResourceHandler, ResourceSpec, TooOld, check_name, not_while_inspecting, owner, unlocked,
};
use super::write;
use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::retry::Retry;
use crate::schema::Kind;
use axum::extract::Path;
use model::{ProvisionState, Resource, ResourceKind};
use store::{FieldValue, ResourceField, ResourceFilter, ResourceQuery, ResourceWrite, StoreError};

/// A port group.
pub struct Portgroup;

/// States in which a port group may go to another node.
const MOVES_IN: [ProvisionState; 4] = [
    ProvisionState::Enroll,
    ProvisionState::Inspecting,
    ProvisionState::InspectWait,
    ProvisionState::Manageable,
];

/// The network of all its ports.
const NETWORK: &str = "physical_network";

/// Why they do nothing.
const KEPT: &str = "the network interface of every node is `noop`, so no bond is made of ports";

/// Endpoints of port groups.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/portgroups" 23 "baremetal:portgroup:list_all", "port groups" => list::list::<Portgroup>;
        POST "/v1/portgroups" 23 "baremetal:portgroup:create", "add one" => write::create::<Portgroup>;
        GET "/v1/portgroups/detail" 23 "baremetal:portgroup:list_all", "port groups with all fields"
            => list::detail::<Portgroup>;
        GET "/v1/portgroups/{ident}" 23 "baremetal:portgroup:get", "a port group" => list::show::<Portgroup>;
        PATCH "/v1/portgroups/{ident}" 23 "baremetal:portgroup:update", "change it" => write::patch::<Portgroup>;
        DELETE "/v1/portgroups/{ident}" 23 "baremetal:portgroup:delete", "remove it" => write::delete::<Portgroup>;
        GET "/v1/nodes/{ident}/portgroups" 24 "baremetal:portgroup:list", "port groups of a node"
            => of_node;
        GET "/v1/nodes/{ident}/portgroups/detail" 24 "baremetal:portgroup:list", "the same with all fields"
            => of_node_detail;
    ];
    rows.into_iter().map(|row| row.kept(KEPT)).collect()
}

/// `GET /v1/nodes/{ident}/portgroups`, a version later than port groups themselves.
async fn of_node(path: Path<String>, call: Call) -> Reply {
    call.version.has_path(24)?;
    list::of_node::<Portgroup>(path, call).await
}

/// `GET /v1/nodes/{ident}/portgroups/detail`.
async fn of_node_detail(path: Path<String>, call: Call) -> Reply {
    call.version.has_path(24)?;
    list::of_node_detail::<Portgroup>(path, call).await
}

impl ResourceHandler for Portgroup {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::Portgroup,
        one: "a portgroup",
        word: "portgroup",
        path: "portgroups",
        list: "portgroups",
        since: 23,
        too_old: TooOld::Unsupported,
        detail: Some(43),
        named: Some(1),
        fields: &[
            written("address", 1, Write::Always(Type::Address)),
            object("extra", 1),
            written("mode", 26, Write::Always(Type::Plain(Kind::Text(255)))).or(Empty::Text("active-backup")),
            written("name", 1, Write::Always(Type::Plain(Kind::Text(255)))),
            written("node_uuid", 1, Write::Required(Type::Node)),
            object("properties", 26),
            written("standalone_ports_supported", 1, Write::Always(Type::Plain(Kind::Boolean)))
                .or(Empty::Bool(true)),
            written("physical_network", 102, Write::Always(Type::Plain(Kind::Text(64)))),
            written("category", 103, Write::Always(Type::Plain(Kind::Text(80)))),
            read_only("internal_info", 1).or(Empty::Object).unsortable(),
            read_only("dynamic_portgroup", 111).or(Empty::Bool(false)),
        ],
        short: &["uuid", "address", "name"],
        filters: &[("node", 1), ("address", 1), ("shard", 82), ("conductor_groups", 99)],
        below: &["ports"],
    };

    async fn validate(call: &Call, old: Option<&Resource>, mut new: Resource) -> Result<Resource, ApiError> {
        let refuse = match old {
            None => "Cannot create portgroup with invalid name".to_owned(),
            Some(old) => format!("Portgroup {}: Cannot change name to invalid name", old.uuid),
        };
        check_name(&new, &refuse)?;
        new.key = new.text("address").map(str::to_owned);
        let Some(node) = new.node else { return Ok(new) };
        let node = owner(call, node).await?;
        let Some(old) = old else { return Ok(new) };
        not_while_inspecting(call, &node, &format!("portgroup \"{}\" on node", new.uuid))?;
        let node = unlocked(call, node.uuid).await?;
        let members = members(call, old).await?;
        if old.node != new.node {
            if !MOVES_IN.contains(&node.provision_state) && !node.maintenance {
                return Err(ApiError::conflict(format!(
                    "Portgroup {} can not be associated to node {} unless the node is in a {} state or in \
                     maintenance mode. Current state is '{}'.",
                    new.uuid,
                    node.uuid,
                    MOVES_IN.map(ProvisionState::as_str).join(", "),
                    node.provision_state.as_str()
                )));
            }
            if !members.is_empty() {
                return Err(ApiError::invalid(format!(
                    "Portgroup {} can not be associated with node {} because there are ports associated with \
                     this portgroup.",
                    new.uuid, node.uuid
                )));
            }
        }
        if !stands_alone(&new)
            && let Some(port) = members.iter().find(|port| port.pxe_enabled())
        {
            return Err(ApiError::conflict(format!(
                "standalone_ports_supported can not be set to False, because the following ports connected to \
                 this portgroup have pxe_enabled=True: {}.",
                port.uuid
            )));
        }
        Ok(new)
    }

    async fn written(call: &Call, old: Option<&Resource>, new: &Resource) -> Result<(), ApiError> {
        match old {
            Some(old) => hand_down(call, old, new).await,
            None => Ok(()),
        }
    }

    async fn may_go(call: &Call, portgroup: &Resource) -> Result<(), ApiError> {
        if let Some(node) = portgroup.node {
            unlocked(call, node).await?;
        }
        if members(call, portgroup).await?.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(format!(
            "Cannot complete the requested action because portgroup {} contains ports.",
            portgroup.uuid
        )))
    }

    async fn narrowed(call: &Call, filter: ResourceFilter) -> Result<Option<ResourceFilter>, ApiError> {
        if ["node", "address", "shard", "conductor_groups"]
            .iter()
            .filter(|name| call.args.text(name).is_some())
            .count()
            > 1
        {
            return Err(ApiError::invalid(
                "Filtering by node, address, or shard simultaneously is not supported.",
            ));
        }
        let mut filter = of_node_asked(call, filter).await?;
        if let Some(address) = address_asked(call)? {
            filter = filter.with(ResourceField::Address, FieldValue::Text(address));
        }
        Ok(Some(of_nodes_asked(call, filter)))
    }

    fn taken(portgroup: &Resource) -> String {
        let address = portgroup.text("address").unwrap_or_default();
        format!("A portgroup with MAC address {address} already exists.")
    }
}

/// Whether its ports may be used without it.
fn stands_alone(portgroup: &Resource) -> bool {
    Portgroup::SPEC.read(portgroup, "standalone_ports_supported") == true
}

/// The ports of a port group: those of its node that name it.
pub fn ports_of(portgroup: &Resource) -> ResourceFilter {
    let of = ResourceFilter::all(ResourceKind::Port)
        .with(ResourceField::Portgroup, FieldValue::Text(portgroup.uuid.to_string()));
    match portgroup.node {
        None => of,
        Some(node) => of.with(ResourceField::Node, FieldValue::Text(node.to_string())),
    }
}

/// The ports of a port group.
pub async fn members(call: &Call, portgroup: &Resource) -> Result<Vec<Resource>, ApiError> {
    let query = ResourceQuery::first(usize::MAX, ports_of(portgroup));
    Ok(call.app.store.resource_page(query).await?.resources)
}

/// The port group that a query or a path names.
pub async fn find(call: &Call, ident: &str) -> Result<Resource, ApiError> {
    Portgroup::SPEC.find(call, ident).await
}

/// The port group of a port, if it may be (or stay) in it: that of its own node, and one whose ports stand alone if it boots.
pub async fn takes(call: &Call, port: &Resource) -> Result<Option<Resource>, ApiError> {
    let Some(uuid) = port.text("portgroup_uuid") else { return Ok(None) };
    let portgroup = find(call, uuid).await.map_err(ApiError::of_body)?;
    if portgroup.node != port.node {
        return Err(ApiError::invalid("Port can not be added to a portgroup belonging to a different node."));
    }
    if port.pxe_enabled() && !stands_alone(&portgroup) {
        return Err(ApiError::conflict(format!(
            "Port group {} doesn't support standalone ports. This port cannot be created as a member of that \
             portgroup as the port's 'pxe_enabled' field was set to True.",
            portgroup.uuid
        )));
    }
    Ok(Some(portgroup))
}

/// Give the ports of a group its network, where a client has changed that.
///
/// # Errors
/// The store failed, or others kept changing a port.
async fn hand_down(call: &Call, old: &Resource, group: &Resource) -> Result<(), ApiError> {
    if old.field(NETWORK) == group.field(NETWORK) {
        return Ok(());
    }
    let mut retry = Retry::new();
    'again: loop {
        for mut port in members(call, group).await? {
            if port.field(NETWORK) == group.field(NETWORK) {
                continue;
            }
            port.fields.insert(NETWORK.into(), group.field(NETWORK).clone());
            port.updated_at = Some(call.now());
            let events = call.did(&port, "changed (physical_network)");
            match call.app.store.write_resource(ResourceWrite::Update(port), None, events).await {
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(StoreError::Stale(_)) if retry.again().await => continue 'again,
                Err(other) => return Err(other.into()),
            }
        }
        return Ok(());
    }
}
