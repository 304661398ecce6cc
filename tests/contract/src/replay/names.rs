//! What cannot be the same in two runs: which of our UUIDs, tokens and addresses stand for which of the recording.

use serde_json::Value;
use std::collections::BTreeMap;

/// Pairs, made by first appearance.
#[derive(Debug, Default, Clone)]
pub struct Names {
    /// Ours, by the recorded.
    ours: BTreeMap<String, String>,
}

impl Names {
    /// `recorded` is `ours` from now on.
    pub fn pair(&mut self, recorded: &str, ours: &str) {
        self.ours.insert(recorded.to_owned(), ours.to_owned());
    }

    /// A recorded text as it must read in this run.
    pub fn in_text(&self, recorded: &str) -> String {
        let mut text = recorded.to_owned();
        for (recorded, ours) in &self.ours {
            if text.contains(recorded.as_str()) {
                text = text.replace(recorded.as_str(), ours);
            }
        }
        text
    }

    /// A recorded document as it must read in this run.
    pub fn in_value(&self, recorded: &Value) -> Value {
        match recorded {
            Value::String(text) => Value::String(self.in_text(text)),
            Value::Array(items) => items.iter().map(|item| self.in_value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.in_value(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// Whether the two texts mean the same. Two of a kind that were not met before mean the same from now on.
    pub fn same(&mut self, recorded: &str, ours: &str) -> bool {
        if self.in_text(recorded) == ours {
            return true;
        }
        match (Kind::of(recorded), Kind::of(ours)) {
            (Some(Kind::Instant(theirs)), Some(Kind::Instant(ours))) => theirs == ours,
            (Some(theirs), Some(kind)) if theirs == kind => {
                let met = self.ours.contains_key(recorded) || self.ours.values().any(|known| known == ours);
                if !met {
                    self.pair(recorded, ours);
                }
                !met
            }
            _ => false,
        }
    }
}

/// Texts that differ from run to run.
#[derive(Debug, PartialEq)]
enum Kind {
    Uuid,
    RequestId,
    Token,
    /// With a fraction; with a zone.
    Instant(Option<String>),
}

impl Kind {
    fn of(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("req-") {
            return is_uuid(rest).then_some(Self::RequestId);
        }
        if is_uuid(text) {
            return Some(Self::Uuid);
        }
        if is_shaped(text, "0000-00-00T00:00:00") {
            // A fraction of zero is not written.
            let zone = text[19..].trim_start_matches(|digit: char| digit == '.' || digit.is_ascii_digit());
            return Some(Self::Instant((!zone.is_empty()).then(|| zone.to_owned())));
        }
        let word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (text.len() == 43 && text.bytes().all(word)).then_some(Self::Token)
    }
}

fn is_uuid(text: &str) -> bool {
    let shape = b"00000000-0000-0000-0000-000000000000";
    let fits =
        |(byte, shape): (u8, &u8)| if *shape == b'-' { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == shape.len() && text.bytes().zip(shape).all(fits)
}

fn is_shaped(text: &str, shape: &str) -> bool {
    let fits = |(byte, shape): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    text.len() >= shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// `text` without what differs from run to run, as a list of differences shows it.
pub fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let close = |word: &mut String, out: &mut String| {
        // What ends a sentence or a clause is no part of the word.
        let bare = word.trim_end_matches(['.', ':']);
        out.push_str(match Kind::of(bare) {
            Some(Kind::Uuid) => "<uuid>",
            Some(Kind::RequestId) => "<request id>",
            Some(Kind::Token) => "<token>",
            Some(Kind::Instant(_)) => "<instant>",
            None => bare,
        });
        out.push_str(&word[bare.len()..]);
        word.clear();
    };
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || "-_+:.".contains(letter) {
            word.push(letter);
        } else {
            close(&mut word, &mut out);
            out.push(letter);
        }
    }
    close(&mut word, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_made_once_and_kept() {
        let (a, b) = ("723865e8-f78f-40b7-adbb-92edede787e5", "00000000-0000-4000-8000-000000000001");
        let mut names = Names::default();
        assert!(names.same(a, b) && names.same(a, b));
        assert!(!names.same(a, "00000000-0000-4000-8000-000000000002"), "one stands for one");
        assert!(!names.same("723865e8-f78f-40b7-adbb-92edede787e6", b), "and not for two");
        assert!(names.same(&format!("Node {a} is gone"), &format!("Node {b} is gone")));
        assert!(!names.same("enroll", "manageable") && !names.same(a, "enroll"));
        assert!(names.same("2026-11-21T02:59:25.688786+00:00", "2027-01-01T00:00:00+00:00"));
        assert!(!names.same("2026-11-21T02:59:25.688786+00:00", "2027-01-01T00:00:00"), "no zone");
        assert_eq!(
            timeless(&format!("Node {a}: since 2026-11-21T02:59:25.688786")),
            "Node <uuid>: since <instant>"
        );
    }
}
