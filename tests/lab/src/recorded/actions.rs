//! Actions of a recorded tree: resets of its systems, and media of its virtual drives.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Refusal, Tree};

/// Parameters of an insertion (DSP0268), which are also the properties that a PATCH inserts with.
pub(super) const PARAMETERS: &[&str] = &[
    "Image",
    "Inserted",
    "WriteProtected",
    "UserName",
    "Password",
    "TransferProtocolType",
    "TransferMethod",
];

const INSERT: &str = "#VirtualMedia.InsertMedia";
const EJECT: &str = "#VirtualMedia.EjectMedia";

/// Drives of Lenovo that are for its own remote console, and take no URL.
const CONSOLE_DRIVES: [&str; 2] = ["RDOC", "Remote"];

/// Does what is posted to a target.
pub(super) fn act(tree: &mut Tree, target: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
    let Some((path, name)) = tree.action(target) else {
        return Err(Refusal::new(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "there is no such action"));
    };
    match name.as_str() {
        "#ComputerSystem.Reset" => reset(tree, &path, body),
        INSERT => {
            allows(tree, &path, &name, body, PARAMETERS)?;
            insert(tree, &path, body)
        }
        EJECT => eject(tree, &path),
        other => Err(Refusal::bad("ActionNotSupported", format!("{other} is not played"))),
    }
}

/// Whether an action takes these parameters: those of its ActionInfo, else those of the schema, with the values that are named.
fn allows(
    tree: &Tree,
    path: &str,
    name: &str,
    body: &Map<String, Value>,
    schema: &[&str],
) -> Result<(), Refusal> {
    let action = &tree.get(path).unwrap_or(&Value::Null)["Actions"][name];
    let info = action["@Redfish.ActionInfo"].as_str().and_then(|info| tree.get(info));
    let parameters = info.and_then(|info| info["Parameters"].as_array());
    let unknown = |parameter: &String| match parameters {
        Some(list) => !list.iter().any(|known| known["Name"] == parameter.as_str()),
        None => !schema.contains(&parameter.as_str()),
    };
    if let Some(parameter) = body.keys().find(|parameter| unknown(parameter)) {
        return Err(Refusal::bad("ActionParameterUnknown", format!("there is no parameter {parameter}")));
    }
    let required = parameters.into_iter().flatten().filter(|known| known["Required"] == true);
    let mut required = required.filter_map(|known| known["Name"].as_str());
    if let Some(lacking) = required.find(|name| !body.contains_key(*name)) {
        return Err(Refusal::bad("ActionParameterMissing", format!("the parameter {lacking} is missing")));
    }
    for (parameter, value) in body {
        let named = parameters.into_iter().flatten().find(|known| known["Name"] == parameter.as_str());
        let named = named.and_then(|known| known["AllowableValues"].as_array());
        let list = action[format!("{parameter}@Redfish.AllowableValues")].as_array();
        if list.or(named).is_some_and(|allowed| !allowed.contains(value)) {
            let message = format!("{parameter} cannot be {value}");
            return Err(Refusal::bad("ActionParameterValueNotInList", message));
        }
    }
    Ok(())
}

fn reset(tree: &mut Tree, path: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(kind) = body.get("ResetType").and_then(Value::as_str) else {
        return Err(Refusal::bad("ActionParameterMissing", "the parameter ResetType is missing"));
    };
    allows(tree, path, "#ComputerSystem.Reset", body, &["ResetType"])?;
    let is_on = tree.get(path).is_some_and(|system| system["PowerState"] == "On");
    let power = match (kind, is_on) {
        ("On" | "ForceOn", false) | ("PushPowerButton", false) => Some("On"),
        ("ForceRestart" | "GracefulRestart" | "PowerCycle", true) => Some("On"),
        ("ForceOff" | "GracefulShutdown" | "PushPowerButton", true) => Some("Off"),
        ("Nmi", true) | ("On" | "ForceOn", true) | ("ForceOff", false) => None,
        _ => {
            let message = format!("{kind}: the system is {}", if is_on { "on" } else { "off" });
            return Err(Refusal::new(StatusCode::CONFLICT, "ActionNotSupported", message));
        }
    };
    if let Some(power) = power {
        tree.change(path, |system| system["PowerState"] = json!(power));
        if power == "On" {
            tree.boot(path);
        }
    }
    Ok(())
}

fn insert(tree: &mut Tree, path: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
    let drive = tree.get(path).cloned().unwrap_or_default();
    let Some(url) = body.get("Image").and_then(Value::as_str).filter(|url| url.contains("://")) else {
        return Err(Refusal::bad("ActionParameterMissing", "the parameter Image is missing"));
    };
    let id = path.rsplit('/').next().unwrap_or_default();
    if CONSOLE_DRIVES.iter().any(|console| id.starts_with(console)) {
        let message = format!("{id} takes no URL");
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "ActionNotSupported", message));
    }
    if drive["Inserted"] == true {
        return Err(Refusal::new(StatusCode::CONFLICT, "ResourceInUse", "a medium is inserted"));
    }
    let name = url.rsplit('/').next().unwrap_or_default().to_owned();
    tree.change(path, |drive| {
        drive["Image"] = json!(url);
        drive["ImageName"] = json!(name);
        drive["Inserted"] = json!(true);
        drive["ConnectedVia"] = json!("URI");
    });
    // Supermicro's BMCs show the ejection while there is something to eject.
    let insert = drive["Actions"][INSERT]["target"].as_str();
    if let Some(insert) = insert.filter(|_| drive["Actions"].get(EJECT).is_none()) {
        tree.offer(path, EJECT, Some(&insert.replace("InsertMedia", "EjectMedia")));
    }
    Ok(())
}

fn eject(tree: &mut Tree, path: &str) -> Result<(), Refusal> {
    if tree.get(path).is_none_or(|drive| drive["Inserted"] != true) {
        return Err(Refusal::new(StatusCode::CONFLICT, "GeneralError", "nothing is inserted"));
    }
    tree.change(path, |drive| {
        drive["Image"] = Value::Null;
        drive["ImageName"] = Value::Null;
        drive["Inserted"] = json!(false);
        drive["ConnectedVia"] = json!("NotConnected");
    });
    if !tree.was_recorded_with(path, EJECT) {
        tree.offer(path, EJECT, None);
    }
    Ok(())
}

/// Drives without actions are changed by PATCH.
pub(super) fn media_by_patch(
    tree: &mut Tree,
    path: &str,
    change: &Map<String, Value>,
) -> Result<(), Refusal> {
    let drive = tree.get(path).unwrap_or(&Value::Null);
    if drive["Actions"].get(INSERT).is_some() {
        return Err(Refusal::bad("PropertyNotWritable", "media are changed by actions"));
    }
    match change.get("Image") {
        Some(Value::Null) => eject(tree, path),
        _ => insert(tree, path, change),
    }
}
