//! `GET /v1/nodes/{ident}/firmware`: versions of the node's firmware, as the last inspection found them.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::format::iso;
use crate::shown;
use axum::extract::Path;
use model::inventory::Inventory;
use serde_json::{Map, Value, json};

const FIELDS: [&str; 4] = ["component", "initial_version", "current_version", "last_version_flashed"];

/// Fields that came with 1.114.
const IDENTITY: [&str; 3] = ["vendor", "model", "serial_number"];

/// `GET …/firmware[?fields=]`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(86)?;
    call.args.only(&["detail", "fields"])?;
    let node = call.node(&ident).await?;
    let known: Vec<_> = FIELDS
        .into_iter()
        .chain(if call.version.has(114) { &IDENTITY[..] } else { &[] }.iter().copied())
        .collect();
    let check = |wanted: &[String]| {
        let is_early = |name: &&str| !known.contains(name) && wanted.iter().any(|wanted| wanted == name);
        let early: Vec<_> = IDENTITY.into_iter().filter(is_early).collect();
        if !early.is_empty() {
            return Err(ApiError::invalid(format!(
                "Fields {} are not allowed in this API version. They require at least API version 1.114.",
                early.join(", ")
            )));
        }
        shown::check_known(wanted, |name| {
            ["created_at", "updated_at"].contains(&name) || known.contains(&name)
        })
    };
    let wanted = shown::in_list(&call, Some(86), &known, check)?;
    let found = call.app.store.inventory(node.uuid).await?;
    let components: Vec<_> = found
        .iter()
        .flat_map(components)
        .map(|mut component| {
            component.retain(|name, _| {
                let is_wanted =
                    wanted.as_ref().map_or(known.contains(&name.as_str()), |wanted| wanted.contains(name));
                name.ends_with("_at") || is_wanted
            });
            component
        })
        .collect();
    Ok(json(200, &json!({ "firmware": components })))
}

/// The firmware in an inventory: that of the mainboard (`bios`).
fn components(found: &Inventory) -> Vec<Map<String, Value>> {
    let text = |path: &str| {
        let text = found.inventory.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.map_or(Value::Null, Value::from)
    };
    let version = text("/system_vendor/firmware/version");
    if version.is_null() {
        return Vec::new();
    }
    let bios = [
        ("created_at", Value::String(iso(found.at))),
        ("updated_at", Value::Null),
        ("component", "bios".into()),
        ("initial_version", version.clone()),
        ("current_version", version),
        ("last_version_flashed", Value::Null),
        ("vendor", text("/system_vendor/firmware/vendor")),
        ("model", Value::Null),
        ("serial_number", Value::Null),
    ];
    vec![bios.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()]
}
