//! A node as clients see it.

use crate::app::App;
use crate::call::Call;
use crate::driver_queries;
use crate::error::ApiError;
use crate::fields;
use crate::format::{at, iso, iso_without_zone, text};
use crate::links::Links;
use crate::lock::Lock;
use crate::microversion::Version;
use crate::resources::allocations;
use crate::resources::field::Field;
use agent_protocol::lookup::MASKED;
use model::image::{WRITE_IMAGE, is_step};
use model::mask::{masked, masked_instance_info, masked_value};
use model::{Contact, Health, Node, PlannedStep, ProvisionState, Run};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use uuid::Uuid;

/// What a list shows when nothing else is asked for.
pub const DEFAULT_FIELDS: [&str; 6] =
    ["instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "name"];

/// What a view has.
enum Member {
    /// A field of Ironic's.
    Field(&'static Field),
    /// One of ours, for who asks for it.
    Own(&'static Field),
    /// The links to the node.
    Links,
    /// Those to what is below it, since this version.
    Below(&'static str, u16),
}

impl Member {
    fn name(&self) -> &'static str {
        match self {
            Self::Field(field) | Self::Own(field) => field.name,
            Self::Links => "links",
            Self::Below(name, _) => name,
        }
    }
}

/// All of it, in the order of names, as in every JSON object here.
static MEMBERS: LazyLock<Vec<Member>> = LazyLock::new(|| {
    let below = [("ports", 1), ("states", 14), ("portgroups", 24), ("volume", 32)];
    let mut members: Vec<_> = fields::NODE.iter().map(Member::Field).collect();
    members.extend(fields::OWN.iter().map(Member::Own));
    members.push(Member::Links);
    members.extend(below.map(|(name, since)| Member::Below(name, since)));
    members.sort_by_key(Member::name);
    members
});

/// A node with what is kept apart from it.
pub struct NodeView {
    node: Arc<Node>,
    contact: Arc<Contact>,
    holder: Option<String>,
    allocation: Option<Uuid>,
    hidden: Redactions,
}

/// Fields that the caller may not see, in Ironic's words for it.
struct Redactions {
    driver_info: bool,
    driver_internal_info: bool,
    last_error: bool,
    reservation: bool,
}

impl Redactions {
    fn from(call: &Call, node: &Node) -> Self {
        let hides = |policy: &str| !call.may_see(policy, node);
        Self {
            driver_info: hides("baremetal:node:get:driver_info"),
            driver_internal_info: hides("baremetal:node:get:driver_internal_info"),
            last_error: hides("baremetal:node:get:last_error"),
            reservation: hides("baremetal:node:get:reservation"),
        }
    }

    fn instead_of(&self, field: &str) -> Option<Value> {
        match field {
            "driver_info" if self.driver_info => Some(
                json!({"content": "** Redacted - requires baremetal:node:get:driver_info permission. **"}),
            ),
            "driver_internal_info" if self.driver_internal_info => Some(json!({
                "content": "** Redacted - Requires baremetal:node:get:driver_internal_info permission. **"
            })),
            "last_error" if self.last_error => {
                Some("** Value Redacted - Requires baremetal:node:get:last_error permission. **".into())
            }
            "reservation" if self.reservation => {
                Some("** Redacted - requires baremetal:node:get:reservation permission. **".into())
            }
            _ => None,
        }
    }
}

impl NodeView {
    /// Gather what the wanted fields need.
    pub async fn gather(
        call: &Call,
        node: impl Into<Arc<Node>> + Send,
        wanted: Option<&[String]>,
    ) -> Result<Self, ApiError> {
        let view = Self::gather_all(call, vec![node], wanted).await?.pop();
        view.ok_or_else(|| ApiError::internal("the view of a node"))
    }

    /// The same of many nodes, with one read of the store for each kind of what is gathered.
    pub async fn gather_all(
        call: &Call,
        nodes: Vec<impl Into<Arc<Node>> + Send>,
        wanted: Option<&[String]>,
    ) -> Result<Vec<Self>, ApiError> {
        let nodes: Vec<Arc<Node>> = nodes.into_iter().map(Into::into).collect();
        let wants = |name: &str| wanted.is_none_or(|fields| fields.iter().any(|field| field == name));
        let uuids: Vec<Uuid> = nodes.iter().map(|node| node.uuid).collect();
        let contacts = if wants("driver_internal_info") {
            call.app.store.shared_contacts(&uuids).await?
        } else {
            vec![Arc::default(); nodes.len()]
        };
        let mut holders = if wants("reservation") {
            call.app.store.lease_holders(&uuids, call.now()).await?
        } else {
            BTreeMap::new()
        };
        let allocations = if wants("allocation_uuid") {
            allocations::held_by(call, &nodes).await?
        } else {
            BTreeSet::new()
        };
        let mut views = Vec::with_capacity(nodes.len());
        for (node, contact) in nodes.into_iter().zip(contacts) {
            let leased = holders.remove(&node.uuid);
            let holder = if wants("reservation") { Lock::host(call, &node, leased) } else { None };
            let hidden = Redactions::from(call, &node);
            let allocation =
                node.instance_uuid.filter(|instance| allocations.contains(&(node.uuid, *instance)));
            views.push(Self { node, contact, holder, allocation, hidden });
        }
        Ok(views)
    }

    /// The node itself.
    pub fn into_node(self) -> Node {
        Arc::unwrap_or_clone(self.node)
    }

    /// The node in the wanted fields, or in all of them, as the text of an object.
    pub fn text(&self, app: &App, links: &Links, version: Version, wanted: Option<&[String]>) -> String {
        let mut text = Vec::with_capacity(if wanted.is_none() { 4096 } else { 512 });
        for (name, value) in self.members(app, links, version, wanted) {
            text.push(if text.is_empty() { b'{' } else { b',' });
            // Names need no escapes, and a value in memory is always written.
            text.push(b'"');
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b"\":");
            let _ = serde_json::to_writer(&mut text, &value);
        }
        text.push(b'}');
        String::from_utf8(text).unwrap_or_default()
    }

    /// The members, in the order of their names.
    fn members<'a>(
        &'a self,
        app: &'a App,
        links: &'a Links,
        version: Version,
        wanted: Option<&'a [String]>,
    ) -> impl Iterator<Item = (&'static str, Value)> + 'a {
        let path = format!("nodes/{}", self.node.uuid);
        let is_wanted =
            move |name: &str| wanted.is_none_or(|names| names.iter().any(|wanted| wanted == name));
        MEMBERS.iter().filter_map(move |member| {
            let value = match member {
                Member::Field(field) | Member::Own(field) if !version.has(field.since) => return None,
                Member::Own(_) if wanted.is_none() => return None,
                Member::Field(field) | Member::Own(field) if is_wanted(field.name) => {
                    self.field(app, version, field.name)
                }
                Member::Links => links.pair(&path),
                Member::Below(name, since) if wanted.is_none() && version.has(*since) => {
                    links.pair(&format!("{path}/{name}"))
                }
                _ => return None,
            };
            Some((member.name(), value))
        })
    }

    /// One field.
    pub fn field(&self, app: &App, version: Version, name: &str) -> Value {
        if let Some(instead) = self.hidden.instead_of(name) {
            return instead;
        }
        let node = &self.node;
        match name {
            "created_at" => Value::String(iso(node.created_at)),
            "updated_at" => at(node.updated_at),
            "provision_updated_at" => at(node.provision_updated_at),
            "provision_state" => provision_state(node.provision_state, version),
            "target_provision_state" => {
                node.target_provision_state.map_or(Value::Null, |state| state.as_str().into())
            }
            "power_state" => node.power_state.map_or(Value::Null, |state| state.as_str().into()),
            "target_power_state" => {
                // Ironic shows the state that the node will be in, not the way there.
                node.target_power_state.map_or(Value::Null, |target| target.resulting_state().as_str().into())
            }
            "driver_info" => Value::Object(masked(&node.driver_info)),
            "instance_info" => Value::Object(masked_instance_info(&node.instance_info)),
            "driver_internal_info" => Value::Object(self.driver_internal_info()),
            "clean_step" => node.clean_step.as_ref().map_or_else(|| json!({}), masked_value),
            "deploy_step" => node.deploy_step.as_ref().map_or_else(|| json!({}), masked_value),
            "service_step" => node.service_step.as_ref().map_or_else(|| json!({}), masked_value),
            "raid_config" | "target_raid_config" => {
                node.other.get(name).cloned().unwrap_or_else(|| json!({}))
            }
            "console_enabled" => Value::Bool(node.other.get(name) == Some(&Value::Bool(true))),
            "boot_mode" | "secure_boot" => node.other.get(name).cloned().unwrap_or(Value::Null),
            "traits" => node.traits.iter().cloned().collect(),
            "inspection_started_at" => at(node.inspection_started_at),
            "inspection_finished_at" => at(node.inspection_finished_at),
            "fault" => text(node.fault.as_deref()),
            "last_error" => text(node.last_error.as_deref()),
            "maintenance_reason" => text(node.maintenance_reason.as_deref()),
            "reservation" => text(self.holder.as_deref()),
            "conductor" => app.members.driver_of(node).map_or(Value::Null, Value::String),
            "allocation_uuid" => self.allocation.map_or(Value::Null, |uuid| uuid.to_string().into()),
            "health" => text(node.health.map(Health::as_str)),
            fields::BASIS => basis(node).map_or(Value::Null, |basis| basis["kind"].clone()),
            name => match fields::read(node, name) {
                Value::Null => default_interface(app, &node.driver, name),
                value => value,
            },
        }
    }

    /// What Ironic keeps there under the same names, and Anneal's own under one key.
    fn driver_internal_info(&self) -> Map<String, Value> {
        let mut info = stored_internal_info(&self.node, &self.contact);
        let contact = &self.contact;
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                info.insert(name.to_owned(), value);
            }
        };
        put("agent_url", contact.callback_url.clone().map(Value::String));
        put("agent_version", contact.agent_version.clone().map(Value::String));
        put("agent_last_heartbeat", contact.last_heartbeat_at.map(|at| Value::String(iso_without_zone(at))));
        let mut anneal = Map::new();
        if let Some(basis) = basis(&self.node) {
            anneal.insert("basis".into(), basis);
        }
        if let Some(run) = &self.node.run {
            anneal.insert("run".into(), run_view(run));
        }
        if let Some(wait) = &self.node.wait {
            let wait = json!({
                "reason": wait.reason,
                "since": iso(wait.since),
                "deadline": at(wait.deadline),
            });
            anneal.insert("wait".into(), wait);
        }
        if let Some(state) = contact.anneal() {
            anneal.insert("progress".into(), state.progress.clone().unwrap_or(Value::Null));
            anneal.insert(
                "agent".into(),
                json!({"boot_id": state.boot_id, "process_id": state.process_id, "running": state.running}),
            );
        }
        if let Some(rival) = &contact.rival {
            anneal.insert(
                "rival".into(),
                json!({"at": iso(rival.at), "boot_id": rival.boot_id, "address": rival.address}),
            );
        }
        if !anneal.is_empty() {
            info.insert("anneal".into(), Value::Object(anneal));
        }
        info
    }
}

