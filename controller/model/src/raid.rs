//! RAID as in Ironic: which target configurations are valid (`target_raid_config`), which logical disks a step is to make,
//! and how its result changes the node (`raid_config`).

use crate::node::Node;
use crate::step::{Argument, CatalogueStep, PlannedStep};
use serde_json::{Map, Value, json};

/// Field of a node, and key of `driver_internal_info`: the logical disks that a step is to make.
pub const TARGET: &str = "target_raid_config";
/// Field of a node: its logical disks, as reported by the step that made them.
pub const CURRENT: &str = "raid_config";
/// Flags of `create_configuration` that the controller itself evaluates, with their descriptions.
const FLAGS: [(&str, &str); 2] = [
    ("create_root_volume", "Whether to make the root volume; true without it."),
    ("create_nonroot_volumes", "Whether to make the other volumes; true without it."),
];

const LEVELS: [&str; 9] = ["JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"];

/// How a step changes the logical disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Make those of the node's target.
    Create,
    /// Make those of its argument.
    Apply,
    /// Remove all.
    Delete,
}

impl Work {
    fn of(step: &CatalogueStep) -> Option<Self> {
        match (step.interface.as_str(), step.step.as_str()) {
            ("raid", "create_configuration") => Some(Self::Create),
            ("raid", "apply_configuration") => Some(Self::Apply),
            ("raid", "delete_configuration") => Some(Self::Delete),
            _ => None,
        }
    }
}

/// Whether a configuration is one that may be asked for (Ironic's schema of it).
///
/// # Errors
/// Why it is not.
pub fn check(config: &Map<String, Value>) -> Result<(), String> {
    let Some(disks) = config.get("logical_disks") else {
        return Err("'logical_disks' is a required property".into());
    };
    if let Some(stranger) = config.keys().find(|name| *name != "logical_disks") {
        return Err(format!("Additional properties are not allowed ('{stranger}' was unexpected)"));
    }
    let disks = disks.as_array().ok_or_else(|| format!("{} is not of type 'array'", quoted(disks)))?;
    if disks.is_empty() {
        return Err("[] should be non-empty".into());
    }
    for disk in disks {
        let fields = disk.as_object().ok_or_else(|| format!("{} is not of type 'object'", quoted(disk)))?;
        check_disk(fields)?;
    }
    root(disks).map(drop)
}

fn check_disk(disk: &Map<String, Value>) -> Result<(), String> {
    for name in ["raid_level", "size_gb"] {
        if !disk.contains_key(name) {
            return Err(format!("'{name}' is a required property"));
        }
    }
    for (name, value) in disk {
        let word = |words: &[&str]| value.as_str().is_some_and(|text| words.contains(&text));
        let all = |is: fn(&Value) -> bool, least: usize| {
            value.as_array().is_some_and(|items| items.len() >= least && items.iter().all(is))
        };
        let sound = match name.as_str() {
            "raid_level" => word(&LEVELS),
            "size_gb" => value.as_u64().is_some() || word(&["MAX"]),
            "volume_name" | "controller" => value.is_string(),
            "is_root_volume" | "share_physical_disks" => value.is_boolean(),
            "disk_type" => word(&["hdd", "ssd"]),
            "interface_type" => word(&["sata", "scsi", "sas"]),
            "number_of_physical_disks" => value.as_u64().is_some_and(|number| number > 0),
            "physical_disks" => all(Value::is_string, 0) || all(Value::is_object, 2),
            _ => return Err(format!("Additional properties are not allowed ('{name}' was unexpected)")),
        };
        if !sound {
            return Err(format!("{} is not a valid {name}", quoted(value)));
        }
    }
    if disk.contains_key("physical_disks") && !disk.contains_key("controller") {
        return Err("'controller' is a dependency of 'physical_disks'".into());
    }
    Ok(())
}

fn is_root(disk: &Value) -> bool {
    disk.get("is_root_volume") == Some(&Value::Bool(true))
}

