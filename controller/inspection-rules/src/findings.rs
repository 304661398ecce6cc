//! What rules work on, and what they have logged.

use model::{Node, Port};
use serde_json::Value;

/// What an inspection found, and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The node.
    pub node: Node,
    /// Its ports.
    pub ports: Vec<Port>,
    /// The inventory; no rule changes it.
    pub inventory: Value,
    /// What collectors and plugins added.
    pub plugin_data: Value,
}

/// A line that a rule wants to have logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How grave it is.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// How grave a logged line is.
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

    /// What is wrong with one that does not exist.
    pub fn unknown() -> String {
        format!("Invalid log level. Choose from {}", Self::ALL.map(|(name, _)| name).join(", "))
    }
}
