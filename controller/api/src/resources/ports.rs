//! `/v1/ports`: the NICs of nodes, also the ports of one node and of one port group.

use super::field::{Empty, Type, Write, object, read_only, written};
use super::filter::{address_asked, node_asked, of_nodes_asked};
use super::list;
use super::resource::{ResourceHandler, ResourceSpec, TooOld, named_node, not_while_inspecting, owner};
use super::{physical_network, portgroups, write};
use crate::args::is_logical_name;
use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::schema;
use crate::schema::Kind;
use axum::extract::Path;
use model::{Resource, ResourceKind};
use serde_json::Value;
use store::{FieldValue, ResourceField, ResourceFilter};

/// A port.
pub struct Port;

/// Keys of `local_link_connection`, all texts.
const LINK_KEYS: [&str; 7] = [
    "port_id",
    "switch_id",
    "hostname",
    "switch_info",
    "network_type",
    "vtep-logical-switch",
    "vtep-physical-switch",
];

/// Endpoints of ports.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/ports" 1 "baremetal:port:list_all", "ports, a page of them" => list::list::<Port>;
        POST "/v1/ports" 1 "baremetal:port:create", "add a port" => create;
        GET "/v1/ports/detail" 1 "baremetal:port:list_all", "ports with all fields" => list::detail::<Port>;
        GET "/v1/ports/{ident}" 1 "baremetal:port:get", "a port" => list::show::<Port>;
        PATCH "/v1/ports/{ident}" 1 "baremetal:port:update", "change fields of a port" => write::patch::<Port>;
        DELETE "/v1/ports/{ident}" 1 "baremetal:port:delete", "remove a port" => write::delete::<Port>;
        GET "/v1/nodes/{ident}/ports" 1 "baremetal:port:list", "ports of a node" => list::of_node::<Port>;
        GET "/v1/nodes/{ident}/ports/detail" 1 "baremetal:port:list", "the same with all fields"
            => list::of_node_detail::<Port>;
        GET "/v1/portgroups/{ident}/ports" 24 "baremetal:port:list", "ports of a port group" => of_portgroup;
        GET "/v1/portgroups/{ident}/ports/detail" 24 "baremetal:port:list", "the same with all fields"
            => of_portgroup_detail;
    ]
}

