//! Simulated agents against a real controller, and what their clocks say of it.
//!
//! ```text
//!   operator.rs ── enrol, provide ──▶ anneal-controller  ◀── lookup, heartbeat ── heart.rs, fleet.rs: N agents
//!                                     (or a real Ironic) ───────── commands ────▶ server.rs, TLS, one each
//!                                                                                  agent.rs: notes when; its commands are those of the crate `room`
//! ```
//!
//! An agent is simulated down to its wire: its own TLS certificate and listener, its token, its list of
//! commands, one connection a heartbeat. Its steps take no time, so that all that passes between two of them
//! is the controller's and the wire's. To a controller that offers Anneal's extension it speaks it; to any
//! other it is an ironic-python-agent.
//!
//! `api` measures what one controller does with many nodes, without agents.
//!
//! `erase` and `image` are apart from all this: the agent's engine of overwriting compared with fio and other tools, and
//! its writer of images compared with its own stages and with ironic-python-agent, on loop devices.

pub mod agent;
pub mod api;
pub mod build;
pub mod client;
pub mod controller;
pub mod cpu;
pub mod erase;
pub mod fleet;
pub mod heart;
pub mod image;
pub mod operator;
pub mod report;
pub mod round;
pub mod server;
pub mod spread;
