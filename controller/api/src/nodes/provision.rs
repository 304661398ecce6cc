//! `PUT /v1/nodes/{ident}/states/provision`: verbs.

use crate::body::{self, python};
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::microversion::{Version, target_since};
use crate::write;
use axum::extract::Path;
use model::provision::transition;
use model::request::{Policy, RequestError, VerbRequest, apply_verb};
use model::{Event, Node, ProvisionState, RequestedStep, Verb};
use serde_json::{Map, Value};

const ARGUMENTS: [&str; 8] = [
    "target",
    "configdrive",
    "clean_steps",
    "deploy_steps",
    "rescue_password",
    "disable_ramdisk",
    "service_steps",
    "runbook",
];

/// Interfaces that have steps.
const INTERFACES: [&str; 7] = ["vendor", "power", "management", "firmware", "deploy", "bios", "raid"];

/// `PUT /v1/nodes/{ident}/states/provision`.
pub async fn provision(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&ARGUMENTS)?;
    let target = body::required(&given, "target")?.to_owned();
    let clean_steps = steps(&given, "clean_steps")?;
    for other in ["deploy_steps", "service_steps"] {
        list(&given, other)?;
    }
    let node = call.node(&ident).await?;
    call.version.needs(target_since(&target))?;
    let seen = node.clone();
    let verb = verb(&target);
    // A verb that the state does not know is told as such, before what comes along is looked at.
    allowed(&call, &seen, verb, &target).await?;
    companions(&given, &target, &call)?;
    late_aborts(&seen, verb, call.version)?;

    let policy = Policy { automated_clean: call.app.settings.automated_clean };
    write::change(&call, &ident, |node| {
        let request = VerbRequest {
            verb: verb.ok_or_else(|| refused(node, &target))?,
            clean_steps: clean_steps.clone(),
        };
        decide(node, request, policy, &target, &call)
    })
    .await?;
    Ok(empty(202, Some(&call.links.v1(&format!("nodes/{ident}/states")))))
}

/// The verb of a target. `cleaned` is the older specification's word for "clean again on the way to
/// available" (specs/cleaning-states.txt).
fn verb(target: &str) -> Option<Verb> {
    if target.eq_ignore_ascii_case("cleaned") { Some(Verb::Provide) } else { Verb::parse_target(target) }
}

fn refused(node: &Node, target: &str) -> ApiError {
    ApiError::invalid(format!(
        "The requested action \"{target}\" can not be performed on node \"{}\" while it is in state \"{}\".",
        node.uuid,
        node.provision_state.as_str()
    ))
}

/// 400 for a verb that the state does not know, 409 when that is because a conductor is at work.
async fn allowed(call: &Call, node: &Node, verb: Option<Verb>, target: &str) -> Result<(), ApiError> {
    if verb.is_some_and(|verb| transition(node.provision_state, verb).is_ok()) {
        return Ok(());
    }
    match call.app.store.lease_holder(node.uuid, call.now()).await? {
        Some(host) => Err(ApiError::locked(node.uuid, &host)),
        None => Err(refused(node, target)),
    }
}

/// `abort` came to some states later than the verb itself.
fn late_aborts(node: &Node, verb: Option<Verb>, version: Version) -> Result<(), ApiError> {
    match (verb, node.provision_state) {
        (Some(Verb::Abort), ProvisionState::InspectWait) => version.needs(41),
        (Some(Verb::Abort), ProvisionState::DeployWait) => version.needs(110),
        _ => Ok(()),
    }
}

fn decide(
    node: &Node,
    request: VerbRequest,
    policy: Policy,
    target: &str,
    call: &Call,
) -> Result<(Node, Vec<Event>), ApiError> {
    apply_verb(node, request, policy, call.now()).map_err(|error| match error {
        RequestError::State { .. } => refused(node, target),
        // The specification of retirement says 409; Ironic itself answers 400.
        RequestError::Retired(_) => ApiError::conflict(error.to_string()),
        RequestError::PowerLocked { .. } => ApiError::conflict(error.to_string()),
        RequestError::NotBuilt(_) | RequestError::Steps(_) => ApiError::invalid(error.to_string()),
    })
}

