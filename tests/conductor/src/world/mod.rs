//! A machine room in one process: a node with power, a ramdisk that boots, an agent that runs commands. Time is tokio's
//! paused clock, so hours pass in milliseconds and every wait is a condition.
//!
//! - `setup.rs`: the world and what tests set in it; `user.rs`: verbs, waiting, the history
//! - `machine.rs`: power and boots; `agent.rs`: the agent, whose commands are those of the crate `room`; `interface.rs`: steps of interfaces
//! - `executor.rs`: the conductor's actions on these; `fault.rs`: what can go wrong

mod agent;
mod executor;
mod fault;
mod interface;
mod machine;
mod setup;
mod user;

pub use agent::NIC;
pub use fault::Fault;
pub use setup::{Running, World, asked, step};
