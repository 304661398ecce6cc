//! `PUT /v1/nodes/{ident}/states/provision`: verbs.

use super::{configdrive, hello, ramdisk_boot, validation};
use crate::body::{self, python};
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::microversion::{Version, target_since};
use crate::resources::{deploy_templates, runbooks};
use crate::write::Change;
use crate::{steps, write};
use axum::extract::Path;
use model::mask::masked_value;
use model::provision::{Budget, transition};
use model::request::{Policy, RequestError, VerbRequest, apply_verb};
use model::{Node, ProvisionState, RequestedStep, StepKind, Verb};
use serde_json::{Map, Value};
use sha_crypt::{PasswordHasher, ShaCrypt};
use std::collections::BTreeMap;

const ARGUMENTS: [&str; 9] = [
    "target",
    "configdrive",
    "clean_steps",
    "deploy_steps",
    "rescue_password",
    "disable_ramdisk",
    "service_steps",
    "runbook",
    "reason",
];

/// Steps of the caller's own need more than the verb.
const STEP_POLICIES: [(StepKind, &str); 2] = [
    (StepKind::Clean, "baremetal:node:set_provision_state:clean_steps"),
    (StepKind::Service, "baremetal:node:set_provision_state:service_steps"),
];

/// Bytes of the salt of a rescue password. In base64 they are 16 characters: `crypt(3)` reads no more and leaves the
/// rest out of what it gives, so that with a longer salt no password would ever fit.
const SALT: usize = 12;

/// `PUT /v1/nodes/{ident}/states/provision`.
pub async fn provision(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&ARGUMENTS)?;
    let target = body::required(&given, "target")?;
    // Ironic checks these before it looks for the node.
    let clean_steps = asked_steps(&given, StepKind::Clean)?;
    for kind in StepKind::ALL {
        list(&given, kind.steps_field())?;
    }
    let judge = |node| judge(&call, &given, target, clean_steps.clone(), node);
    // A change of power that came before the verb is carried out before the run begins, not in it or after it.
    write::change_after_power(&call, &ident, judge).await?;
    Ok(empty(202, Some(&call.links.v1(&format!("nodes/{ident}/states")))))
}

/// The node after the verb, or why it is refused, in the order in which Ironic checks.
async fn judge(
    call: &Call,
    given: &Map<String, Value>,
    target: &str,
    clean_steps: Vec<RequestedStep>,
    node: Node,
) -> Result<Change, ApiError> {
    for (kind, policy) in STEP_POLICIES {
        if given.get(kind.steps_field()).is_some_and(|steps| !steps.is_null()) {
            call.permit(policy, &node)?;
        }
    }
    if Verb::parse_target(target) == Some(Verb::Override) {
        call.permit("anneal:node:override", &node)?;
    }
    call.version.needs(target_since(target))?;
    let verb = allowed(call, &node, target).await?;
    let request = request(call, given, target, clean_steps, verb, &node).await?;
    late_aborts(&node, verb, call.version)?;
    if matches!(verb, Verb::Deploy | Verb::Rebuild) {
        let refused = |why| {
            ApiError::invalid(format!(
                "Failed to validate deploy or power info for node {}: {why}",
                node.uuid
            ))
        };
        validation::image(&call.app, &node).await.map_err(refused)?;
        let drive = request.configdrive.as_ref();
        configdrive::check_writable(&call.app, &node, drive).await.map_err(refused)?;
        hello::check(&call.app, &node, drive).map_err(|error| refused(error.into()))?;
    }
    if verb == Verb::Rescue {
        let refused =
            |why| ApiError::invalid(format!("Failed to validate rescue info for node {}: {why}", node.uuid));
        validation::rescue(&call.app, &node).map_err(refused)?;
    }
    let policy = Policy { automated_clean: call.app.settings.automated_clean };
    let changed =
        apply_verb(&node, request, policy, call.now()).map_err(|error| refusal(error, &node, target))?;
    ramdisk_boot::check(call, &node, &changed.0).await?;
    Ok(changed)
}