/// Arguments that only some verbs take.
fn companions(given: &Map<String, Value>, target: &str, call: &Call) -> Result<(), ApiError> {
    let only = |name: &str, verb: &str| {
        ApiError::invalid(format!("\"{name}\" is only valid when setting target provision state to {verb}"))
    };
    let has =
        |name: &str| given.get(name).is_some_and(|value| !value.is_null() && value != &Value::Array(vec![]));
    if has("configdrive") && !matches!(target, "active" | "rebuild") {
        return Err(ApiError::invalid(
            "Adding a config drive is only supported when setting provision state to active, rebuild",
        ));
    }
    if has("runbook") {
        call.version.needs(92)?;
        return Err(ApiError::client(
            404,
            format!("Runbook {} could not be found.", python(&given["runbook"])),
        ));
    }
    if let Some(value) = given.get("disable_ramdisk").filter(|value| !value.is_null()) {
        let disable = body::boolean("disable_ramdisk", value)?.unwrap_or(false);
        let since = match target {
            "clean" => 70,
            "service" => 108,
            _ => {
                return Err(ApiError::invalid(
                    "disable_ramdisk is supported only with manual cleaning or servicing",
                ));
            }
        };
        if !call.version.has(since) {
            return Err(ApiError::client(406, "disable_ramdisk is not acceptable in this API version"));
        }
        if disable {
            return Err(ApiError::invalid(
                "disable_ramdisk cannot be true: all steps that this controller knows run in the ramdisk",
            ));
        }
    }
    if has("deploy_steps") {
        call.version.needs(69)?;
        if !matches!(target, "active" | "deploy" | "rebuild") {
            return Err(only("deploy_steps", "active, deploy or rebuild"));
        }
    }
    if has("rescue_password") && target != "rescue" {
        body::text(given, "rescue_password")?;
        return Err(only("rescue_password", "rescue"));
    }
    if has("service_steps") && target != "service" {
        return Err(only("service_steps", "service"));
    }
    Ok(())
}

fn list<'a>(given: &'a Map<String, Value>, name: &str) -> Result<Option<&'a Vec<Value>>, ApiError> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(ApiError::invalid(format!(
            "Expected types <class 'NoneType'>, <class 'list'> for {name}: {}",
            python(other)
        ))),
    }
}

/// The steps asked for; an empty list counts as none, as in Ironic.
fn steps(given: &Map<String, Value>, name: &str) -> Result<Option<Vec<RequestedStep>>, ApiError> {
    let Some(items) = list(given, name)?.filter(|items| !items.is_empty()) else { return Ok(None) };
    items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            step(item).map_err(|why| {
                ApiError::invalid(format!(
                    "Invalid {name}: {why}\n\nOn instance[{index}]:\n    {}",
                    python(item)
                ))
            })
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// One step by its schema; the error is the schema's, without the step itself.
fn step(item: &Value) -> Result<RequestedStep, String> {
    let Value::Object(fields) = item else {
        return Err(format!("{} is not of type 'object'", python(item)));
    };
    for key in ["interface", "step"] {
        if !fields.contains_key(key) {
            return Err(format!("'{key}' is a required property"));
        }
    }
    const KEYS: [&str; 6] =
        ["interface", "step", "args", "order", "execute_on_child_nodes", "limit_child_node_execution"];
    if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("Additional properties are not allowed ('{unknown}' was unexpected)"));
    }
    let interface = fields["interface"].as_str().filter(|interface| INTERFACES.contains(interface));
    let interface = interface.ok_or_else(|| {
        let known: Vec<_> = INTERFACES.iter().map(|name| format!("'{name}'")).collect();
        format!("{} is not one of [{}]", python(&fields["interface"]), known.join(", "))
    })?;
    let name = match &fields["step"] {
        Value::String(name) if name.is_empty() => return Err("'' should be non-empty".into()),
        Value::String(name) => name,
        other => return Err(format!("{} is not of type 'string'", python(other))),
    };
    let args = match fields.get("args") {
        None => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(other) => return Err(format!("{} is not of type 'object'", python(other))),
    };
    match fields.get("execute_on_child_nodes") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => return Err("'execute_on_child_nodes': nodes have no children here".into()),
        Some(other) => return Err(format!("{} is not of type 'boolean'", python(other))),
    }
    if let Some(other) = fields.get("limit_child_node_execution").filter(|value| !value.is_array()) {
        return Err(format!("{} is not of type 'array'", python(other)));
    }
    Ok(RequestedStep { interface: interface.to_owned(), step: name.clone(), args })
}
