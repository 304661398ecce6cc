//! The agent in the ramdisk that a node boots.

use serde::{Deserialize, Serialize};

/// Property of a node that names the agent its ramdisk contains: `anneal` (the default) or `ironic-python-agent`.
pub const AGENT_KIND: &str = "agent_kind";

/// The agent in the ramdisk that a node is declared to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RamdiskAgent {
    /// Anneal's: it signs the evidence of its erases.
    Anneal,
    /// ironic-python-agent, which signs nothing.
    IronicPythonAgent,
}

impl RamdiskAgent {
    /// The agent that the node's properties declare; Anneal's, which more is demanded of, for any other value.
    pub fn of(properties: &serde_json::Map<String, serde_json::Value>) -> Self {
        match properties.get(AGENT_KIND).and_then(serde_json::Value::as_str) {
            Some("ironic-python-agent") => Self::IronicPythonAgent,
            _ => Self::Anneal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_other_word_means_our_agent() {
        for (kind, agent) in [
            ("ironic-python-agent", RamdiskAgent::IronicPythonAgent),
            ("anneal", RamdiskAgent::Anneal),
            ("Ironic-Python-Agent", RamdiskAgent::Anneal),
            ("", RamdiskAgent::Anneal),
        ] {
            let properties = serde_json::Map::from_iter([(AGENT_KIND.to_owned(), kind.into())]);
            assert_eq!(RamdiskAgent::of(&properties), agent, "{kind}");
        }
        assert_eq!(RamdiskAgent::of(&serde_json::Map::new()), RamdiskAgent::Anneal);
    }
}
