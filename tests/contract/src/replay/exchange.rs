//! What is compared of one exchange.

use super::compare::{Difference, compare};
use super::conversation::Exchange;
use super::http::Answer;
use super::names::Names;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What changes while a node is in a state that it leaves by itself.
const MOVING: [&str; 11] = [
    "clean_step",
    "deploy_step",
    "driver_internal_info",
    "instance_info",
    "power_state",
    "provision_state",
    "provision_updated_at",
    "reservation",
    "service_step",
    "target_provision_state",
    "updated_at",
];

/// That ours does not ask the agent what Ironic's conductor asked it.
pub fn unasked(method: &Value) -> Difference {
    Difference { at: "/request".into(), theirs: method.clone(), ours: json!("(absent)") }
}

/// Ironic sends the row of its database, ours what an agent reads: what both send is compared.
pub fn in_common(theirs: &mut Value, ours: &mut Value) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            theirs.retain(|key, _| ours.contains_key(key));
            ours.retain(|key, _| theirs.contains_key(key));
            for (key, value) in theirs {
                in_common(value, &mut ours[key]);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.iter_mut().zip(ours).for_each(|(theirs, ours)| in_common(theirs, ours));
        }
        _ => {}
    }
}

/// Where our answer is not the recorded one. `passing`: of a node that is on its way.
pub fn differences(line: &Exchange, ours: &Answer, passing: bool, names: &mut Names) -> Vec<Difference> {
    let mut found = Vec::new();
    let (mut theirs, mut body) = (line.answer.clone(), ours.body.clone());
    // A lock that Ironic's conductor happened to hold.
    let locked = theirs["reservation"].is_string();
    if let (Some(theirs), Some(ours)) = (theirs.as_object_mut(), body.as_object_mut()) {
        for field in MOVING.into_iter().filter(|field| passing || (locked && *field == "reservation")) {
            if theirs.contains_key(field) && ours.remove(field).is_some() {
                theirs.remove(field);
            }
        }
    }
    compare(&json!(line.status), &json!(ours.status), "/status", names, &mut found);
    if line.status.is_some_and(|status| (status < 400) != (ours.status < 400)) {
        // A success and an error have no field in common.
        return found;
    }
    // Before the headers: a new UUID is learnt from the body, where it stands alone.
    compare(&theirs, &body, "/body", names, &mut found);
    let kept: BTreeMap<_, _> =
        line.headers.keys().filter_map(|name| ours.headers.get_key_value(name)).collect();
    compare(&json!(line.headers), &json!(kept), "/headers", names, &mut found);
    found
}
