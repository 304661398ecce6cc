//! Lists of ports.

use super::view;
use crate::args::is_logical_name;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::page::{self, Page};
use crate::resources::portgroups;
use axum::extract::Path;
use model::Port;
use model::port::canonical_mac;
use serde_json::{Value, json};
use store::StoreError;
use uuid::Uuid;

/// Filters with the minor version since which they exist.
pub const FILTERS: [(&str, u16); 9] = [
    ("node", 1),
    ("node_uuid", 1),
    ("address", 1),
    ("portgroup", 24),
    ("shard", 82),
    ("description_contains", 1),
    ("conductor_groups", 99),
    ("detail", 43),
    ("fields", 8),
];

/// What the ports of a path belong to.
#[derive(Debug, Clone, Copy, Default)]
struct Of<'a> {
    node: Option<&'a str>,
    portgroup: Option<&'a str>,
}

/// `GET /v1/ports`.
pub async fn list(call: Call) -> Reply {
    listed(&call, Of::default(), "ports").await
}

/// `GET /v1/ports/detail`.
pub async fn detail(call: Call) -> Reply {
    no_fields(&call)?;
    collection(&call, Of::default(), "ports/detail", None).await
}

/// `GET /v1/nodes/{ident}/ports`.
pub async fn of_node(Path(ident): Path<String>, call: Call) -> Reply {
    listed(&call, Of { node: Some(&ident), ..Of::default() }, &format!("nodes/{ident}/ports")).await
}

/// `GET /v1/nodes/{ident}/ports/detail`.
pub async fn of_node_detail(Path(ident): Path<String>, call: Call) -> Reply {
    no_fields(&call)?;
    collection(
        &call,
        Of { node: Some(&ident), ..Of::default() },
        &format!("nodes/{ident}/ports/detail"),
        None,
    )
    .await
}

/// `GET /v1/portgroups/{ident}/ports`.
pub async fn of_portgroup(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has(24).then_some(()).ok_or_else(|| ApiError::plain(404, ""))?;
    let of = Of { portgroup: Some(&ident), ..Of::default() };
    listed(&call, of, &format!("portgroups/{ident}/ports")).await
}

/// `GET /v1/portgroups/{ident}/ports/detail`.
pub async fn of_portgroup_detail(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has(24).then_some(()).ok_or_else(|| ApiError::plain(404, ""))?;
    no_fields(&call)?;
    let of = Of { portgroup: Some(&ident), ..Of::default() };
    collection(&call, of, &format!("portgroups/{ident}/ports/detail"), None).await
}

fn no_fields(call: &Call) -> Result<(), ApiError> {
    match call.args.text("fields") {
        Some(_) => Err(ApiError::invalid("Unexpected arguments: fields")),
        None => Ok(()),
    }
}

async fn listed(call: &Call, of: Of<'_>, path: &str) -> Reply {
    let detail = call.args.boolean("detail")?;
    if detail.is_some() && !call.version.has(43) {
        let detail = call.args.text("detail").unwrap_or_default();
        return Err(ApiError::invalid(format!("Invalid query parameter ?detail={detail} received.")));
    }
    let wanted = view::wanted(call)?;
    match (wanted, detail.unwrap_or(false)) {
        (Some(_), true) => {
            Err(ApiError::invalid("Can not specify ?detail=True and fields in the same request."))
        }
        (None, true) => collection(call, of, path, None).await,
        (Some(wanted), false) => collection(call, of, path, Some(wanted)).await,
        (None, false) => collection(call, of, path, Some(vec!["uuid".into(), "address".into()])).await,
    }
}

async fn collection(call: &Call, of: Of<'_>, path: &str, wanted: Option<Vec<String>>) -> Reply {
    let mut known = FILTERS.map(|(name, _)| name).to_vec();
    known.extend(page::ARGS);
    call.args.only(&known)?;
    let page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let field = view::find(&page.sort_key)
            .filter(|field| {
                !matches!(field.name, "extra" | "internal_info" | "local_link_connection" | "links")
            })
            .ok_or_else(|| page.bad_key(view::find(&page.sort_key).is_some()))?;
        call.version.needs(field.since)?;
    }
    let found = filtered(call, of).await?;
    if let Some(marker) = page.marker()
        && !found.iter().any(|port| port.uuid == marker)
    {
        call.app.store.port(marker).await.map_err(|error| match error {
            StoreError::NotFound { .. } => {
                ApiError::client(404, format!("Port {marker} could not be found."))
            }
            other => other.into(),
        })?;
    }
    let (found, more) = page.cut(found, |port| port.uuid, |port| view::value(port, &page.sort_key));
    let ports: Vec<_> = found
        .iter()
        .map(|port| Value::Object(view::view(port, &call.links, call.version, wanted.as_deref())))
        .collect();
    let mut body = json!({"ports": ports});
    if let Some(last) = found.last().filter(|_| more) {
        body["next"] = page.next(&call.links, path, &call.args, last.uuid).into();
    }
    Ok(json(200, &body))
}

/// The ports that all filters let pass.
async fn filtered(call: &Call, of: Of<'_>) -> Result<Vec<Port>, ApiError> {
    let args = &call.args;
    if args.text("shard").is_some() {
        call.version.needs_for_filter(82)?;
    }
    if args.text("conductor_groups").is_some() {
        call.version.needs_for_filter(99)?;
    }
    let portgroup = match of.portgroup.or(args.text("portgroup")) {
        Some(ident) => {
            call.version.needs(24)?;
            Some(portgroups::find(call, ident).await?.uuid.to_string())
        }
        None => None,
    };
    let by_uuid = args.uuid("node_uuid")?.map(|uuid| uuid.to_string());
    let asked = of.node.map(str::to_owned).or(by_uuid).or(args.text("node").map(str::to_owned));
    let owner = match &asked {
        None => None,
        Some(ident) => {
            if !is_logical_name(ident) && Uuid::parse_str(ident).is_err() {
                return Err(ApiError::invalid(format!("Expected UUID or name for node: {ident}")));
            }
            Some(call.node(ident).await?.uuid)
        }
    };
    let mut ports = match args.text("address") {
        Some(text) => {
            let address = canonical_mac(text).ok_or_else(|| {
                ApiError::invalid(format!("Expected valid MAC address for address: {text}"))
            })?;
            match call.app.store.port_by_address(&address).await {
                Ok(port) => vec![port],
                Err(StoreError::NotFound { .. }) => Vec::new(),
                Err(other) => return Err(other.into()),
            }
        }
        None => call.app.store.ports(owner).await?,
    };
    ports.retain(|port| owner.is_none_or(|node| port.node_uuid == node));
    if let Some(portgroup) = portgroup {
        ports.retain(|port| view::value(port, "portgroup_uuid") == portgroup.as_str());
    }
    if let Some(part) = args.text("description_contains").map(str::to_lowercase) {
        ports.retain(|port| {
            let description = view::value(port, "description");
            description.as_str().is_some_and(|text| text.to_lowercase().contains(&part))
        });
    }
    if let Some((field, wanted)) = args
        .list("shard")
        .map(|shards| ("shard", shards))
        .or(args.list("conductor_groups").map(|groups| ("conductor_group", groups)))
    {
        let nodes = call.app.store.nodes().await?;
        let inside = |port: &Port| {
            nodes.iter().find(|node| node.uuid == port.node_uuid).is_some_and(|node| {
                let value = crate::fields::read(node, field);
                value.as_str().is_some_and(|value| wanted.contains(&value.to_lowercase()))
            })
        };
        ports.retain(inside);
    }
    Ok(ports)
}