impl ResourceHandler for Port {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::Port,
        one: "a port",
        word: "port",
        path: "ports",
        list: "ports",
        since: 1,
        too_old: TooOld::Unsupported,
        detail: Some(43),
        named: Some(88),
        fields: &[
            written("address", 1, Write::Required(Type::Address)),
            object("extra", 1),
            written("is_smartnic", 53, Write::Always(Type::Plain(Kind::Boolean))).or(Empty::Bool(false)),
            object("local_link_connection", 19),
            written("node_uuid", 1, Write::Required(Type::Node)),
            written("physical_network", 34, Write::Always(Type::Plain(Kind::NonEmpty(64)))),
            written("portgroup_uuid", 24, Write::Always(Type::Plain(Kind::Uuid))),
            written("pxe_enabled", 19, Write::Always(Type::Plain(Kind::Boolean))).or(Empty::Bool(true)),
            written("name", 88, Write::Always(Type::Plain(Kind::Text(255)))),
            written("description", 97, Write::Always(Type::Plain(Kind::Text(255)))),
            written("vendor", 100, Write::Always(Type::Plain(Kind::Text(32)))),
            written("category", 101, Write::Always(Type::Plain(Kind::Text(80)))),
            written("available_for_dynamic_portgroup", 111, Write::Always(Type::Plain(Kind::Boolean)))
                .or(Empty::Bool(true)),
            read_only("internal_info", 18).or(Empty::Object).unsortable(),
        ],
        short: &["uuid", "address"],
        filters: &[
            ("node", 1),
            ("node_uuid", 1),
            ("address", 1),
            ("portgroup", 24),
            ("shard", 82),
            ("description_contains", 1),
            ("conductor_groups", 99),
        ],
        below: &[],
    };

    async fn validate(call: &Call, old: Option<&Resource>, mut new: Resource) -> Result<Resource, ApiError> {
        if let Some(name) = new.name.as_ref().filter(|name| !is_logical_name(name)) {
            return Err(ApiError::invalid(format!("Cannot create port with invalid name '{name}'")));
        }
        check_link(new.field("local_link_connection"))?;
        let Some(address) = new.text("address") else {
            return Err(ApiError::invalid("Expected valid MAC address for address: None"));
        };
        new.key = Some(address.to_owned());
        let Some(node) = new.node else { return Ok(new) };
        let node = owner(call, node).await?;
        if old.is_some() {
            not_while_inspecting(call, &node, &format!("port \"{}\" on", new.uuid))?;
        }
        if let Some(group) = portgroups::takes(call, &new).await? {
            physical_network::check(call, old, &new, &group).await?;
        }
        Ok(new)
    }

    async fn written(call: &Call, _: Option<&Resource>, new: &Resource) -> Result<(), ApiError> {
        physical_network::adopt(call, new).await
    }

    async fn narrowed(call: &Call, filter: ResourceFilter) -> Result<Option<ResourceFilter>, ApiError> {
        let node = match call.args.uuid("node_uuid")? {
            Some(uuid) => Some(call.node(&uuid.to_string()).await?.uuid),
            None => node_asked(call).await?,
        };
        let mut filter = filter;
        let mut equal = |field: ResourceField, value: Option<String>| {
            filter.equal.extend(value.map(|value| (field, FieldValue::Text(value))));
        };
        equal(ResourceField::Node, node.map(|node| node.to_string()));
        if let Some(ident) = call.args.text("portgroup") {
            let portgroup = portgroups::find(call, ident).await?.uuid;
            equal(ResourceField::Portgroup, Some(portgroup.to_string()));
        }
        equal(ResourceField::Address, address_asked(call)?);
        filter.description_contains = call.args.text("description_contains").map(str::to_lowercase);
        Ok(Some(of_nodes_asked(call, filter)))
    }

    fn taken(port: &Resource) -> String {
        format!("A port with MAC address {} already exists.", port.address())
    }
}

/// `POST /v1/ports`. Since 1.94 the body may name the node by `node_ident`, a UUID or name, instead of `node_uuid`.
async fn create(call: Call) -> Reply {
    call.args.only(&[])?;
    let mut given = schema::object("port", call.json()?)?;
    if let Some(ident) = given.remove("node_ident") {
        if given.contains_key("node_uuid") {
            return Err(ApiError::invalid(
                "Schema error for port: only one of 'node_uuid' and 'node_ident' may be given",
            ));
        }
        let Value::String(ident) = ident else {
            return Err(schema::wrong_field("port", "node_ident", &ident, "'string'"));
        };
        call.version.needs(94)?;
        given.insert("node_uuid".into(), named_node(&call, &ident).await?.uuid.to_string().into());
    }
    write::create_from::<Port>(&call, given).await
}

/// `GET /v1/portgroups/{ident}/ports`.
async fn of_portgroup(Path(ident): Path<String>, call: Call) -> Reply {
    members(&call, &ident, false).await
}

/// `GET /v1/portgroups/{ident}/ports/detail`.
async fn of_portgroup_detail(Path(ident): Path<String>, call: Call) -> Reply {
    members(&call, &ident, true).await
}

async fn members(call: &Call, ident: &str, detail: bool) -> Reply {
    call.version.has(24).then_some(()).ok_or_else(|| ApiError::plain(404, ""))?;
    let wanted = list::wanted::<Port>(call, detail)?;
    let portgroup = portgroups::find(call, ident).await?;
    let filter = portgroups::ports_of(&portgroup);
    let path = format!("portgroups/{ident}/ports");
    list::collection::<Port>(call, filter, &list::with_detail(&path, detail), wanted).await
}

/// Reject a `local_link_connection` with other keys, or with values that are no texts.
fn check_link(link: &Value) -> Result<(), ApiError> {
    let Value::Object(link) = link else { return Ok(()) };
    let unknown: Vec<_> = link.keys().map(String::as_str).filter(|key| !LINK_KEYS.contains(key)).collect();
    schema::no_others("local_link_connection", &unknown)?;
    match link.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((key, value)) => Err(schema::wrong_field("local_link_connection", key, value, "'string'")),
    }
}
