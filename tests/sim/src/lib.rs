//! A deterministic simulation of one controller and many nodes, with faults from a seed.
//!
//! ```text
//!   storm ── kills, resets, cuts ──┐                        real: api::router, conductor, agent client,
//!   users ── verbs ─▶ network ─▶ controller ─▶ store        the agent's registry, step table, lookup, pace
//!   agents ◀─ commands, heartbeats ─┘   │        │          simulated: time, network, power, BMCs, disks,
//!     └ steps ─▶ disks   BMCs ◀─────────┘        │          what a step does
//!         └──────────── truth ◀─ judged ─▶ rows ─┘
//! ```
//!
//! One thread, tokio's paused clock, one source of chance: a seed is one story, told again whenever it is run
//! again. Every stored write is held against what really happened ([`invariants`]); the first rule that does not
//! hold ends the world. After the storm every node must come to rest by itself, and then be cleaned.
//!
//! What is not simulated: bytes on disks, DHCP and TFTP, TLS handshakes, SQLite, two controllers at once.

pub mod agent;
pub mod bmc;
pub mod clock;
pub mod commands;
pub mod controller;
pub mod dice;
pub mod drivers;
pub mod execution;
pub mod fleet;
pub mod http;
pub mod invariants;
pub mod machine;
pub mod offers;
pub mod out_of_band;
pub mod power;
pub mod run;
pub mod seeds;
pub mod store;
pub mod storm;
pub mod trace;
pub mod truth;
pub mod user;
pub mod weather;
pub mod wire;
pub mod world;

use std::sync::{Mutex, MutexGuard};

/// What a mutex holds; a panic elsewhere is told by [`run`] and does not matter here.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
