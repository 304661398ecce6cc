//! Other priorities for steps that a manager does not own.
//!
//! What a manager may not do with them: touch a reserved step (an erase is neither switched off nor on by a plugin,
//! nor moved behind something that fails), or switch on, from 0, a step that destroys anything or does not say that
//! it does not. The owner of the step and the operator may do both.

use super::offered::Offered;
use hwm_sdk::protocol::{Priority, is_reserved_step};
use std::collections::BTreeMap;

/// Apply one wish of `manager`, or say in the log why not.
pub(super) fn apply(steps: &mut BTreeMap<String, Offered>, manager: &str, wish: &Priority) {
    let step = steps.get_mut(&wish.step).filter(|offered| offered.step.interface == wish.interface);
    let refused = match &step {
        None => Some("there is no such step"),
        Some(offered) if offered.manager.name() == manager => {
            Some("it is its own, whose priority it declares")
        }
        Some(_) if is_reserved_step(&wish.interface, &wish.step) => Some("it is reserved"),
        Some(offered)
            if offered.step.priority.as_f64() == Some(0.0) && wish.priority > 0 && !harmless(offered) =>
        {
            Some("it would be switched on, and does not say that it destroys nothing")
        }
        Some(_) => None,
    };
    let (interface, name, priority) = (&wish.interface, &wish.step, wish.priority);
    match (step, refused) {
        (Some(offered), None) => {
            tracing::info!(manager, interface, step = name, priority, "priority changed");
            offered.step.priority = priority.into();
        }
        (_, refused) => {
            tracing::warn!(
                manager,
                interface,
                step = name,
                priority,
                reason = refused,
                "priority not changed"
            );
        }
    }
}

fn harmless(offered: &Offered) -> bool {
    offered.step.other.get("destructive").is_some_and(|destructive| destructive == "none")
}
