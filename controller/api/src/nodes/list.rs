//! `GET /v1/nodes` and `GET /v1/nodes/detail`.

use crate::args;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::fields;
use crate::page::{self, Page};
use crate::shown;
use crate::view::{DEFAULT_FIELDS, NodeView};
use axum::extract::Path;
use model::{Node, ProvisionState};
use serde_json::{Value, json};
use uuid::Uuid;

/// Filters with the minor version since which they exist.
pub const FILTERS: [(&str, u16); 20] = [
    ("associated", 1),
    ("chassis_uuid", 1),
    ("conductor", 49),
    ("conductor_group", 46),
    ("description_contains", 1),
    ("driver", 16),
    ("fault", 42),
    ("include_children", 83),
    ("instance_name", 104),
    ("instance_uuid", 1),
    ("lessee", 65),
    ("maintenance", 1),
    ("owner", 50),
    ("parent_node", 83),
    ("project", 1),
    ("provision_state", 9),
    ("resource_class", 21),
    ("retired", 1),
    ("shard", 82),
    ("sharded", 82),
];

/// Faults that a node can have in Ironic.
pub const FAULTS: [&str; 4] = ["power failure", "clean failure", "rescue abort failure", "service failure"];

/// `GET /v1/nodes`.
pub async fn list(call: Call) -> Reply {
    let wanted = wanted(&call)?;
    collection(&call, None, "nodes", wanted).await
}

/// `GET /v1/nodes/detail`.
pub async fn detail(call: Call) -> Reply {
    shown::all(&call)?;
    collection(&call, None, "nodes/detail", None).await
}

/// `GET /v1/chassis/{ident}/nodes`.
pub async fn of_chassis(Path(ident): Path<String>, call: Call) -> Reply {
    let chassis = args::as_uuid("chassis_uuid", &ident)?;
    call.check_chassis(&ident).await?;
    let wanted = wanted(&call)?;
    collection(&call, Some(chassis), &format!("chassis/{ident}/nodes"), wanted).await
}

/// `GET /v1/chassis/{ident}/nodes/detail`.
pub async fn of_chassis_detail(Path(ident): Path<String>, call: Call) -> Reply {
    shown::all(&call)?;
    let chassis = args::as_uuid("chassis_uuid", &ident)?;
    call.check_chassis(&ident).await?;
    collection(&call, Some(chassis), &format!("chassis/{ident}/nodes/detail"), None).await
}

fn wanted(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    shown::in_list(call, Some(43), &DEFAULT_FIELDS, |wanted| fields::check_wanted(wanted, call.version))
}

async fn collection(call: &Call, chassis: Option<Uuid>, path: &str, wanted: Option<Vec<String>>) -> Reply {
    let mut known: Vec<&str> = FILTERS.iter().map(|(name, _)| *name).collect();
    known.extend(page::ARGS);
    if !path.ends_with("detail") {
        known.extend(["fields", "detail"]);
    }
    call.args.only(&known)?;
    for (name, since) in FILTERS {
        match call.args.text(name) {
            None => {}
            Some(_) if name == "instance_name" && !call.version.has(since) => {
                return Err(ApiError::client(406, "instance_name is not acceptable in this API version"));
            }
            // Ironic names the required version for every filter but this one.
            Some(_) if name == "provision_state" => call.version.needs(since)?,
            Some(_) => call.version.needs_for_filter(since)?,
        }
    }
    let mut filter = Filter::from_call(call)?;
    filter.equal.extend(chassis.map(|uuid| ("chassis_uuid", uuid.to_string())));
    let page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let field = fields::find(&page.sort_key).ok_or_else(|| page.bad_key(false))?;
        call.version.needs(field.since)?;
        if !field.sortable {
            return Err(page.bad_key(true));
        }
    }
    if let Some(marker) = page.marker() {
        call.app.store.node(marker).await.map_err(|error| match error {
            store::StoreError::NotFound { .. } => ApiError::no_node(marker),
            other => other.into(),
        })?;
    }

    let mut items = Vec::new();
    let sort_key = [page.sort_key.clone()];
    for node in call.app.store.nodes().await?.into_iter().filter(|node| filter.matches(node)) {
        let key = if page.sort_key == "id" {
            Value::Null
        } else {
            let shown = NodeView::gather(call, node.clone(), Some(&sort_key)).await?;
            shown.field(&call.app, call.version, &page.sort_key)
        };
        items.push((node, key));
    }
    let (items, more) = page.cut(items, |(node, _)| node.uuid, |(_, key)| key.clone());
    let last = items.last().map(|(node, _)| node.uuid);
    let mut nodes = Vec::with_capacity(items.len());
    for (node, _) in items {
        let shown = NodeView::gather(call, node, wanted.as_deref()).await?;
        nodes.push(Value::Object(shown.view(&call.app, &call.links, call.version, wanted.as_deref())));
    }
    let mut body = json!({"nodes": nodes});
    // At most one node has an instance UUID: there is no next page.
    if let Some(last) = last.filter(|_| more && call.args.text("instance_uuid").is_none()) {
        body["next"] = page.next(&call.links, path, &call.args, last).into();
    }
    Ok(json(200, &body))
}

