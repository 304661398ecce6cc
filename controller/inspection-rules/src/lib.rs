//! What inspection rules make of what an inspection found: rules × node, ports, inventory and plugin data → the node,
//! the ports and the plugin data as they are to be, or which rule failed. Pure: nothing is stored, fetched or logged.
//!
//! It follows Ironic 39 (`tests/fixtures/ironic.json` holds what Ironic's own engine made of the same input; the
//! differences stand there one by one), with these exceptions, all of them towards less: either all rules apply or
//! none; what no rule may set is refused ([`attribute`]); secrets of the node are masked in templates; what a machine
//! says is never read as a template; `api-call` does not exist.

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