/// The root volume, if there is one; more are too many.
fn root(disks: &[Value]) -> Result<Option<&Value>, String> {
    let roots: Vec<_> = disks.iter().filter(|disk| is_root(disk)).collect();
    match roots.as_slice() {
        [] => Ok(None),
        [root] => Ok(Some(root)),
        several => Err(format!(
            "Raid config cannot have more than one root volume. {} root volumes were specified",
            several.len()
        )),
    }
}

/// A value in a message: its beginning, and nothing of what may hold a secret.
fn quoted(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        Value::String(text) => format!("'{}'", text.chars().take(200).collect::<String>()),
        other => other.to_string(),
    }
}

/// Whether this is a step of an agent that makes the target of its node. A manager whose step takes the configuration as
/// an argument needs no target.
pub fn makes_target(step: &CatalogueStep) -> bool {
    Work::of(step) == Some(Work::Create) && step.in_band && !step.args.contains_key(CURRENT)
}

/// Offer the flags of Ironic's `create_configuration`, which agents need not know of: what they leave out is not asked of
/// the agent.
pub fn offer_flags(step: &mut CatalogueStep) {
    if !makes_target(step) {
        return;
    }
    for (name, description) in FLAGS {
        step.args.entry(name.to_owned()).or_insert_with(|| Argument {
            description: description.to_owned(),
            required: false,
            schema: Some(json!({"type": "boolean"})),
        });
    }
}

/// The step as it is sent to the agent: without the flags that only the controller evaluates.
pub fn wire(step: &PlannedStep) -> Map<String, Value> {
    let mut wire = step.wire();
    if makes_target(&step.step)
        && let Some(Value::Object(args)) = wire.get_mut("args")
    {
        let declared = step.step.raw.get("argsinfo").and_then(Value::as_object);
        let knows = |name: &str| declared.is_some_and(|declared| declared.contains_key(name));
        args.retain(|name, _| knows(name) || FLAGS.iter().all(|(flag, _)| flag != name));
        if args.is_empty() {
            wire.remove("args");
        }
    }
    wire
}

/// What the agent is to make when it runs `step`: the target of the node without what the flags of the step leave out.
/// `None` of a step that does not make it.
///
/// # Errors
/// Why the step cannot be run: nothing is to be made, or what is asked for is no configuration.
pub fn wanted(node: &Node, step: &PlannedStep) -> Result<Option<Map<String, Value>>, String> {
    if Work::of(&step.step) == Some(Work::Apply) && step.step.in_band {
        let given = step.given.get(CURRENT).and_then(Value::as_object).ok_or("raid_config is not an object");
        let checked = given.map_err(str::to_owned).and_then(check);
        checked.map_err(|why| format!("RAID config validation error: {why}"))?;
    }
    makes_target(&step.step).then(|| filtered(node, step)).transpose()
}

fn filtered(node: &Node, step: &PlannedStep) -> Result<Map<String, Value>, String> {
    let flag = |name: &str| match step.given.get(name) {
        None => Ok(true),
        Some(Value::Bool(given)) => Ok(*given),
        Some(other) => Err(format!("argument {name} is {}; it must be true or false", quoted(other))),
    };
    let [(root, _), (nonroot, _)] = FLAGS;
    let (root, nonroot) = (flag(root)?, flag(nonroot)?);
    let target = node.other.get(TARGET).and_then(Value::as_object).filter(|target| !target.is_empty());
    let mut target =
        target.cloned().ok_or_else(|| format!("Node {} has no target RAID configuration.", node.uuid))?;
    let mut left = 0;
    if let Some(Value::Array(disks)) = target.get_mut("logical_disks") {
        disks.retain(|disk| if is_root(disk) { root } else { nonroot });
        left = disks.len();
    }
    if left > 0 {
        return Ok(target);
    }
    let skipped = [(root, "skipping root volume"), (nonroot, "skipping non-root volumes")];
    let skipped: Vec<_> = skipped.iter().filter(|(made, _)| !made).map(|(_, what)| *what).collect();
    Err(format!("Node {} has empty target RAID configuration after {}.", node.uuid, skipped.join(" and ")))
}

