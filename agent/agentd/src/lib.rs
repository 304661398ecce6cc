//! `anneal-agent`: looks itself up, serves ironic-python-agent's API, heartbeats, and runs the
//! steps of its hardware managers.
//!
//! ```text
//!   main ── config ── [ramdisk: mounts, modules, network] ── run
//!                                                             ├─ inspection ─▶ controller, when asked to
//!                                                             ├─ discovery ─▶ controller, and nothing below, where no node is known
//!                                                             ├─ boot_proof ─▶ controller, when it takes proofs and there is a TPM
//!                                                             ├─ lookup ─▶ controller
//!                                                             ├─ bundles ─▶ controller, when it names some
//!                                                             ├─ heartbeat ─▶ controller
//!   controller ─▶ server ─▶ api ─▶ executor ─▶ commands ─▶ steps ─▶ hardware managers (a thread each)
//!                                         └▶ state, registry ◀┘
//! ```
//!
//! Invariants: one command at a time, and a command id never runs twice ([`registry`]); no command
//! without the token ([`api`]); outside the ramdisk no disk is seen but those named, and the machine
//! is never powered off ([`config`]); a panic in a manager fails its step, never the agent
//! ([`executor`]). Absent on purpose: state on disk. An agent that restarts knows nothing and says so
//! by a new process id.

pub mod api;
pub mod boot_proof;
pub mod bundles;
pub mod commands;
pub mod compatibility;
pub mod config;
pub mod crypt;
pub mod discovery;
pub mod evidence;
pub mod executor;
pub mod heartbeat;
pub mod http;
pub mod inspection;
pub mod inventory;
pub mod lldp;
pub mod logging;
pub mod login;
pub mod lookup;
pub mod memory;
pub mod ramdisk;
pub mod random;
pub mod registry;
pub mod run;
pub mod server;
pub mod signer;
pub mod state;
pub mod steps;
pub mod tls;
pub mod token;
pub mod uefi;

/// Version reported to controllers.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
