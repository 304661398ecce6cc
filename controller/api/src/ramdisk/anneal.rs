//! Anneal's part of a heartbeat, parsed strictly: an error names the path of the faulty value.
//!
//! Unknown keys are ignored, so that a newer agent that speaks the offered extension can send more.

use crate::body::python;
use crate::error::ApiError;
use agent_protocol::progress::DiskProgress;
use model::agent::AgentState;
use serde_json::{Map, Value, json};

/// Longest id that is kept.
const ID_MAX: usize = 64;
/// Most ended commands that are listed.
const ENDED_MAX: usize = 16;
/// Longest text of a progress report, in bytes.
const TEXT_MAX: usize = 1024;
/// Most disks of a progress report: more than any server holds.
const DISKS_MAX: usize = 1024;

/// The state of the agent, or 400.
pub fn parse(value: &Value) -> Result<AgentState, ApiError> {
    let fields = object("anneal", value)?;
    let extension = fields.get("extension").unwrap_or(&Value::Null);
    if !extension
        .as_u64()
        .is_some_and(|version| (1..=u64::from(agent_protocol::EXTENSION)).contains(&version))
    {
        return Err(bad(
            "anneal.extension",
            &format!("a whole number from 1 to {}", agent_protocol::EXTENSION),
            extension,
        ));
    }
    let boot_id = id("anneal.boot_id", fields.get("boot_id"))?;
    let process_id = id("anneal.process_id", fields.get("process_id"))?;
    let evidence_key = match fields.get("evidence_key") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let key = value.as_str().and_then(|text| text.parse::<bundle::PublicKey>().ok());
            let key =
                key.ok_or_else(|| bad("anneal.evidence_key", "ed25519: and 64 hexadecimal digits", value))?;
            Some(key.to_string())
        }
    };
    let (running, progress) = match fields.get("running") {
        None | Some(Value::Null) => (None, None),
        Some(value) => {
            let running = object("anneal.running", value)?;
            id("anneal.running.command_name", running.get("command_name"))?;
            let progress = running.get("progress").filter(|value| !value.is_null());
            let progress = progress.map(checked_progress).transpose()?;
            (Some(id("anneal.running.id", running.get("id"))?), progress)
        }
    };
    let ended = match fields.get("ended") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) if items.len() <= ENDED_MAX => items
            .iter()
            .enumerate()
            .map(|(index, item)| id(&format!("anneal.ended[{index}]"), Some(item)))
            .collect::<Result<_, _>>()?,
        Some(other) => {
            return Err(bad("anneal.ended", &format!("a list of at most {ENDED_MAX} ids"), other));
        }
    };
    Ok(AgentState { boot_id, process_id, evidence_key, running, ended, progress })
}

fn bad(path: &str, expected: &str, value: &Value) -> ApiError {
    ApiError::invalid(format!("Expected {expected} for {path}: {}", python(value)))
}

fn object<'a>(path: &str, value: &'a Value) -> Result<&'a Map<String, Value>, ApiError> {
    value.as_object().ok_or_else(|| bad(path, "an object", value))
}

fn id(path: &str, value: Option<&Value>) -> Result<String, ApiError> {
    let value = value.unwrap_or(&Value::Null);
    let text = value.as_str().filter(|text| (1..=ID_MAX).contains(&text.len()));
    let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    text.map(str::to_owned).ok_or_else(|| bad(path, &format!("1 to {ID_MAX} printable characters"), value))
}

