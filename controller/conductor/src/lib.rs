//! Drives nodes to the provision states that users request.
//!
//! ```text
//!   bell, clock ─▶ drive: take lease ─▶ load Snapshot ─▶ decide (pure) ─┬▶ Sleep: store the wait, release
//!                             ▲                                         ├▶ Record: store, load again
//!                             └─ store ◀─ apply_outcome (pure) ◀─ act ◀──┴▶ Act: one action
//! ```
//!
//! A pass takes no input: it reads what is stored and does what is missing. Starting after a crash, retrying and normal
//! running use the same code. Every action but one is idempotent: power and boot device name a state, commands carry an
//! id. The exception is [`decision::Action::RunStep`], whose start is stored first ([`decision::Decision::Begin`]).

pub mod act;
mod agent_answer;
pub mod agent_client;
mod agent_command;
pub mod agent_transport;
mod agents;
mod boot_media;
mod connections;
pub mod decision;
pub mod drive;
mod image_download;
pub mod issuer;
mod log_answer;
pub mod log_archive;
mod log_download;
pub mod observer;
pub mod settings;
pub mod stages;

pub use act::{Executor, LiveExecutor};
pub use boot_media::BootMedia;
pub use drive::Conductor;
pub use issuer::{CertificateIssuer, Previous, SigningKey};
pub use observer::Observer;
pub use settings::Settings;
