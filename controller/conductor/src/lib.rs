//! Drives nodes towards where they were asked to go.
//!
//! ```text
//!   bell, clock ─▶ drive: take lease ─▶ load Snapshot ─▶ decide (pure) ─┬▶ Sleep: store the wait, release
//!                             ▲                                         ├▶ Record: store, again
//!                             └──── store ◀─ apply_outcome (pure) ◀─ act ◀─────┘▶ Act: one action
//! ```
//!
//! A pass takes no input: it reads what is stored and does what is missing. A controller that starts after
//! a crash, one that tries again and one that never stopped run the same code. Every action may be done
//! twice: power and boot device because they name a state, commands because they carry an id.

pub mod act;
pub mod agent_client;
pub mod agent_transport;
mod connections;
pub mod decision;
pub mod drive;
pub mod log_archive;
pub mod notary;
pub mod settings;
pub mod stages;

pub use act::{Executor, LiveExecutor};
pub use drive::Conductor;
pub use notary::{Notary, SigningKey};
pub use settings::Settings;
