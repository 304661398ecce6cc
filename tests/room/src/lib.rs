//! What the simulated machine rooms of the tests share.
//!
//! ```text
//!   tests/conductor/src/world   one node in virtual time, faults one by one     ┐
//!   tests/sim                    many nodes in virtual time, faults from a seed  ├─▶ Agent ─▶ agentd's registry
//!   tests/bench, tests/kill      the real controller over real sockets           ┘     ▲
//!                                                                                      └─ Work: what its steps do
//! ```
//!
//! An [`Agent`] answers commands as `anneal-agent` and ironic-python-agent do; how a call reaches it, and what the steps
//! do to the machine, is for each room to say. [`Power`] is a machine's power and what runs with it;
//! [`SimClock`] is virtual time.

mod agent;
mod clock;
mod evidence;
mod log;
mod machine;
mod state;
mod status;
mod work;

pub use agent::{Agent, Call, Kind, Reply};
pub use agentd::registry::Ending;
pub use clock::SimClock;
pub use evidence::{deployed, erased, signed_clean_result};
pub use hwm_sdk::StepContext;
pub use log::Log;
pub use machine::Power;
pub use state::put;
pub use status::{command, failed};
pub use work::{Begun, Work, advertised, step_result};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock a mutex; what a panicking thread left in it is used as it is.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
