//! A deterministic simulation of controllers and nodes, with faults from a seed: one controller with a store of its own, or two or
//! three that share one.
//!
//! ```text
//!   storm ── kills, resets, cuts ──┐                        real: api::router, conductor, agent client,
//!   users ── verbs ─▶ network ─▶ controller ─▶ store        the agent's registry, step table, lookup, pace
//!   agents ◀─ commands, heartbeats ─┘   │        │          simulated: time, network, power, BMCs, disks,
//!     └ steps ─▶ disks   BMCs ◀─────────┘        │          what a step does
//!         └──────── ground truth ◀─ judged ─▶ rows ─┘
//! ```
//!
//! One thread, tokio's paused clock, one source of randomness: a seed always gives the same sequence of events.
//! Every stored write is checked against what really happened ([`invariants`]); the first rule that does not
//! hold ends the world. After the storm every node must come to rest by itself, and then be cleaned.
//!
//! What is not simulated: bytes on disks, DHCP and TFTP, TLS handshakes, SQLite, PostgreSQL.

/// The allocator of the real controller, which is faster than the C library's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub mod agent;
pub mod bmc;
pub mod clock_jumps;
pub mod commands;
pub mod controller;
pub mod controllers;
pub mod drivers;
pub mod execution;
pub mod faults;
pub mod fleet;
pub mod ground_truth;
pub mod host;
pub mod http;
pub mod invariants;
pub mod machine;
pub mod offers;
pub mod out_of_band;
pub mod power;
pub mod rng;
pub mod run;
pub mod seeds;
pub mod store;
pub mod storm;
pub mod trace;
pub mod user;
pub mod wire;
pub mod world;

// A mutex may be poisoned: `run` reports the panic.
use room::held;
