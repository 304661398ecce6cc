//! `/v1/nodes/{ident}/bios`: the firmware's settings, asked of the BMC at the moment (Ironic shows those it has
//! stored after the last cleaning).

use super::validation;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use agent_protocol::lookup::MASKED;
use axum::extract::Path;
use model::Node;
use model::mask::is_secret;
use serde_json::{Map, Value, json};

/// Fields of a setting since 1.74. Those beside name and value come of the BIOS attribute registry, which is not
/// read here: null.
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
    let detail = call.args.boolean("detail")?.unwrap_or(false);
    let wanted = call.args.list("fields");
    let node = call.node(&ident).await?;
    let fields: Vec<&str> = match &wanted {
        Some(_) if detail => {
            return Err(ApiError::invalid("Can not specify ?detail=True and fields in the same request."));
        }
        Some(wanted) => {
            let unknown: Vec<_> = wanted
                .iter()
                .map(String::as_str)
                .filter(|name| {
                    !FIELDS.contains(name) && !["created_at", "updated_at", "links"].contains(name)
                })
                .collect();
            if !unknown.is_empty() {
                return Err(ApiError::invalid(format!("Field(s) \"{}\" are not valid", unknown.join(", "))));
            }
            wanted.iter().map(String::as_str).collect()
        }
        None if detail => FIELDS.to_vec(),
        None => FIELDS[..2].to_vec(),
    };
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