/// The verb with what comes along in the body, checked.
async fn request(
    call: &Call,
    given: &Map<String, Value>,
    target: &str,
    clean_steps: Vec<RequestedStep>,
    verb: Verb,
    node: &Node,
) -> Result<VerbRequest, ApiError> {
    let mut steps = BTreeMap::from([(StepKind::Clean, clean_steps)]);
    for kind in [StepKind::Deploy, StepKind::Service] {
        steps.insert(kind, asked_steps(given, kind)?);
    }
    let mut disable_ramdisk = companions(given, target, call)?;
    if let Some(ident) = body::text(given, "runbook")? {
        disable_ramdisk = with_runbook(call, node, ident, verb, &mut steps).await?;
    }
    Ok(VerbRequest {
        steps,
        templates: match verb {
            Verb::Deploy | Verb::Rebuild => deploy_templates::of_instance(call, node).await?,
            _ => Vec::new(),
        },
        disable_ramdisk,
        rescue_hash: rescue_hash(given, verb)?,
        configdrive: given.get("configdrive").filter(|drive| !is_nothing(drive)).cloned(),
        reason: body::text(given, "reason")?.map(str::to_owned),
        request_id: Some(call.request_id.clone()),
        sender: Some(call.sender()),
        ..VerbRequest::of(verb)
    })
}

/// Use the steps of a runbook, if the body has none; returns whether the ramdisk is disabled.
async fn with_runbook(
    call: &Call,
    node: &Node,
    ident: &str,
    verb: Verb,
    asked: &mut BTreeMap<StepKind, Vec<RequestedStep>>,
) -> Result<bool, ApiError> {
    let kind = match verb {
        Verb::Clean => StepKind::Clean,
        Verb::Service => StepKind::Service,
        _ => {
            return Err(ApiError::invalid(
                "\"runbooks\" is only valid when setting target provision state to any of ['clean', 'service']",
            ));
        }
    };
    let (steps, disable_ramdisk) = runbooks::used_on(call, node, ident, kind).await?;
    let given = asked.entry(kind).or_default();
    if !given.is_empty() {
        return Err(ApiError::invalid(format!(
            "Please provide either \"{}\" or a runbook, but not both.",
            kind.steps_field()
        )));
    }
    *given = steps;
    Ok(disable_ramdisk)
}

/// 400 for a verb that does not exist or that the state does not have, 409 if that is because a conductor is at work.
async fn allowed(call: &Call, node: &Node, target: &str) -> Result<Verb, ApiError> {
    let verb = Verb::parse_target(target);
    if let Some(verb) = verb.filter(|verb| transition(node.provision_state, *verb).is_ok()) {
        return Ok(verb);
    }
    // On its way to a state in which it can be aborted: 409, so that clients ask again, whether there is a lease or not.
    let soon = verb == Some(Verb::Abort) && transition(node.provision_state, Verb::Wait).is_ok();
    // In a stable state no conductor is about to change the state, whatever else it does with the node.
    let rests = node.provision_state.budget() == Budget::User;
    match call.app.store.lease_holder(node.uuid, call.now()).await? {
        Some(host) if !rests => Err(ApiError::locked(node.uuid, &host)),
        _ if soon => Err(ApiError::locked(node.uuid, call.app.members.own())),
        _ => Err(not_from_this_state(node, target)),
    }
}

fn not_from_this_state(node: &Node, target: &str) -> ApiError {
    ApiError::invalid(format!(
        "The requested action \"{target}\" can not be performed on node \"{}\" while it is in state \"{}\".",
        node.uuid,
        node.provision_state.as_str()
    ))
}

