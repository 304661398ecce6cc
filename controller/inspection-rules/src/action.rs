//! Actions.

use crate::args::Args;
use crate::attribute::{Attributes, Kind};
use crate::budget::Budget;
use crate::findings::{Findings, Level, Note};
use crate::path;
use crate::python::{text, truth, type_name};
use crate::scope::Scope;
use crate::signature::{OperationError, Signature, named, turns};
use model::{Node, Resource, traits};
use serde_json::{Map, Value};

/// Longest text of a log line, in characters.
const LOG_MOST: usize = 1024;

/// Ironic's action that has the controller fetch a URL. With it the authors of rules, and by their templates every machine
/// that is inspected, could send requests from inside of the management network.
pub const API_CALL: &str = "api-call";

/// Why it is rejected.
pub fn no_api_call() -> String {
    format!("{API_CALL}: this controller makes no requests for inspection rules")
}

/// An action's name, arguments and what it does.
pub struct Action {
    /// Name and arguments.
    pub signature: Signature,
    run: fn(&mut Args, &mut Findings) -> Result<Option<Note>, OperationError>,
}

type Names = &'static [&'static str];

const fn action(
    op: &'static str,
    needs: Names,
    takes: Names,
    filled: Names,
    run: fn(&mut Args, &mut Findings) -> Result<Option<Note>, OperationError>,
) -> Action {
    Action { signature: Signature { op, needs, takes, filled }, run }
}

/// Every action, in Ironic's order; without [`API_CALL`].
pub const ACTIONS: [Action; 15] = [
    action("fail", &["msg"], &[], &[], |args, _| Err(OperationError(text(args.get("msg"), false)))),
    action("log", &["msg"], &["level"], &["msg"], log),
    action("set-attribute", &["path", "value"], &[], &["value"], |args, found| {
        let value = args.take("value");
        set(&mut found.node, args.text("path")?, value)
    }),
    action("extend-attribute", &["path", "value"], &["unique"], &["value"], |args, found| {
        let value = args.take("value");
        extend(&mut found.node, args.text("path")?, value, truth(args.get("unique")))
    }),
    action("del-attribute", &["path"], &[], &[], |args, found| delete(&mut found.node, args.text("path")?)),
    action("set-capability", &["name", "value"], &[], &["value"], |args, found| {
        capability(&mut found.node, args.text("name")?, Some(args.text("value")?))
    }),
    action("unset-capability", &["name"], &[], &[], |args, found| {
        capability(&mut found.node, args.text("name")?, None)
    }),
    action("add-trait", &["name"], &[], &[], add_trait),
    action("remove-trait", &["name"], &[], &[], |args, found| {
        found.node.traits.remove(args.text("name")?);
        Ok(None)
    }),
    action("set-plugin-data", &["path", "value"], &[], &["value"], |args, found| {
        let (value, parts) = (args.take("value"), data_parts(args.get("path"))?);
        path::set(plugin_data(found)?, &parts, value, true).map(|()| None)
    }),
    action("extend-plugin-data", &["path", "value"], &["unique"], &["value"], |args, found| {
        let (value, parts) = (args.take("value"), data_parts(args.get("path"))?);
        let unique = truth(args.get("unique"));
        path::extend(plugin_data(found)?, &parts, value, unique, (true, true)).map(|()| None)
    }),
    action("unset-plugin-data", &["path"], &[], &[], |args, found| {
        path::remove(plugin_data(found)?, &data_parts(args.get("path"))?);
        Ok(None)
    }),
    action("set-port-attribute", &["port_id", "path", "value"], &[], &["value"], |args, found| {
        let value = args.take("value");
        set(port(args, found)?, args.text("path")?, value)
    }),
    action("extend-port-attribute", &["port_id", "path", "value"], &["unique"], &["value"], |args, found| {
        let value = args.take("value");
        extend(port(args, found)?, args.text("path")?, value, truth(args.get("unique")))
    }),
    action("del-port-attribute", &["port_id", "path"], &[], &[], |args, found| {
        delete(port(args, found)?, args.text("path")?)
    }),
];

/// The action of this name.
pub fn find(op: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.signature.op == op)
}

/// Whether an action sets this key of `driver_info` whatever it finds: an action with a loop may have no turn.
pub fn sets_driver_info(action: &Value, key: &str) -> bool {
    let set = find("set-attribute").filter(|set| action["op"] == set.signature.op && turns(action).is_none());
    let args = set.and_then(|set| named(&set.signature, &action["args"]).ok()).unwrap_or_default();
    let path = args.get("path").and_then(Value::as_str).map(path::parts).unwrap_or_default();
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["driver_info"] => args.get("value").is_some_and(|value| value.get(key).is_some()),
        ["driver_info", found] => *found == key,
        _ => false,
    }
}

