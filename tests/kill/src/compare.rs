//! Whether a story with a kill in it ended as the undisturbed one. Pure.
//!
//! What may differ, and nothing else:
//! - ids, times, addresses: of every run its own;
//! - a step of the controller that may be repeated was begun again (`begins` stands twice);
//! - a step that may not be repeated was interrupted: its run failed with that reason, an operator began it anew,
//!   and the story without that run is the undisturbed one.

use crate::play::{REASON, RunRecord};
use serde_json::Value;

/// What is different; empty when nothing is that may not be.
pub fn differences(undisturbed: &RunRecord, killed: &RunRecord) -> Vec<String> {
    let mut found = Vec::new();
    if killed.journal != undisturbed.journal {
        found.push(format!("the machine did {:?}, not {:?}", killed.journal, undisturbed.journal));
    }
    let expected = events(&undisturbed.history);
    let mut happened = events(&killed.history);
    if let Some(why) = &killed.interrupted {
        match without_failed_run(&happened, &expected, &scrub(why)) {
            Ok(rest) => happened = rest,
            Err(why) => found.push(why),
        }
    }
    found.extend(in_order(&expected, &happened));
    paths("node", &plain(&undisturbed.node), &plain(&killed.node), &mut found);
    found
}

/// The history as lines, what is of every run its own taken out.
fn events(history: &[Value]) -> Vec<String> {
    let line = |event: &Value| {
        let text = |key: &str| event[key].as_str().unwrap_or("-");
        let event_text = scrub(text("event"));
        let event_text = event_text.rsplit_once(" (<uuid>").map_or(event_text.as_str(), |(start, _)| start);
        format!(
            "{} {} [{} to {}] {event_text}",
            text("severity"),
            text("event_type"),
            text("state"),
            text("target_provision_state")
        )
    };
    history.iter().map(line).collect()
}

/// Event for event, but for steps of the controller that were begun again.
fn in_order(expected: &[String], happened: &[String]) -> Vec<String> {
    let mut left = expected.iter().peekable();
    let mut begun = None;
    for event in happened {
        // A step begun again may be in another state: its first event comes before the change to it.
        let step = event.split_once("] step ").map(|(_, step)| step);
        if left.peek() == Some(&event) {
            left.next();
        } else if !step.is_some_and(|step| step.ends_with(" begins") && begun == Some(step)) {
            let wanted = left.peek().map_or("the end", |wanted| wanted.as_str());
            return vec![format!("history: {event:?}, where {wanted:?} was to come")];
        }
        begun = step.or(begun);
    }
    left.map(|missing| format!("history: {missing:?} is missing")).collect()
}

/// The history without the run that failed for `why`, and without the operator's recovery of the node.
fn without_failed_run(happened: &[String], expected: &[String], why: &str) -> Result<Vec<String>, String> {
    let find = |what: &str| happened.iter().position(|event| event.contains(what));
    let failed = find(&format!("failed: {why}")).filter(|_| why.ends_with(REASON));
    let recovered = find("clean failed -> manageable: verb");
    let (Some(failed), Some(recovered)) =
        (failed, recovered.filter(|at| failed.is_some_and(|failed| failed < *at)))
    else {
        return Err(format!("history: the failure has no event: {happened:?}"));
    };
    let begun = happened[..failed].iter().rposition(|event| event.contains("manageable -> cleaning: verb"));
    let Some(begun) = begun else { return Err("history: the run that failed never began".to_owned()) };
    let step = why.split_once(" step ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or(why);
    if !happened[begun..failed].iter().any(|event| event.contains(&format!("step {step} begins"))) {
        return Err(format!("history: {step} failed and was never begun"));
    }
    let before = in_order(&expected[..failed.min(expected.len())], &happened[..failed]);
    if let Some(first) = before.first() {
        return Err(format!("before the failure, {first}"));
    }
    let recovery = &happened[failed + 1..recovered];
    if let Some(other) = recovery.iter().find(|event| !event.contains(" flag ")) {
        return Err(format!("history: {other:?} after the failure"));
    }
    Ok(happened[..begun].iter().chain(&happened[recovered + 1..]).cloned().collect())
}

/// A value with what is of every run its own taken out.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => scrub(text).into(),
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Object(map) => {
            // `resets`: the fake's own counter, which lives in the controller's memory.
            let own = |key: &str| matches!(key, "agent_verify_ca" | "verify_ca" | "version" | "resets");
            map.iter().filter(|(key, _)| !own(key)).map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        other => other.clone(),
    }
}

/// A text with UUIDs, times, addresses and the counters in ids of commands replaced.
fn scrub(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (mark, length) = own_to_a_run(rest).unwrap_or(("", 0));
        if length > 0 {
            plain.push_str(mark);
            rest = &rest[length..];
        } else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    plain
}

