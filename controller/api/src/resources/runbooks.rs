//! `/v1/runbooks`: steps of cleaning or service under a name, for nodes that bear one of its traits.

use super::field::{Empty, Type, Write, object, read_only, trait_names, written};
use super::resource::{ResourceHandler, ResourceSpec, TooOld, check_name, refused};
use super::{list, write};
use crate::auth::{Owners, policy};
use crate::body::python;
use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::retry::Retry;
use crate::schema::Kind;
use crate::{schema, steps, traits};
use axum::extract::Path;
use model::mask::masked_value;
use model::{Node, RequestedStep, Resource, ResourceKind, StepKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use store::{ResourceWrite, StoreError};

/// A runbook.
pub struct Runbook;

/// The minor version since which traits, not the name, say what nodes a runbook is for.
const TRAITS: u16 = 112;

const STEP_KEYS: [&str; 4] = ["args", "interface", "order", "step"];

/// Endpoints of runbooks.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/runbooks" 92 "baremetal:runbook:list", "runbooks" => list::list::<Runbook>;
        POST "/v1/runbooks" 92 "baremetal:runbook:create", "add one" => write::create::<Runbook>;
        GET "/v1/runbooks/{ident}" 92 "baremetal:runbook:get", "a runbook" => list::show::<Runbook>;
        PATCH "/v1/runbooks/{ident}" 92 "baremetal:runbook:update", "change it" => write::patch::<Runbook>;
        DELETE "/v1/runbooks/{ident}" 92 "baremetal:runbook:delete", "remove it" => write::delete::<Runbook>;
        GET "/v1/runbooks/{ident}/traits" 112 "baremetal:runbook:get", "traits of the nodes it is for" => traits_of;
        PUT "/v1/runbooks/{ident}/traits" 112 "baremetal:runbook:update", "replace them" => replace_traits;
        DELETE "/v1/runbooks/{ident}/traits" 112 "baremetal:runbook:update", "remove all" => clear_traits;
        PUT "/v1/runbooks/{ident}/traits/{trait}" 112 "baremetal:runbook:update", "add one" => add_trait;
        DELETE "/v1/runbooks/{ident}/traits/{trait}" 112 "baremetal:runbook:update", "remove one" => remove_trait;
    ]
}

impl ResourceHandler for Runbook {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::Runbook,
        one: "a runbook",
        word: "runbook",
        path: "runbooks",
        list: "runbooks",
        since: 92,
        too_old: TooOld::Disallowed("runbooks"),
        detail: Some(92),
        named: Some(1),
        fields: &[
            written("disable_ramdisk", 92, Write::Always(Type::Plain(Kind::Boolean))).or(Empty::Bool(false)),
            object("extra", 92),
            written("name", 92, Write::Required(Type::Text)),
            written("owner", 92, Write::Always(Type::Plain(Kind::Text(255)))),
            written("public", 92, Write::Always(Type::Plain(Kind::Boolean))).or(Empty::Bool(false)),
            written("steps", 92, Write::Required(Type::Special(read_steps))).unsortable(),
            written("description", TRAITS, Write::Always(Type::Plain(Kind::Text(255)))),
            read_only("traits", TRAITS).or(Empty::List).unsortable(),
        ],
        short: &["uuid", "name"],
        filters: &[],
        below: &[],
    };

    async fn validate(call: &Call, old: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
        let what = if old.is_some() { "patch" } else { "runbook" };
        let name = new.name.clone().unwrap_or_default();
        if call.version.has(TRAITS) && !name.is_empty() {
            check_name(
                &new,
                &format!("Schema error for {what}: the name does not match '^[A-Za-z0-9\\-._~]+$':"),
            )?;
        } else if old.is_none_or(|old| old.name != new.name) {
            traits::name(what, &name.into())?;
        }
        Ok(new)
    }

    fn extend_view(_: &Call, _: &Resource, view: &mut Map<String, Value>) {
        if let Some(Value::Array(steps)) = view.get_mut("steps") {
            for step in steps {
                step["args"] = masked_value(&step["args"]);
            }
        }
    }
}

fn read_steps(what: &str, _: &str, value: &Value) -> Result<Value, ApiError> {
    let bad = |why: String| ApiError::invalid(format!("Schema error for {what}: {why}"));
    let items = match value {
        Value::Array(items) if items.is_empty() => return Err(bad("[] should be non-empty".to_owned())),
        Value::Array(items) => items,
        other => return Err(schema::wrong_type(what, other, "'array'")),
    };
    let mut kept = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = |why: String| bad(format!("{why} (field \"steps[{index}]\")"));
        let step = steps::requested(item, StepKind::Clean).map_err(at)?;
        let Value::Object(fields) = item else { continue };
        if let Some(unknown) = fields.keys().find(|key| !STEP_KEYS.contains(&key.as_str())) {
            return Err(at(format!("Additional properties are not allowed ('{unknown}' was unexpected)")));
        }
        let order = fields.get("order").ok_or_else(|| at("'order' is a required property".to_owned()))?;
        steps::priority(order).map_err(at)?;
        if !seen.insert((step.interface.clone(), step.step.clone())) {
            return Err(ApiError::invalid(format!(
                "Runbook invalid: Duplicate steps. A runbook cannot have multiple steps with the same interface \
                 and step. Duplicates: interface: {}, step: {}.",
                step.interface, step.step
            )));
        }
        kept.push(json!({"interface": step.interface, "step": step.step, "args": step.args, "order": order}));
    }
    Ok(Value::Array(kept))
}

/// Ironic's policy for the use of a runbook.
const USE: &str = "baremetal:runbook:use";

