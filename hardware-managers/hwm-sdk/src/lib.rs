//! A hardware manager knows one kind of hardware: what steps it offers and how to run them.
//!
//! The agent asks every manager how well it supports the machine ([`HardwareManager::evaluate`]),
//! merges the steps of all that do, and runs a step in the manager that advertised it, never by
//! name capture. Steps block: the agent runs them on a thread of their own and watches
//! [`StepContext`] from outside.
//!
//! A manager in a program of its own calls [`serve`] in its `main`, and speaks the [`protocol`] with the agent.

mod arguments;
mod context;
mod declaration;
mod error;
mod manager;
pub mod protocol;
mod serve;
mod step;
mod support;

pub use arguments::checked_arguments;
pub use context::{Host, StepContext};
pub use declaration::{Argument, Declaration, advertise};
pub use error::StepError;
pub use manager::HardwareManager;
pub use serve::{ServeError, serve, serve_on};
pub use step::{StepCall, StepKind, StepOutcome};
pub use support::Support;
