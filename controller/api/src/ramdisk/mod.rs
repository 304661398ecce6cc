//! What agents call: lookup and heartbeat. No authentication but the agent token; nothing is told to a
//! caller who does not know it already.

pub mod anneal;
pub mod heartbeat;
pub mod lookup;
