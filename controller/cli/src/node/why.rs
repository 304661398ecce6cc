//! `anneal node why`: the controller's answer as text.

use crate::output::{cell, duration, fields};
use serde_json::Value;

/// One line for each part of the answer; every time with its distance from now, by the controller's clock.
pub fn text(why: &Value) -> String {
    let (waits, next) = (&why["waits_for"], &why["next"]);
    let node = if why["name"].is_null() { cell(&why["uuid"]) } else { cell(&why["name"]) };
    let mut rows = vec![
        ("node".to_owned(), node),
        ("state".to_owned(), cell(&why["provision_state"])),
        ("waits for".to_owned(), cell(&waits["text"])),
    ];
    rows.extend(past(waits, "since").map(|since| ("since".to_owned(), since)));
    rows.extend(future(waits, "until").map(|until| ("until".to_owned(), until)));
    let tried: Vec<String> = why["tried"].as_array().into_iter().flatten().map(tried).collect();
    if !tried.is_empty() {
        rows.push(("tried".to_owned(), tried.join("\n")));
    }
    let at = future(next, "at").map(|at| format!("\n{at}")).unwrap_or_default();
    rows.push(("next".to_owned(), format!("{}{at}", cell(&next["text"]))));
    rows.push(("help".to_owned(), cell(&why["help"]["text"])));
    let mut out = fields(&rows);
    for command in why["help"]["commands"].as_array().into_iter().flatten() {
        out.push_str(&format!("  {}\n      {}\n", cell(&command["command"]), cell(&command["does"])));
    }
    out
}

fn tried(tried: &Value) -> String {
    let text = cell(&tried["text"]);
    past(tried, "at").map_or_else(|| text.clone(), |at| format!("{text}\n  {at}"))
}

/// `2026-11-21T09:00:00+00:00 (3m05s ago)`.
fn past(of: &Value, key: &str) -> Option<String> {
    Some(format!("{} ({} ago)", of[key].as_str()?, duration(of["age_s"].as_u64()?)))
}

/// `2026-11-21T09:00:00+00:00 (in 3m05s)`, or how long it has been due.
fn future(of: &Value, key: &str) -> Option<String> {
    let (at, in_s) = (of[key].as_str()?, of["in_s"].as_i64()?);
    let distance = duration(in_s.unsigned_abs());
    Some(match in_s {
        0.. => format!("{at} (in {distance})"),
        _ => format!("{at} (due for {distance})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_read_from_top_to_bottom() {
        let why = json!({
            "uuid": "u1", "name": "n1", "provision_state": "clean wait", "now": "2026-11-21T09:00:00+00:00",
            "waits_for": {"what": "ramdisk", "text": "the ramdisk to boot", "since": "2026-11-21T08:59:00+00:00", "age_s": 60,
                          "until": "2026-11-21T09:29:00+00:00", "in_s": 1740},
            "tried": [
                {"text": "the run automated_clean began", "at": "2026-11-21T08:58:00+00:00", "age_s": 120},
                {"text": "the last error: \u{1b}[2Jrefused", "at": null, "age_s": null},
            ],
            "next": {"by": "controller", "text": "its first heartbeat lets the run go on", "at": "2026-11-21T08:59:50+00:00",
                     "in_s": -10},
            "help": {"text": "no command is needed",
                     "commands": [{"command": "anneal node abort n1", "does": "stops what is under way"}]},
        });
        assert_eq!(
            text(&why),
            "node       n1\n\
             state      clean wait\n\
             waits for  the ramdisk to boot\n\
             since      2026-11-21T08:59:00+00:00 (1m00s ago)\n\
             until      2026-11-21T09:29:00+00:00 (in 29m00s)\n\
             tried      the run automated_clean began\n\
             \x20            2026-11-21T08:58:00+00:00 (2m00s ago)\n\
             \x20          the last error: \u{fffd}[2Jrefused\n\
             next       its first heartbeat lets the run go on\n\
             \x20          2026-11-21T08:59:50+00:00 (due for 10s)\n\
             help       no command is needed\n\
             \x20 anneal node abort n1\n\
             \x20     stops what is under way\n"
        );
    }
}
