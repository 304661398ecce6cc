//! What rules work on, and what they have logged.

use model::history::Severity;
use model::{Event, EventKind, Node, Resource, Timestamp};
use serde_json::Value;

/// What an inspection found, and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The node.
    pub node: Node,
    /// Its ports.
    pub ports: Vec<Resource>,
    /// The inventory; no rule changes it.
    pub inventory: Value,
    /// Data added by collectors and plugins.
    pub plugin_data: Value,
}

/// A line that a rule wants to have logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its severity.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// The severity of a logged line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
}

impl Note {
    /// The line as an event of the node.
    pub fn event(self, now: Timestamp) -> Event {
        let severity = if self.level >= Level::Error { Severity::Error } else { Severity::Info };
        Event::new(EventKind::Agent, severity, format!("inspection rule: {}", self.text), now)
    }
}

impl Level {
    const ALL: [(&str, Self); 5] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
    ];

    /// The level of this name, in any letter case.
    pub fn of(name: &str) -> Option<Self> {
        let named = |(known, _): &&(&str, Self)| name.eq_ignore_ascii_case(known);
        Self::ALL.iter().find(named).map(|(_, level)| *level)
    }

    /// The error text for a name that is none, as in Ironic.
    pub fn unknown() -> String {
        format!("Invalid log level. Choose from {}", Self::ALL.map(|(name, _)| name).join(", "))
    }
}