/// The run-specific prefix of a text (UUID, timestamp, …), as its placeholder and its length.
fn own_to_a_run(text: &str) -> Option<(&'static str, usize)> {
    let shaped = |shape: &str| {
        let fits = |(byte, shape): (u8, u8)| match shape {
            b'x' => byte.is_ascii_hexdigit(),
            b'9' => byte.is_ascii_digit(),
            other => byte == other,
        };
        (text.len() >= shape.len() && text.bytes().zip(shape.bytes()).all(fits)).then_some(shape.len())
    };
    let more = |from: usize, allowed: fn(char) -> bool| {
        from + text[from..].find(|c| !allowed(c)).unwrap_or(text.len() - from)
    };
    if let Some(length) = shaped("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        // Ids of commands go on: step, plans, interruptions.
        return Some(("<uuid>", more(length, |c| c == '-' || c.is_ascii_digit())));
    }
    if let Some(length) = shaped("9999-99-99T99:99:99").or_else(|| shaped("9999-99-99 99:99:99")) {
        return Some(("<time>", more(length, |c| matches!(c, '.' | '+' | ':' | 'Z') || c.is_ascii_digit())));
    }
    if text.starts_with("127.0.0.1:") {
        return Some(("<address>", more("127.0.0.1:".len(), |c| c.is_ascii_digit())));
    }
    None
}

/// Where two values differ.
fn paths(at: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                paths(&format!("{at}.{key}"), &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                paths(&format!("{at}[{index}]"), a, b, found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{at} is {other}, not {one}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(events: &[&str]) -> RunRecord {
        let event = |text: &&str| json!({ "severity": "INFO", "event_type": "step", "event": text });
        RunRecord { history: events.iter().map(event).collect(), node: json!({}), ..RunRecord::default() }
    }

    const ID: &str = "0b56a5a4-6d2a-4a3f-a6c5-55c1b4a3d1f5";

    #[test]
    fn what_every_run_has_its_own_of_is_no_difference() {
        let text = format!("{ID}-2-0-1 at 2026-11-21T04:17:22.5+00:00 on https://127.0.0.1:4711/v1");
        assert_eq!(scrub(&text), "<uuid> at <time> on https://<address>/v1");
        let mut one = record(&[&format!("step a.b begins ({ID}-0-0-0)")]);
        one.node = json!({ "uuid": ID, "power_state": "power off", "list": [1, 2],
            "raid_config": { "last_updated": "2026-11-22 05:10:57.123456" } });
        let mut other = record(&["step a.b begins (1b56a5a4-6d2a-4a3f-a6c5-55c1b4a3d1f5-0-0-1)"]);
        other.node = json!({ "uuid": &ID.replace('0', "1"), "power_state": "power off", "list": [1, 2],
            "raid_config": { "last_updated": "2026-11-22 05:11:02" } });
        assert_eq!(differences(&one, &other), [""; 0]);
        other.node["power_state"] = "power on".into();
        other.node["list"] = json!([1, 3]);
        assert_eq!(
            differences(&one, &other),
            ["node.list[1] is 3, not 2", "node.power_state is \"power on\", not \"power off\""]
        );
    }

    #[test]
    fn only_a_beginning_may_stand_twice() {
        let one = record(&["x", "step a.b begins", "step a.b succeeded"]);
        let again = record(&["x", "step a.b begins", "step a.b begins", "step a.b succeeded"]);
        assert_eq!(differences(&one, &again), [""; 0]);
        for wrong in [
            &["x", "step a.b begins"][..],
            &["x", "x", "step a.b begins", "step a.b succeeded"],
            &["x", "step a.b begins", "step a.b succeeded", "step a.b succeeded"],
            &["step a.b begins", "step a.b succeeded"],
        ] {
            assert!(!differences(&one, &record(wrong)).is_empty(), "{wrong:?}");
        }
        let mut ran_twice = record(&["x", "step a.b begins", "step a.b succeeded"]);
        ran_twice.journal = vec!["ran a.b".to_owned(); 2];
        assert!(!differences(&one, &ran_twice).is_empty());
    }

    #[test]
    fn a_failed_run_is_taken_out_only_for_the_true_reason() {
        let why = format!("Clean step a.b failed on node <uuid>. {REASON}");
        let one = record(&["manageable -> cleaning: verb", "step a.b begins", "step a.b succeeded"]);
        let failure = format!("cleaning -> clean failed: {why}");
        let events = [
            "manageable -> cleaning: verb",
            "step a.b begins",
            &failure,
            "clean failed -> manageable: verb",
            "manageable -> cleaning: verb",
            "step a.b begins",
            "step a.b succeeded",
        ];
        let mut killed = record(&events);
        killed.interrupted = Some(why);
        assert_eq!(differences(&one, &killed), [""; 0]);
        killed.interrupted = None;
        assert!(!differences(&one, &killed).is_empty());
        let skipped: Vec<_> = [&events[..1], &events[2..]].concat();
        let mut killed = record(&skipped);
        killed.interrupted = Some(format!("Clean step a.b failed on node <uuid>. {REASON}"));
        assert!(!differences(&one, &killed).is_empty(), "the step was not begun");
    }
}