/// Store in the node what a successful step has made. `result` is its result, `at` the time in Python's form. A step that
/// neither makes nor removes logical disks changes nothing.
///
/// # Errors
/// The result does not report what was made, or does not fit the node. The node is not changed then.
pub fn record_result(node: &mut Node, step: &PlannedStep, result: &Value, at: &str) -> Result<(), String> {
    match Work::of(&step.step) {
        Some(Work::Create | Work::Apply) => record_disks(node, result, at),
        Some(Work::Delete) => {
            node.other.remove(CURRENT);
            node.properties.remove("root_device");
            Ok(())
        }
        None => Ok(()),
    }
}

fn record_disks(node: &mut Node, result: &Value, at: &str) -> Result<(), String> {
    let disks = result.get("logical_disks").and_then(Value::as_array);
    let (Some(config), Some(disks)) = (result.as_object(), disks) else {
        return Err(
            "it was reported as a success, but its result has no list \"logical_disks\" of what was made"
                .into(),
        );
    };
    if let Some(other) = disks.iter().find(|disk| !disk.is_object()) {
        return Err(format!("it reported a logical disk that is none: {}", quoted(other)));
    }
    let mut properties = node.properties.clone();
    if let Some(root) = root(disks).map_err(|why| format!("its result cannot be used: {why}"))? {
        describe(&mut properties, root).map_err(|why| format!("it reported a root volume {why}"))?;
    }
    let mut config = config.clone();
    config.insert("last_updated".into(), at.into());
    node.other.insert(CURRENT.into(), Value::Object(config));
    node.properties = properties;
    Ok(())
}

/// The properties of a node whose operating system is on this volume.
fn describe(properties: &mut Map<String, Value>, root: &Value) -> Result<(), String> {
    let field = |name: &str| root.get(name).unwrap_or(&Value::Null);
    let (size, level, hint) = (field("size_gb"), field("raid_level"), field("root_device_hint"));
    if *size != "MAX" {
        let gib = size.as_u64().or_else(|| size.as_str()?.trim().parse().ok());
        let gib = gib.ok_or_else(|| format!("whose size_gb is {}", quoted(size)))?;
        properties.insert("local_gb".into(), gib.into());
    }
    match hint {
        Value::Null => {}
        Value::Object(_) => drop(properties.insert("root_device".into(), hint.clone())),
        other => return Err(format!("whose root_device_hint is {}", quoted(other))),
    }
    let level = level.as_str().filter(|level| !level.is_empty() && !level.contains([',', ':']));
    let level = level.ok_or_else(|| format!("whose raid_level is {}", quoted(field("raid_level"))))?;
    let known = properties.get("capabilities").cloned().unwrap_or_default();
    let updated = with_capability(&known, "raid_level", level)?;
    properties.insert("capabilities".into(), updated.into());
    Ok(())
}

/// `a:b,c:d` with another pair, or with another value of it.
fn with_capability(known: &Value, name: &str, value: &str) -> Result<String, String> {
    let malformed = || format!("while properties/capabilities of the node are {}", quoted(known));
    let known = match known {
        Value::Null => "",
        Value::String(text) => text.as_str(),
        _ => return Err(malformed()),
    };
    let mut pairs = Vec::new();
    for pair in known.split(',').filter(|_| !known.is_empty()) {
        pairs.push(pair.split_once(':').ok_or_else(malformed)?);
    }
    match pairs.iter_mut().find(|(key, _)| *key == name) {
        Some(pair) => pair.1 = value,
        None => pairs.push((name, value)),
    }
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(pairs.join(","))
}

#[cfg(test)]
#[path = "raid_tests.rs"]
mod tests;
