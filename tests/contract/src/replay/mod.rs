//! Conversations of the real Ironic, had again with anneal-controller and compared field by field.
//!
//! A recording is walked line by line. What a client or an agent asked is asked again, and the answers are compared;
//! what Ironic's conductor asked the agent must come from ours, and gets the recorded answer. What an operator did
//! whose requests were not recorded stands in `replay/operator.json`.

mod agent;
mod compare;
mod conversation;
mod exchange;
pub mod http;
mod listed;
mod names;
mod walk;

pub use conversation::{Left, all, left_out};
pub use listed::{List, writing};
pub use walk::{Tally, Walk};
