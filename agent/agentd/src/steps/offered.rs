//! A step as one manager offers it.

use agent_protocol::step::Step;
use hwm_sdk::{HardwareManager, Support};
use std::sync::Arc;

/// A step and the manager that offers it.
#[derive(Clone)]
pub(super) struct Offered {
    pub(super) manager: Arc<dyn HardwareManager>,
    pub(super) support: Support,
    pub(super) step: Step,
}
