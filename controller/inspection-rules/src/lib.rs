//! Applies inspection rules to the findings of an inspection: rules × node, ports, inventory and plugin data → the changed
//! node, ports and plugin data, or the rule that failed. Pure: nothing is stored, fetched or logged.
//!
//! It follows Ironic 39 (`tests/fixtures/ironic.json` has the results of Ironic's own engine for the same input, and lists
//! the differences), with stricter exceptions: either all rules apply or none; attributes that rules must not set are
//! rejected ([`attribute`]); secrets of the node are masked in templates; text that a machine reports is never read as a
//! template; `api-call` does not exist.

mod action;
mod args;
pub mod attribute;
mod budget;
pub mod check;
mod condition;
mod engine;
mod findings;
mod path;
mod python;
mod scope;
mod signature;
mod template;

pub use action::API_CALL;
pub use engine::{Applied, Failure, apply};
pub use findings::{Findings, Level, Note};
pub use python::repr;
