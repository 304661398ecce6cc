//! What a machine hears that no node was known for: in the answers to its inspection report and to its lookups, as the object
//! `anneal_discovery`.

use serde::{Deserialize, Serialize};

/// Whether the machine has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryAnswer {
    /// What an operator decided.
    pub verdict: Verdict,
    /// For how many seconds the machine waits at most.
    pub seconds_left: u64,
}

/// What an operator decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing yet.
    Waiting,
    /// It is a node, which the controller will boot when it has to do with it.
    Approved,
    /// It is none.
    Rejected,
}

/// An answer to a lookup with nothing else in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryLookup {
    /// The object.
    pub anneal_discovery: DiscoveryAnswer,
}