/// `abort` came to some states later than the verb itself.
fn late_aborts(node: &Node, verb: Verb, version: Version) -> Result<(), ApiError> {
    match (verb, node.provision_state) {
        (Verb::Abort, ProvisionState::InspectWait) => version.needs(41),
        (Verb::Abort, ProvisionState::DeployWait) => version.needs(110),
        _ => Ok(()),
    }
}

/// A refusal of the model with its status.
fn refusal(error: RequestError, node: &Node, target: &str) -> ApiError {
    match error {
        // The model knows the verb, not how the client spelt it (`active` or `deploy`).
        RequestError::State { .. } => not_from_this_state(node, target),
        // The specification of retirement says 409; Ironic itself answers 400.
        RequestError::Retired { .. } | RequestError::PowerLocked { .. } => {
            ApiError::conflict(error.to_string())
        }
        RequestError::Protected(_) => ApiError::client(403, error.to_string()),
        RequestError::Steps(_)
        | RequestError::Maintenance { .. }
        | RequestError::RescuePassword
        | RequestError::Reason => ApiError::invalid(error.to_string()),
    }
}

/// The hash that is kept instead of the password: SHA-512 crypt (`$6$`), as the ramdisk's `passwd` wants it.
fn rescue_hash(given: &Map<String, Value>, verb: Verb) -> Result<Option<String>, ApiError> {
    let password = match given.get("rescue_password") {
        None | Some(Value::Null) => None,
        Some(Value::String(password)) => Some(password.as_str()),
        // The value is not repeated: it may be the password all the same.
        Some(_) => return Err(ApiError::invalid("Expected string for rescue_password")),
    };
    match (verb, password) {
        (Verb::Rescue, Some(password)) if !password.trim().is_empty() => {
            let failed = || ApiError::internal("the rescue password could not be hashed");
            let mut salt = [0; SALT];
            getrandom::fill(&mut salt).map_err(|_| failed())?;
            let hash = ShaCrypt::default().hash_password_with_salt(password.as_bytes(), &salt);
            let hash = hash.map_err(|_| failed())?;
            Ok(Some(hash.as_str().to_owned()))
        }
        (Verb::Rescue, _) => Err(ApiError::invalid(RequestError::RescuePassword.to_string())),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(ApiError::invalid(
            "\"rescue_password\" is only valid when setting target provision state to rescue",
        )),
    }
}

/// Check arguments that only some verbs take; returns whether the ramdisk is disabled.
fn companions(given: &Map<String, Value>, target: &str, call: &Call) -> Result<bool, ApiError> {
    let only = |name: &str, verb: &str| {
        ApiError::invalid(format!("\"{name}\" is only valid when setting target provision state to {verb}"))
    };
    let has =
        |name: &str| given.get(name).is_some_and(|value| !value.is_null() && value != &Value::Array(vec![]));
    if let Some(drive) = given.get("configdrive").filter(|drive| !is_nothing(drive)) {
        configdrive::check(drive, target, call.version)?;
    }
    if has("reason") && Verb::parse_target(target) != Some(Verb::Override) {
        return Err(only("reason", "available"));
    }
    let mut disabled = false;
    if let Some(value) = given.get("disable_ramdisk").filter(|value| !value.is_null()) {
        disabled = body::boolean("disable_ramdisk", value)?.unwrap_or(false);
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
    }
    if has("deploy_steps") {
        call.version.needs(69)?;
    }
    Ok(disabled)
}

/// Values that count as no configuration drive.
fn is_nothing(drive: &Value) -> bool {
    match drive {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(parts) => parts.is_empty(),
        _ => false,
    }
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
fn asked_steps(given: &Map<String, Value>, kind: StepKind) -> Result<Vec<RequestedStep>, ApiError> {
    let name = kind.steps_field();
    list(given, name)?
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, item)| {
            steps::requested(item, kind).map_err(|why| {
                ApiError::invalid(format!(
                    "Invalid {name}: {why}\n\nOn instance[{index}]:\n    {}",
                    python(&masked_value(item))
                ))
            })
        })
        .collect()
}
