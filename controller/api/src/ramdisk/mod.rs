//! What agents call: lookup, heartbeat, and what an inspection found. No authentication but the agent token; nothing is told to a
//! caller who does not know it already.

pub mod anneal;
pub mod heartbeat;
pub mod inspection;
pub mod lookup;