/// Do an action, each turn of its loop. What it wants to have logged is returned.
pub fn run(action: &Value, found: &mut Findings, budget: &Budget) -> Result<Vec<Note>, OperationError> {
    let op = action["op"].as_str().unwrap_or_default();
    if op == API_CALL {
        return Err(OperationError(no_api_call()));
    }
    let known = find(op).ok_or_else(|| OperationError("there is no such action".to_owned()))?;
    let items = match turns(action) {
        Some(items) => items.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut notes = Vec::new();
    for item in items {
        budget.operation()?;
        let scope = Scope { found, item, missing_is_none: false, budget };
        let mut args = Args::of(&known.signature, action, &scope)?;
        notes.extend((known.run)(&mut args, found)?);
    }
    Ok(notes)
}

fn log(args: &mut Args, _: &mut Findings) -> Result<Option<Note>, OperationError> {
    let level = if args.has("level") { args.text("level")? } else { "info" };
    let level = Level::of(level).ok_or_else(|| OperationError(Level::unknown()))?;
    let text = text(args.get("msg"), false).chars().take(LOG_MOST).collect();
    Ok(Some(Note { level, text }))
}

/// The attribute and the place within it.
fn place(path: &str) -> (String, Vec<String>) {
    let mut parts = path::parts(path).into_iter();
    (parts.next().unwrap_or_default(), parts.collect())
}

fn map<'a, T: Attributes>(
    of: &'a mut T,
    name: &str,
    path: &str,
) -> Result<&'a mut Map<String, Value>, OperationError> {
    let inside = || OperationError(format!("{path:?}: {name} has nothing inside"));
    if T::kind(name)? != Kind::Map { Err(inside()) } else { of.map(name).ok_or_else(inside) }
}

fn set<T: Attributes>(of: &mut T, path: &str, value: Value) -> Result<Option<Note>, OperationError> {
    let (name, inside) = place(path);
    match inside.as_slice() {
        [] => {
            // For its depth.
            path::set(&mut Map::new(), std::slice::from_ref(&name), value.clone(), false)?;
            of.set(&name, value)?;
        }
        inside => path::set(map(of, &name, path)?, inside, value, false)?,
    }
    Ok(None)
}

fn extend<T: Attributes>(
    of: &mut T,
    path: &str,
    value: Value,
    unique: bool,
) -> Result<Option<Note>, OperationError> {
    let (name, inside) = place(path);
    T::kind(&name)?;
    if inside.is_empty() {
        return Err(OperationError(format!("Cannot extend non-list attribute {path}")));
    }
    path::extend(map(of, &name, path)?, &inside, value, unique, (false, false)).map(|()| None)
}

fn delete<T: Attributes>(of: &mut T, path: &str) -> Result<Option<Note>, OperationError> {
    let (name, inside) = place(path);
    match (inside.as_slice(), T::kind(&name)?) {
        ([], _) => of.set(&name, Value::Null)?,
        (inside, _) if path::remove(map(of, &name, path)?, inside) => {}
        _ => return Err(OperationError(format!("Failed to delete attribute at {path}: it is not there"))),
    }
    Ok(None)
}

fn port<'a>(args: &Args, found: &'a mut Findings) -> Result<&'a mut Resource, OperationError> {
    let id = args.text("port_id")?;
    let found = found.ports.iter_mut().find(|port| port.uuid.to_string() == id);
    found.ok_or_else(|| OperationError("the node has no port of this port_id".to_owned()))
}

fn add_trait(args: &mut Args, found: &mut Findings) -> Result<Option<Note>, OperationError> {
    let name = args.text("name")?;
    if !traits::is_name(name) {
        return Err(OperationError("this is no name of a trait".to_owned()));
    }
    found.node.traits.insert(name.to_owned());
    if found.node.traits.len() > traits::MOST {
        return Err(OperationError(format!("a node has at most {} traits", traits::MOST)));
    }
    Ok(None)
}

/// Set or remove a capability. A capability has one value: Ironic adds another with each inspection.
fn capability(node: &mut Node, name: &str, value: Option<&str>) -> Result<Option<Note>, OperationError> {
    let sound = |text: &str| !text.is_empty() && !text.contains([',', ':']);
    if !sound(name) || value.is_some_and(|value| !sound(value)) {
        return Err(OperationError(
            "names and values of capabilities are texts without ',' and ':'".to_owned(),
        ));
    }
    let all = match node.properties.get("capabilities") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text.as_str(),
        Some(other) => {
            return Err(OperationError(format!("the capabilities are a {} and no text", type_name(other))));
        }
    };
    let is_it = |entry: &str| entry.split_once(':').is_some_and(|(key, _)| key.trim() == name);
    let mut entries: Vec<_> =
        all.split(',').filter(|entry| !entry.is_empty() && !is_it(entry)).map(str::to_owned).collect();
    entries.extend(value.map(|value| format!("{name}:{value}")));
    node.properties.insert("capabilities".to_owned(), entries.join(",").into());
    Ok(None)
}

fn plugin_data(found: &mut Findings) -> Result<&mut Map<String, Value>, OperationError> {
    match &mut found.plugin_data {
        Value::Object(fields) => Ok(fields),
        other => {
            *other = Value::Object(Map::new());
            other
                .as_object_mut()
                .ok_or_else(|| OperationError("the plugin data are no JSON object".to_owned()))
        }
    }
}

/// A place in plugin data: with dots, or its parts in a list.
fn data_parts(path: &Value) -> Result<Vec<String>, OperationError> {
    let bad = || OperationError("path is neither a text nor a list of texts".to_owned());
    match path {
        Value::String(path) => Ok(path.split('.').map(str::to_owned).collect()),
        Value::Array(parts) => {
            parts.iter().map(|part| part.as_str().map(str::to_owned).ok_or_else(bad)).collect()
        }
        _ => Err(bad()),
    }
}
