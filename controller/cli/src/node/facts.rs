//! Tables of `anneal node validate`, `anneal node history` and `anneal node children`.

use crate::output::{cell, table};
use serde_json::Value;

/// `{"power": {"result": true, "reason": null}, …}`
pub fn validation(answer: &Value) -> String {
    let row = |(interface, verdict): (&String, &Value)| {
        let result = match verdict["result"] {
            Value::Bool(true) => "ok",
            Value::Bool(false) => "not ok",
            _ => "unsupported",
        };
        let reason = if verdict["reason"].is_null() { String::new() } else { cell(&verdict["reason"]) };
        vec![interface.clone(), result.to_owned(), reason]
    };
    let rows: Vec<_> = answer.as_object().into_iter().flatten().map(row).collect();
    table(&["INTERFACE", "RESULT", "REASON"], &rows)
}

/// Events, in the order the controller gives them.
pub fn history(events: &Value) -> String {
    let row = |event: &Value| ["created_at", "severity", "event"].map(|key| cell(&event[key])).to_vec();
    let rows: Vec<_> = events.as_array().into_iter().flatten().map(row).collect();
    table(&["AT", "SEVERITY", "EVENT"], &rows)
}

/// UUIDs, one a line.
pub fn children(answer: &Value) -> String {
    let lines: Vec<_> = answer["children"].as_array().into_iter().flatten().map(cell).collect();
    if lines.is_empty() { "no children".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_in_tables() {
        let answer = json!({
            "boot": {"result": true, "reason": null}, "console": {"result": null, "reason": "not supported"},
            "power": {"result": false, "reason": "redfish_address is missing"}
        });
        assert_eq!(
            validation(&answer),
            "INTERFACE  RESULT       REASON\n\
             boot       ok\n\
             console    unsupported  not supported\n\
             power      not ok       redfish_address is missing\n"
        );
        let events = json!([
            {"created_at": "t", "severity": "INFO", "event": "enroll -> verifying"}]);
        assert_eq!(history(&events), "AT  SEVERITY  EVENT\nt   INFO      enroll -> verifying\n");
    }
}