/// Progress, with every disk, the percentage and the text checked; other members are left out.
fn checked_progress(value: &Value) -> Result<Value, ApiError> {
    const PATH: &str = "anneal.running.progress";
    let report = object(PATH, value)?;
    let list = report.get("disks").unwrap_or(&Value::Null);
    let items = list.as_array().filter(|items| items.len() <= DISKS_MAX).ok_or_else(|| {
        bad(&format!("{PATH}.disks"), &format!("a list of at most {DISKS_MAX} disks"), list)
    })?;
    for (index, item) in items.iter().enumerate() {
        if let Err(error) = serde_json::from_value::<DiskProgress>(item.clone()) {
            return Err(ApiError::invalid(format!("{PATH}.disks[{index}]: {error}")));
        }
    }
    let mut progress = Map::from_iter([("disks".to_owned(), json!(items))]);
    let given = |key: &str| report.get(key).filter(|value| !value.is_null());
    if let Some(percent) = given("percent") {
        if percent.as_u64().is_none_or(|percent| percent > 100) {
            return Err(bad(&format!("{PATH}.percent"), "a whole number from 0 to 100", percent));
        }
        progress.insert("percent".to_owned(), percent.clone());
    }
    if let Some(text) = given("text") {
        if text.as_str().is_none_or(|text| text.len() > TEXT_MAX) {
            return Err(bad(&format!("{PATH}.text"), &format!("a text of at most {TEXT_MAX} bytes"), text));
        }
        progress.insert("text".to_owned(), text.clone());
    }
    Ok(Value::Object(progress))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_protocol::heartbeat;
    use agent_protocol::progress::{Phase, Progress};

    const KEY: &str = "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    fn good() -> Value {
        let disk = DiskProgress {
            device: "/dev/sda".into(),
            serial: Some("S1".into()),
            phase: Phase::Erasing,
            method: None,
            bytes_done: 5,
            bytes_total: 10,
            rate: 1,
            eta: Some(5),
            stalled_since: None,
        };
        let running = heartbeat::Running {
            id: "c1".into(),
            command_name: "execute_clean_step".into(),
            progress: Some(Progress {
                percent: Some(40),
                text: Some("a fan turns".into()),
                disks: vec![disk],
            }),
        };
        let state = heartbeat::AgentState {
            extension: 1,
            boot_id: "b".into(),
            process_id: "p".into(),
            evidence_key: Some(KEY.into()),
            running: Some(running),
            ended: vec!["c0".into()],
        };
        serde_json::to_value(state).unwrap()
    }

    #[test]
    fn what_our_agent_sends_is_understood() {
        let state = parse(&good()).unwrap();
        assert_eq!((state.boot_id.as_str(), state.running.as_deref()), ("b", Some("c1")));
        assert_eq!(state.ended, ["c0"]);
        assert_eq!(state.evidence_key.as_deref(), Some(KEY));
        let progress = state.progress.unwrap();
        assert_eq!(progress["disks"][0]["bytes_done"], 5);
        assert_eq!((&progress["percent"], &progress["text"]), (&json!(40), &json!("a fan turns")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (pointer, value, path) in [
            ("", json!(5), "for anneal: 5"),
            ("/extension", json!(2), "anneal.extension"),
            ("/extension", json!("1"), "anneal.extension"),
            ("/boot_id", json!(null), "anneal.boot_id"),
            ("/process_id", json!(""), "anneal.process_id"),
            ("/evidence_key", json!("ed25519:00"), "anneal.evidence_key"),
            ("/running", json!([]), "anneal.running"),
            ("/running/id", json!(7), "anneal.running.id"),
            ("/running/progress/disks", json!({}), "anneal.running.progress.disks"),
            ("/running/progress/disks/0/bytes_done", json!(-1), "anneal.running.progress.disks[0]"),
            ("/running/progress/disks/0/phase", json!("x"), "anneal.running.progress.disks[0]"),
            ("/running/progress/percent", json!(101), "anneal.running.progress.percent"),
            ("/running/progress/text", json!("x".repeat(1025)), "anneal.running.progress.text"),
            ("/ended", json!("c0"), "anneal.ended"),
            ("/ended/0", json!("a\nb"), "anneal.ended[0]"),
        ] {
            let mut body = good();
            *body.pointer_mut(pointer).unwrap() = value.clone();
            let error = parse(&body).unwrap_err();
            assert_eq!(error.status, 400);
            assert!(error.message.contains(path), "{pointer} {value}: {}", error.message);
        }
    }
}
