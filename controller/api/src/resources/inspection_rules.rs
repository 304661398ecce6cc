//! `/v1/inspection_rules`: what to do with what an inspection found. They are checked and kept here, and applied by the
//! conductor when the inventory is there (the crate `inspection-rules`).

use super::field::{Empty, Type, Write, written};
use super::resource::{ResourceHandler, ResourceSpec, TooOld};
use super::{list, write};
use crate::call::{Call, empty};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::schema::Kind;
use inspection_rules::check;
use model::{Resource, ResourceKind};
use serde_json::{Map, Value};
use store::{ResourceFilter, ResourceWrite, StoreError};

/// An inspection rule.
pub struct Rule;

/// Largest priority of a rule of a user.
const MOST: i64 = 9999;

/// Endpoints of inspection rules.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/inspection_rules" 96 "baremetal:inspection_rule:list_all", "inspection rules" => list::list::<Rule>;
        POST "/v1/inspection_rules" 96 "baremetal:inspection_rule:create", "add one that every later inspection applies"
            => write::create::<Rule>;
        DELETE "/v1/inspection_rules" 96 "baremetal:inspection_rule:delete", "remove all" => clear;
        GET "/v1/inspection_rules/{ident}" 96 "baremetal:inspection_rule:get", "an inspection rule"
            => list::show::<Rule>;
        PATCH "/v1/inspection_rules/{ident}" 96 "baremetal:inspection_rule:update", "change it"
            => write::patch::<Rule>;
        DELETE "/v1/inspection_rules/{ident}" 96 "baremetal:inspection_rule:delete", "remove it"
            => write::delete::<Rule>;
    ]
}

impl ResourceHandler for Rule {
    const SPEC: ResourceSpec = ResourceSpec {
        kind: ResourceKind::InspectionRule,
        one: "a rule",
        word: "inspection_rule",
        path: "inspection_rules",
        list: "inspection_rules",
        since: 96,
        too_old: TooOld::Disallowed("inspection rules"),
        detail: Some(96),
        named: None,
        fields: &[
            written("actions", 96, Write::Required(Type::Special(actions))).unsortable(),
            written("conditions", 96, Write::Always(Type::Special(conditions))).or(Empty::List).unsortable(),
            written("description", 96, Write::Always(Type::Plain(Kind::Text(255)))),
            written("phase", 96, Write::Always(Type::Plain(Kind::Text(16)))).or(Empty::Text("main")),
            written("priority", 96, Write::Always(Type::Integer)).or(Empty::Number(0)),
            written("sensitive", 96, Write::Always(Type::Plain(Kind::Boolean))).or(Empty::Bool(false)),
        ],
        short: &["uuid", "priority", "phase", "description"],
        filters: &[("phase", 96)],
        below: &[],
    };

    async fn validate(_: &Call, old: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
        if let Some(phase) = new.text("phase").filter(|phase| *phase != "main") {
            return Err(ApiError::invalid(format!("Invalid phase: {phase}. Valid phases are: main")));
        }
        if new.field("priority").as_i64().is_some_and(|priority| !(0..=MOST).contains(&priority)) {
            return Err(ApiError::invalid("Priority must be between 0 and 9999 for user-defined rules."));
        }
        if old.is_some_and(|old| old.field("sensitive") == true) && new.field("sensitive") != true {
            return Err(ApiError::invalid("Inspection rules cannot have the sensitive flag unset."));
        }
        Ok(new)
    }

    /// There is one phase.
    async fn narrowed(call: &Call, filter: ResourceFilter) -> Result<Option<ResourceFilter>, ApiError> {
        Ok(Some(filter).filter(|_| call.args.text("phase").is_none_or(|phase| phase == "main")))
    }

    fn extend_view(_: &Call, rule: &Resource, view: &mut Map<String, Value>) {
        if rule.field("sensitive") == true {
            for hidden in ["actions", "conditions"] {
                if let Some(value) = view.get_mut(hidden) {
                    *value = Value::Null;
                }
            }
        }
    }
}

fn actions(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    if value.as_array().is_some_and(Vec::is_empty) {
        return Err(bad(what, name, "[] should be non-empty"));
    }
    check::actions(value).map_err(|why| bad(what, name, &why))?;
    Ok(value.clone())
}

fn conditions(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    check::conditions(value).map_err(|why| bad(what, name, &why))?;
    Ok(value.clone())
}

fn bad(what: &str, name: &str, why: &str) -> ApiError {
    ApiError::invalid(format!("Schema error for {what}: {why} (field \"{name}\")"))
}

/// `DELETE /v1/inspection_rules`: all of them.
async fn clear(call: Call) -> Reply {
    Rule::SPEC.exists(&call, 405)?;
    call.args.only(&[])?;
    for rule in call.app.store.resources(ResourceKind::InspectionRule, None).await? {
        let write = ResourceWrite::Delete(rule.kind, rule.uuid, rule.version);
        match call.app.store.write_resource(write, None, call.did(&rule, "deleted")).await {
            // Another client has removed or changed it.
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Stale(_)) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(empty(204, None))
}