/// The nodes that the client asks for.
struct Filter {
    associated: Option<bool>,
    maintenance: Option<bool>,
    retired: Option<bool>,
    sharded: Option<bool>,
    instance_uuid: Option<Uuid>,
    provision_state: Option<ProvisionState>,
    /// Fields that must be equal, with their values.
    equal: Vec<(&'static str, String)>,
    parent: Parent,
    shards: Option<Vec<String>>,
    project: Option<String>,
    description_contains: Option<String>,
    /// False if no node can match.
    possible: bool,
}

/// Which child nodes a list shows.
enum Parent {
    /// No child nodes: the default.
    None,
    /// Those of the node with this UUID.
    This(String),
    /// All nodes, be they children or not.
    Any,
}

impl Filter {
    fn from_call(call: &Call) -> Result<Self, ApiError> {
        let args = &call.args;
        let text = |name: &str| args.text(name).map(str::to_owned);
        let provision_state = args
            .text("provision_state")
            .map(|name| {
                ProvisionState::named(name)
                    .ok_or_else(|| ApiError::invalid(format!("Provision state \"{name}\" is not valid")))
            })
            .transpose()?;
        if let Some(fault) = args.text("fault").filter(|fault| !FAULTS.contains(fault)) {
            return Err(ApiError::invalid(format!(
                "Unrecognized fault \"{fault}\" is specified, allowed faults are {FAULTS:?}"
            )));
        }
        let mut equal = Vec::new();
        for name in ["driver", "resource_class", "owner", "lessee", "instance_name", "fault"] {
            equal.extend(text(name).map(|value| (name, value)));
        }
        equal.extend(text("conductor_group").map(|group| ("conductor_group", group.to_lowercase())));
        equal.extend(args.uuid("chassis_uuid")?.map(|uuid| ("chassis_uuid", uuid.to_string())));
        let parent = match args.boolean("include_children")? {
            Some(true) => Parent::Any,
            _ => text("parent_node").map_or(Parent::None, Parent::This),
        };
        if call.identity.project().is_some_and(|own| args.text("project").is_some_and(|asked| asked != own)) {
            return Err(ApiError::forbidden("baremetal:node:list_all"));
        }
        let own = &call.app.settings.conductor_host;
        Ok(Self {
            associated: args.boolean("associated")?,
            maintenance: args.boolean("maintenance")?,
            retired: args.boolean("retired")?,
            sharded: args.boolean("sharded")?,
            instance_uuid: args.uuid("instance_uuid")?,
            provision_state,
            equal,
            parent,
            shards: args.list("shard"),
            project: text("project"),
            description_contains: text("description_contains").map(|part| part.to_lowercase()),
            possible: args.text("conductor").is_none_or(|host| host == own),
        })
    }

    fn matches(&self, node: &Node) -> bool {
        let field = |name: &str| match name {
            "fault" => node.fault.clone(),
            name => fields::read(node, name).as_str().map(str::to_owned),
        };
        let same = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        self.possible
            && same(self.associated, node.instance_uuid.is_some())
            && same(self.maintenance, node.maintenance)
            && same(self.retired, node.retired)
            && same(self.sharded, field("shard").is_some())
            && self.instance_uuid.is_none_or(|uuid| node.instance_uuid == Some(uuid))
            && self.provision_state.is_none_or(|state| node.provision_state == state)
            && self.equal.iter().all(|(name, value)| field(name).as_ref() == Some(value))
            && match &self.parent {
                Parent::None => field("parent_node").is_none(),
                Parent::This(parent) => field("parent_node").as_ref() == Some(parent),
                Parent::Any => true,
            }
            && self.shards.as_ref().is_none_or(|shards| {
                field("shard").is_some_and(|shard| shards.contains(&shard.to_lowercase()))
            })
            && self.project.as_ref().is_none_or(|project| {
                field("owner").as_ref() == Some(project) || field("lessee").as_ref() == Some(project)
            })
            && self.description_contains.as_ref().is_none_or(|part| {
                field("description").is_some_and(|description| description.to_lowercase().contains(part))
            })
    }
}
