//! The operators of root device hints: those of Ironic 39 (`specs_matcher`).
//!
//! What is different there is so on purpose (docs/decisions/0035-root-device.md): a size is compared in whole GiB, `<or>` and
//! `<all-in>` work on everything, and a value that a disk does not have fulfils no condition but an inequality.

use std::cmp::Ordering;

/// What the value of a hint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text,
    /// A size in whole GiB.
    Size,
    Truth,
}

/// How a value is compared; what it is compared with is in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    /// `==`, `!=`, `<`, `<=`, `>`, `>=`; `=` is at least.
    Number(&'static str, u64),
    /// `s==`, `s!=`, `s<`, `s<=`, `s>`, `s>=`.
    Text(&'static str, String),
    /// `<in>`, `<all-in>`: contains all of them.
    Contains(Vec<String>),
    /// `<or>`: is one of them.
    OneOf(Vec<String>),
}

const NUMBERS: [&str; 7] = ["==", "!=", "<=", ">=", "<", ">", "="];
const TEXTS: [&str; 6] = ["s==", "s!=", "s<=", "s>=", "s<", "s>"];

impl Condition {
    /// `None` when the text is not understood.
    pub(super) fn parse(kind: ValueKind, text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let operator = |words: &[&'static str]| {
            words.iter().find_map(|word| Some((*word, text.strip_prefix(word)?.trim().to_owned())))
        };
        if text.starts_with("<or>") {
            return parts(&text, "<or>").map(Condition::OneOf);
        }
        if let Some(rest) = text.strip_prefix("<all-in>") {
            return parts(rest, " ").map(Condition::Contains);
        }
        if let Some(rest) = text.strip_prefix("<in>") {
            return (!rest.trim().is_empty()).then(|| Condition::Contains(vec![rest.trim().to_owned()]));
        }
        if let Some((word, rest)) = operator(&TEXTS) {
            return Some(Condition::Text(word, rest));
        }
        match kind {
            ValueKind::Truth => Some(Condition::Text("s==", truth(&text)?.to_string())),
            ValueKind::Size => {
                let (word, number) = operator(&NUMBERS).unwrap_or(("==", text.clone()));
                Some(Condition::Number(word, number.parse().ok()?))
            }
            // Ironic's agent fails on these for text; what is meant is clear.
            ValueKind::Text => Some(match operator(&["==", "!=", "="]) {
                Some(("!=", rest)) => Condition::Text("s!=", rest),
                Some((_, rest)) => Condition::Text("s==", rest),
                None => Condition::Text("s==", text),
            }),
        }
    }

    /// Whether what a disk has fulfils the condition: one of its values, or of an inequality all. In lower case.
    pub(super) fn is_met_by(&self, values: &[String]) -> bool {
        match self {
            Condition::Number("!=", _) | Condition::Text("s!=", _) => {
                values.iter().all(|value| self.holds(value))
            }
            _ => values.iter().any(|value| self.holds(value)),
        }
    }

    fn holds(&self, value: &str) -> bool {
        match self {
            Condition::Number(word, wanted) => {
                value.parse::<u64>().is_ok_and(|value| compare(word, value.cmp(wanted)))
            }
            Condition::Text(word, wanted) => compare(&word[1..], value.cmp(wanted)),
            Condition::Contains(all) => all.iter().all(|one| value.contains(one)),
            Condition::OneOf(all) => all.iter().any(|one| one == value || is_same_number(one, value)),
        }
    }
}

/// What stands between the separators; `None` when there is nothing.
fn parts(text: &str, separator: &str) -> Option<Vec<String>> {
    let parts: Vec<String> =
        text.split(separator).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then_some(parts)
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
        "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
        _ => None,
    }
}

fn is_same_number(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a == b)
}

fn compare(word: &str, order: Ordering) -> bool {
    match word {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}
