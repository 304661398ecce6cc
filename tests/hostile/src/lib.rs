//! The real controller cleans nodes while hostile clients use all its ports.
//!
//! ```text
//!   strangers.rs  256 addresses: lookups, heartbeats, inventories, bad bodies ─▶ ┌────────────┐
//!   held.rs       connections that send half a request, or nothing ────────────▶ │ controller │ ◀── desk.rs: an operator,
//!   liars.rs      agents whose reports prove nothing ──────────────────────────▶ │            │     and how long they wait
//!   silent.rs     BMCs that accept connections and never answer ◀─────────────── │            │
//!   machines.rs   nodes that are cleaned again and again: each must arrive ────▶ └────────────┘ ◀── memory.rs
//! ```
//!
//! Every hostile client has an address of 127.1.0.0/24, every machine one of 127.2.0.0/16, every BMC one of
//! 127.3.0.0/16. The agents are those of `bench`, each at the address of its machine.

pub mod controller;
pub mod desk;
pub mod held;
pub mod liars;
pub mod machines;
pub mod memory;
pub mod report;
pub mod run;
pub mod silent;
pub mod strangers;
pub mod targets;
pub mod threads;
