//! PATCH of a recorded resource: only what it shows, only values it names, only under its ETag.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::tree::merge;
use super::{Refusal, Tree, actions};

const APPLY_TIME: &str = "@Redfish.SettingsApplyTime";

/// What clients may change, by kind of resource (DSP0268: properties that are not read-only).
fn writable(kind: &str) -> &'static [&'static str] {
    match kind {
        "ComputerSystem" => &["Boot", "IndicatorLED", "LocationIndicatorActive", "AssetTag"],
        "Bios" => &["Attributes"],
        "SecureBoot" => &["SecureBootEnable"],
        "VirtualMedia" => actions::PARAMETERS,
        _ => &[],
    }
}

/// Name of a schema: `#ComputerSystem.v1_17_0.ComputerSystem` is `ComputerSystem`.
fn kind(resource: &Value) -> &str {
    let name = resource["@odata.type"].as_str().unwrap_or_default();
    name.trim_start_matches('#').split('.').next().unwrap_or_default()
}

/// Makes a change, or none.
pub(super) fn apply(
    tree: &mut Tree,
    path: &str,
    tag: Option<&str>,
    body: &Map<String, Value>,
) -> Result<(), Refusal> {
    let resource = tree.get(path).cloned().unwrap_or_default();
    matches_tag(&resource, tag)?;
    // A settings object may show less than the resource that it is for.
    let main_path = tree.is_pending_for(path).map(str::to_owned);
    let main = main_path.as_deref().and_then(|main| tree.get(main)).cloned();
    let waiting = tree.pending_of(path).map(|(_, waiting)| waiting.clone());
    let mut change = body.clone();
    if let Some(time) = change.remove(APPLY_TIME) {
        applies_at(main.as_ref(), &time)?;
    }
    let kind = kind(main.as_ref().unwrap_or(&resource)).to_owned();
    for (name, value) in &change {
        if !writable(&kind).contains(&name.as_str()) {
            return Err(Refusal::bad("PropertyNotWritable", format!("{name} cannot be changed")));
        }
        if let Some(waiting) = &waiting {
            not_in_settings_object(name, value, waiting, &kind)?;
        }
        if kind != "Bios" {
            fits(name, value, &resource, main.as_ref())?;
        }
    }
    match kind.as_str() {
        "VirtualMedia" => return actions::media_by_patch(tree, path, &change),
        "Bios" => {
            let settings = change["Attributes"].as_object().cloned();
            let settings =
                settings.ok_or_else(|| Refusal::bad("PropertyMissing", "Attributes is no object"))?;
            tree.allows_settings(main.as_ref().unwrap_or(&resource), &settings)?;
        }
        _ => {}
    }
    let change = Value::Object(change);
    tree.wait(path, &change);
    tree.change(path, |resource| merge(resource, &change));
    Ok(())
}

/// A resource with an ETag is changed under that only. Weak ones are taken as they were given.
fn matches_tag(resource: &Value, tag: Option<&str>) -> Result<(), Refusal> {
    let bare = |tag: &str| tag.trim_start_matches("W/").trim_matches('"').to_owned();
    match (resource["@odata.etag"].as_str(), tag) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(Refusal::new(
            StatusCode::PRECONDITION_REQUIRED,
            "PreconditionRequired",
            "If-Match is missing",
        )),
        (Some(_), Some("*")) => Ok(()),
        (Some(now), Some(tag)) if bare(now) == bare(tag) => Ok(()),
        (Some(_), Some(_)) => Err(Refusal::new(
            StatusCode::PRECONDITION_FAILED,
            "PreconditionFailed",
            "If-Match does not match",
        )),
    }
}

fn applies_at(main: Option<&Value>, time: &Value) -> Result<(), Refusal> {
    let times = main.and_then(|main| main["@Redfish.Settings"]["SupportedApplyTimes"].as_array());
    if times.is_some_and(|times| times.contains(&time["ApplyTime"])) {
        return Ok(());
    }
    Err(Refusal::bad("PropertyUnknown", format!("{APPLY_TIME} cannot be {time}")))
}

/// What a settings object holds is changed there, and not in the resource that it is for.
fn not_in_settings_object(name: &str, value: &Value, waiting: &Value, kind: &str) -> Result<(), Refusal> {
    let Some(held) = waiting.get(name) else {
        let refused = kind == "Bios";
        let message =
            || Refusal::bad("PropertyNotWritable", format!("{name} is changed in the settings object"));
        return if refused { Err(message()) } else { Ok(()) };
    };
    let inner = value.as_object().into_iter().flatten().find(|(inner, _)| held.get(inner.as_str()).is_some());
    match (inner, kind) {
        (None, "ComputerSystem") => Ok(()),
        (inner, _) => {
            let inner = inner.map(|(inner, _)| format!("/{inner}")).unwrap_or_default();
            let message = format!("{name}{inner} is changed in the settings object");
            Err(Refusal::bad("PropertyNotWritable", message))
        }
    }
}

/// Whether a property is there and takes a value, within objects too.
fn fits(name: &str, value: &Value, resource: &Value, main: Option<&Value>) -> Result<(), Refusal> {
    let shown = resource.get(name);
    let shown_by_main = main.and_then(|main| main.get(name));
    let Some(now) = shown.or(shown_by_main) else {
        return Err(Refusal::bad("PropertyUnknown", format!("there is no property {name}")));
    };
    if let Some(object) = value.as_object() {
        return object.iter().try_for_each(|(inner, value)| fits(inner, value, now, shown_by_main));
    }
    if !value.is_null() && !now.is_null() && std::mem::discriminant(now) != std::mem::discriminant(value) {
        return Err(Refusal::bad("PropertyValueTypeError", format!("{name} cannot be {value}")));
    }
    let list = format!("{name}@Redfish.AllowableValues");
    let allowed = main.and_then(|main| main.get(&list)).or_else(|| resource.get(&list));
    match allowed.and_then(Value::as_array) {
        Some(allowed) if !allowed.contains(value) => {
            Err(Refusal::bad("PropertyValueNotInList", format!("{name} cannot be {value}")))
        }
        _ => Ok(()),
    }
}
