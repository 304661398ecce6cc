//! `/v1/nodes/{ident}/bios`: the firmware's settings, read from the BMC now (Ironic shows those that it stored
//! after the last cleaning).

use super::validation;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::shown;
use agent_protocol::lookup::MASKED;
use axum::extract::Path;
use model::Node;
use model::mask::is_secret;
use serde_json::{Map, Value, json};

/// Fields of a setting since 1.74. All but name and value come from the BIOS attribute registry, which is not read
/// here: null.
const FIELDS: [&str; 11] = [
    "name",
    "value",
    "attribute_type",
    "allowable_values",
    "lower_bound",
    "max_length",
    "min_length",
    "read_only",
    "reset_required",
    "unique",
    "upper_bound",
];

/// `GET …/bios[?detail=][&fields=]`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(40)?;
    call.args.only(if call.version.has(74) { &["detail", "fields"] } else { &[] })?;
    let is_known =
        |name: &str| FIELDS.contains(&name) || ["created_at", "updated_at", "links"].contains(&name);
    let check = |wanted: &[String]| shown::check_known(wanted, is_known);
    let wanted = shown::in_list(&call, Some(74), &FIELDS[..2], check)?;
    let node = call.node(&ident).await?;
    let fields =
        wanted.as_ref().map_or(FIELDS.to_vec(), |wanted| wanted.iter().map(String::as_str).collect());
    let settings = settings(&call, &node).await?;
    let shown: Vec<_> =
        settings.iter().map(|(name, value)| view(&call, &ident, name, value, &fields)).collect();
    Ok(json(200, &json!({ "bios": shown })))
}

/// `GET …/bios/{setting}`.
pub async fn show(Path((ident, setting)): Path<(String, String)>, call: Call) -> Reply {
    call.version.has_path(40)?;
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let settings = settings(&call, &node).await?;
    let value = settings.get(&setting).ok_or_else(|| {
        ApiError::client(404, format!("Node {} doesn't have a BIOS setting '{setting}'", node.uuid))
    })?;
    let fields = if call.version.has(74) { &FIELDS[..] } else { &FIELDS[..2] };
    let mut body = Map::new();
    body.insert(setting.clone(), view(&call, &node.uuid.to_string(), &setting, value, fields));
    Ok(json(200, &Value::Object(body)))
}

async fn settings(call: &Call, node: &Node) -> Result<Map<String, Value>, ApiError> {
    match validation::interface(&call.app, node, "bios") {
        Some(used) if !used.starts_with("no-") => Ok(call.app.drivers.bios_settings(node).await?),
        _ => Ok(Map::new()),
    }
}

fn view(call: &Call, ident: &str, name: &str, value: &Value, fields: &[&str]) -> Value {
    let mut shown = Map::new();
    shown.insert("created_at".into(), iso(call.now()).into());
    shown.insert("updated_at".into(), Value::Null);
    for field in FIELDS.into_iter().filter(|field| fields.contains(field)) {
        shown.insert(
            field.into(),
            match field {
                "name" => name.into(),
                "value" => text(name, value),
                _ => Value::Null,
            },
        );
    }
    shown.insert("links".into(), call.links.pair(&format!("nodes/{ident}/bios/{name}")));
    Value::Object(shown)
}

/// Values are texts in Ironic, written as Python does.
fn text(name: &str, value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        _ if is_secret(name) => MASKED.into(),
        Value::String(text) => text.as_str().into(),
        other => crate::body::python(other).into(),
    }
}