/// The steps that a runbook brings to a node, in their order, and whether they want no ramdisk: 400 when the node
/// does not bear what approves it.
pub async fn used_on(
    call: &Call,
    node: &Node,
    ident: &str,
    kind: StepKind,
) -> Result<(Vec<RequestedStep>, bool), ApiError> {
    call.version.needs(Runbook::SPEC.since)?;
    let runbook = Runbook::SPEC.find(call, ident).await?;
    // A runbook's steps were chosen by its owner, so its use needs a policy of its own.
    let owners = Owners { owner: runbook.text("owner").map(str::to_owned), lessee: None };
    if !policy::may(USE, &call.identity, Some(&owners)) {
        return Err(ApiError::forbidden(USE));
    }
    approved(call, node, &runbook)?;
    let items = runbook.field("steps").as_array().cloned().unwrap_or_default();
    let mut ordered = Vec::with_capacity(items.len());
    for item in items {
        let order = steps::priority(&item["order"]).map_err(ApiError::invalid)?;
        ordered.push((order.as_u64(), steps::requested(&item, kind).map_err(ApiError::invalid)?));
    }
    ordered.sort_by_key(|(order, _)| *order);
    let disable_ramdisk = runbook.field("disable_ramdisk") == true;
    Ok((ordered.into_iter().map(|(_, step)| step).collect(), disable_ramdisk))
}

fn approved(call: &Call, node: &Node, runbook: &Resource) -> Result<(), ApiError> {
    if !call.version.has(TRAITS) {
        if runbook.name.as_ref().is_some_and(|name| node.traits.contains(name)) {
            return Ok(());
        }
        return Err(ApiError::invalid(format!(
            "This runbook has not been approved for use on this node {}. Please ask an administrator to add it to \
             your node traits.",
            node.uuid
        )));
    }
    let wanted = trait_set(runbook);
    if wanted.is_empty() {
        return Err(ApiError::invalid(format!(
            "Runbook {} has no traits configured. Please ask an administrator to add traits to the runbook.",
            runbook.uuid
        )));
    }
    if wanted.is_disjoint(&node.traits) {
        let wanted = python(&wanted.into_iter().collect());
        return Err(ApiError::invalid(format!(
            "This runbook has not been approved for use on this node {}. The node does not have any of the \
             runbook's traits {wanted}. Please ask an administrator to add a matching trait to your node.",
            node.uuid
        )));
    }
    Ok(())
}

fn trait_set(runbook: &Resource) -> BTreeSet<String> {
    let items = runbook.field("traits").as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

async fn traits_of(Path(ident): Path<String>, call: Call) -> Reply {
    has_traits(&call)?;
    call.args.only(&[])?;
    let runbook = Runbook::SPEC.find(&call, &ident).await?;
    Ok(json(200, &json!({"traits": trait_set(&runbook)})))
}

async fn replace_traits(Path(ident): Path<String>, call: Call) -> Reply {
    has_traits(&call)?;
    let given = schema::object("body", call.json()?)?;
    let unknown: Vec<_> = given.keys().map(String::as_str).filter(|name| *name != "traits").collect();
    schema::no_others("body", &unknown)?;
    let Some(list) = given.get("traits").filter(|list| list.is_array()) else {
        return Err(ApiError::invalid("Schema error for body: 'traits' must be a list of traits"));
    };
    trait_names("body", "traits", list)?;
    let names: BTreeSet<String> =
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    change(&call, &ident, |_| names.clone()).await
}

async fn add_trait(Path((ident, name)): Path<(String, String)>, call: Call) -> Reply {
    has_traits(&call)?;
    traits::name("trait", &Value::String(name.clone()))?;
    if call.json()? != json!({}) {
        return Err(ApiError::invalid("No body should be provided when adding a trait"));
    }
    let mut reply = change(&call, &ident, |mut traits| {
        traits.insert(name.clone());
        traits
    })
    .await?;
    let place = call.links.v1(&format!("runbooks/{ident}/traits/{name}"));
    crate::call::locate(&mut reply, Some(&place));
    Ok(reply)
}

async fn clear_traits(Path(ident): Path<String>, call: Call) -> Reply {
    has_traits(&call)?;
    change(&call, &ident, |_| BTreeSet::new()).await
}

/// Removing a missing trait is no error, as in Ironic.
async fn remove_trait(Path((ident, name)): Path<(String, String)>, call: Call) -> Reply {
    has_traits(&call)?;
    change(&call, &ident, |mut traits| {
        traits.remove(&name);
        traits
    })
    .await
}

fn has_traits(call: &Call) -> Result<(), ApiError> {
    ResourceSpec::since(call, TRAITS, TooOld::Disallowed("runbook traits"), 404)
}

async fn change(
    call: &Call,
    ident: &str,
    decide: impl Fn(BTreeSet<String>) -> BTreeSet<String> + Send + Sync,
) -> Reply {
    call.args.only(&[])?;
    let mut runbook = Runbook::SPEC.find(call, ident).await?;
    let mut retry = Retry::new();
    loop {
        let names = decide(trait_set(&runbook));
        runbook.fields.insert("traits".into(), names.into_iter().collect());
        runbook.updated_at = Some(call.now());
        let events = call.did(&runbook, "changed (traits)");
        match call.app.store.write_resource(ResourceWrite::Update(runbook.clone()), None, events).await {
            Ok(_) => return Ok(empty(204, None)),
            Err(StoreError::Stale(uuid)) if retry.again().await => {
                runbook = Runbook::SPEC.find(call, &uuid.to_string()).await?;
            }
            Err(other) => return Err(refused::<Runbook>(other, &runbook)),
        }
    }
}