/// The stored part of `driver_internal_info`, and that there is a token: what agents are shown too.
pub fn stored_internal_info(node: &Node, contact: &Contact) -> Map<String, Value> {
    let mut info = masked(&node.driver_internal_info);
    if contact.token.is_some() {
        info.insert("agent_secret_token".into(), MASKED.into());
    }
    info
}

/// Why a node is AVAILABLE; `not-recorded` where a version of the controller made it available that stored no basis.
fn basis(node: &Node) -> Option<Value> {
    if node.provision_state != ProvisionState::Available {
        return None;
    }
    Some(node.basis.as_ref().map_or_else(|| json!({"kind": "not-recorded"}), |basis| json!(basis)))
}

/// Why a step that erases or writes an image has no certificate.
const UNCERTIFIED: &str =
    "the agent sent no evidence that it signed and that was found good: nothing certifies the step";

/// Whether an agent that signs proves what the step did to a disk.
fn is_certified(planned: &PlannedStep) -> bool {
    planned.step.step.starts_with("erase_devices") || is_step(&planned.step, WRITE_IMAGE)
}

fn run_view(run: &Run) -> Value {
    let results: Vec<_> = run
        .results
        .iter()
        .map(|result| {
            let planned = run.plan.as_ref().and_then(|plan| plan.get(result.index));
            let mut shown = json!({
                "index": result.index,
                "step": planned.map(PlannedStep::label),
                "command_id": result.command_id,
                "at": iso(result.at),
                "result": masked_value(&result.result),
                "error": result.error,
            });
            if let Some(id) = &result.certificate {
                shown["certificate"] = id.as_str().into();
            } else if planned.is_some_and(is_certified) {
                shown["certificate"] = Value::Null;
                shown["uncertified"] = UNCERTIFIED.into();
            }
            shown
        })
        .collect();
    json!({
        "id": run.id,
        "kind": run.kind.as_str(),
        "started_at": iso(run.started_at),
        "cursor": serde_json::to_value(&run.cursor).unwrap_or(Value::Null),
        "index": run.index,
        "abort": run.abort,
        "interruptions": run.interruptions,
        "resumes_from": run.resumes_from().map(|_| run.reached_now()),
        "replans": run.replans,
        "attempts": run.attempts,
        "logs": run.logs,
        "results": results,
    })
}

/// Old clients do not know `available` (1.2) and `inspect wait` (1.39).
pub fn provision_state(state: ProvisionState, version: Version) -> Value {
    match state {
        ProvisionState::Available if !version.has(2) => Value::Null,
        ProvisionState::InspectWait if !version.has(39) => ProvisionState::Inspecting.as_str().into(),
        state => state.as_str().into(),
    }
}

fn default_interface(app: &App, driver: &str, field: &str) -> Value {
    let interface = field
        .strip_suffix("_interface")
        .and_then(|interface| driver_queries::INTERFACES.into_iter().find(|known| *known == interface));
    let choice = interface.and_then(|interface| {
        app.drivers.drivers().iter().find(|known| known.name == driver)?.interfaces.get(interface)
    });
    choice.map_or(Value::Null, |choice| choice.default.clone().into())
}
