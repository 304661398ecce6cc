//! `/v1/inspection_rules`: what to do with what an inspection found. They are checked and kept; inspections here do
//! not apply them yet.

use super::field::{Empty, Type, Write, written};
use super::{Rest, Sort, TooOld, list, write};
use crate::body::python;
use crate::call::{Call, empty};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::fields::Kind;
use model::{Resource, ResourceKind};
use serde_json::{Map, Value};
use store::{ResourceWrite, StoreError};

/// An inspection rule.
pub struct Rule;

/// Largest priority of a rule of a user.
const MOST: i64 = 9999;

/// Operators with the arguments that they need, and those that they take.
type Operators = &'static [(&'static str, &'static [&'static str], &'static [&'static str])];

const CONDITIONS: Operators = &[
    ("eq", &["values"], &["force_strings"]),
    ("lt", &["values"], &["force_strings"]),
    ("gt", &["values"], &["force_strings"]),
    ("is-empty", &["value"], &[]),
    ("in-net", &["address", "subnet"], &[]),
    ("matches", &["value", "regex"], &[]),
    ("contains", &["value", "regex"], &[]),
    ("one-of", &["value"], &["values"]),
    ("is-none", &["value"], &[]),
    ("is-true", &["value"], &[]),
    ("is-false", &["value"], &[]),
];

const ACTIONS: Operators = &[
    ("fail", &["msg"], &[]),
    ("log", &["msg"], &["level"]),
    ("set-attribute", &["path", "value"], &[]),
    ("extend-attribute", &["path", "value"], &["unique"]),
    ("del-attribute", &["path"], &[]),
    ("set-capability", &["name", "value"], &[]),
    ("unset-capability", &["name"], &[]),
    ("add-trait", &["name"], &[]),
    ("remove-trait", &["name"], &[]),
    ("set-plugin-data", &["path", "value"], &[]),
    ("extend-plugin-data", &["path", "value"], &["unique"]),
    ("unset-plugin-data", &["path"], &[]),
    ("set-port-attribute", &["port_id", "path", "value"], &[]),
    ("extend-port-attribute", &["port_id", "path", "value"], &["unique"]),
    ("del-port-attribute", &["port_id", "path"], &[]),
    ("api-call", &["url"], &["headers", "proxies", "timeout", "retries", "backoff_factor"]),
];

/// What is served of inspection rules.
pub fn endpoints() -> Vec<Endpoint> {
    rows![
        GET "/v1/inspection_rules" 96 "baremetal:inspection_rule:list_all", "inspection rules" => list::list::<Rule>;
        POST "/v1/inspection_rules" 96 "baremetal:inspection_rule:create", "keep one; none is applied yet"
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

impl Rest for Rule {
    const SORT: Sort = Sort {
        kind: ResourceKind::InspectionRule,
        one: "a rule",
        word: "inspection_rule",
        path: "inspection_rules",
        list: "inspection_rules",
        since: 96,
        too_old: TooOld::Disallowed("inspection rules"),
        detail: Some(96),
        named: false,
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

    async fn settle(_: &Call, old: Option<&Resource>, new: Resource) -> Result<Resource, ApiError> {
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

    fn dress(_: &Call, rule: &Resource, view: &mut Map<String, Value>) {
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
    match value {
        Value::Array(items) if items.is_empty() => {
            let text = format!("Schema error for {what}: [] should be non-empty (field \"{name}\")");
            Err(ApiError::invalid(text))
        }
        value => operations(what, name, value, ACTIONS, false),
    }
}

fn conditions(what: &str, name: &str, value: &Value) -> Result<Value, ApiError> {
    operations(what, name, value, CONDITIONS, true)
}

/// A list of operations, each with the arguments that its operator wants. No value is quoted: it may be a secret.
fn operations(
    what: &str,
    name: &str,
    value: &Value,
    known: Operators,
    inverts: bool,
) -> Result<Value, ApiError> {
    let bad = |why: String| ApiError::invalid(format!("Schema error for {what}: {why} (field \"{name}\")"));
    let Value::Array(items) = value else { return Err(bad("it is not of type 'array'".to_owned())) };
    for item in items {
        let Value::Object(fields) = item else {
            return Err(bad("an item is not of type 'object'".to_owned()));
        };
        for key in ["op", "args"] {
            if !fields.contains_key(key) {
                return Err(bad(format!("'{key}' is a required property")));
            }
        }
        let op = fields["op"].as_str().unwrap_or_default();
        let plain = if inverts { op.strip_prefix('!').unwrap_or(op) } else { op };
        let Some((_, needs, takes)) = known.iter().find(|(known, ..)| *known == plain) else {
            let ops: Vec<_> = known.iter().map(|(op, ..)| format!("'{op}'")).collect();
            return Err(bad(format!("{} is not one of [{}]", python(&fields["op"]), ops.join(", "))));
        };
        match &fields["args"] {
            Value::Object(args) => {
                if let Some(missing) = needs.iter().find(|need| !args.contains_key(**need)) {
                    return Err(bad(format!("{plain}: missing required argument(s): {missing}")));
                }
                let strange =
                    |arg: &&String| !needs.contains(&arg.as_str()) && !takes.contains(&arg.as_str());
                if let Some(strange) = args.keys().find(strange) {
                    return Err(bad(format!("{plain}: unexpected argument(s): {strange}")));
                }
            }
            Value::Array(args) if args.len() < needs.len() => {
                let missing = needs[args.len()..].join(", ");
                return Err(bad(format!("{plain}: Not enough arguments provided. Missing: {missing}")));
            }
            Value::Array(_) => {}
            _ => return Err(bad(format!("{plain}: args must be either a list or dictionary"))),
        }
        if fields.get("loop").is_some_and(|items| !items.is_array() && !items.is_object()) {
            return Err(bad(format!("{plain}: loop is not of type 'array', 'object'")));
        }
        let multiple = fields.get("multiple").map(Value::as_str);
        if multiple.is_some_and(|how| !matches!(how, Some("any" | "all" | "first" | "last"))) {
            return Err(bad(format!("{plain}: multiple is not one of ['any', 'all', 'first', 'last']")));
        }
    }
    Ok(value.clone())
}

/// `DELETE /v1/inspection_rules`: all of them.
async fn clear(call: Call) -> Reply {
    Rule::SORT.exists(&call, 405)?;
    call.args.only(&[])?;
    for rule in call.app.store.resources(ResourceKind::InspectionRule, None).await? {
        let write = ResourceWrite::Delete(rule.kind, rule.uuid, rule.version);
        match call.app.store.write_resource(write, None).await {
            // Somebody else removed it, or wants it otherwise now.
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Stale(_)) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(empty(204, None))
}
